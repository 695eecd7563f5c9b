"""TRL's trainers: versions that differ are refused, and without rewards the base model stays."""

import pytest

import theorybench as tb
from theorybench.envs.core.errors import ConfigurationError


@pytest.mark.parametrize("version", ["0.29.1", "1.15.2", "2.0.0"])
def test_other_versions_are_refused(version):
    from theorybench.agents.trl import check_version

    check_version("1.16.0")
    with pytest.raises(ConfigurationError, match=r"trl>=1\.16,<2"):
        check_version(version)


def test_where_the_base_model_solves_no_prompt_it_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("THEORYBENCH_CACHE", str(tmp_path))
    agent = "trl-astar-po[prompts=4,value_samples=2]"
    record = tb.run("TheoryBench/ReasoningTree-v0", agent, seed=0, budget=100, d=3, L=3)
    assert (record.status, record.spent.episodes) == ("ok", 8)
    assert abs(record.score) < 1e-3
