"""TRL's trainers: versions that differ are refused, and a normal run prints nothing."""

import subprocess
import sys

import pytest

import theorybench as tb
from theorybench.envs.core.errors import ConfigurationError

RUN = """
import theorybench as tb
record = tb.run("TheoryBench/TreeMarkovChain-v0", "trl-grpo", seed=0, budget=130)
assert record.status == "ok" and record.spent.episodes == 128, record.error
"""


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


def test_a_normal_run_prints_nothing(tmp_path):
    environment = {
        "THEORYBENCH_CACHE": str(tmp_path),
        "OMP_NUM_THREADS": "1",
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN], capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
