"""A site of 100,000 records, made as `benchmarks/site.py` makes them, is small, and shows them all."""

import bz2
from pathlib import Path

import pytest

from theorybench.envs.core.registry import load_module
from theorybench.leaderboard.records.store import RecordStore
from theorybench.leaderboard.site.build import build_site

BENCHMARK = load_module(str(Path(__file__).parents[3] / "benchmarks" / "site.py"))
#: Bytes that a site of as many records may take.
MOST = 8_000_000


@pytest.mark.slow
def test_a_site_of_100_000_records_is_below_eight_megabytes(tmp_path, browser):
    made = BENCHMARK.records()
    RecordStore(tmp_path / "records").add_all(made)
    site = build_site([tmp_path / "records"], tmp_path / "site")
    assert site.runs == len(made) == 100_000 and site.bytes < MOST
    with bz2.open(tmp_path / "site" / "records" / "runs.csv.bz2", "rt") as file:
        assert sum(1 for _ in file) == 100_001
    browser.open(site.path.as_uri())
    assert browser("document.querySelectorAll('#ranking tbody tr').length") > BENCHMARK.AGENTS
    assert browser.errors() == []
