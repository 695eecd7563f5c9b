"""The command `diagnose` and what it stands on."""

import json

import pytest

from theorybench import cli
from theorybench.agents.diagnostics.zero_flow import ZeroFlow
from theorybench.envs.core.errors import ConfigurationError, ParameterError, UnknownNameError
from theorybench.leaderboard.diagnosing.diagnosis import diagnose
from theorybench.leaderboard.diagnosing.parts import flow_finding


def test_findings_by_target_and_summary():
    found = diagnose("reference", "TreeMarkovChain", summaries=["position", "prefix"], targets=["action"], flips=99)
    first, second = found.findings
    assert first.asked == {"summary": "position", "target": "action"} and first.values["p_value"] == 0.01
    assert first.meaning.startswith("refuted at 5%") and second.meaning.startswith("nothing to see")
    assert found.parameters["L"] == 4 and found.episodes == 4000


def test_the_setting_s_own_view_is_the_default():
    (one,) = diagnose(
        "initial", "WeakToStrong", targets=["reply"], episodes=2000, flips=99, teachers=2, budget=4
    ).findings
    assert one.asked["summary"] == "state" and one.values["p_value"] > 0.01


def test_p_values_have_words():
    words = [
        flow_finding("f", "reward", ZeroFlow(p, flow, 9, 0, True)).meaning
        for p, flow in ((0.05, 1), (0.2, 1), (1, 0), (1, -1))
    ]
    assert [one.partition(":")[0] for one in words] == ["refuted at 5%", "not refuted", "nothing to see", "not refuted"]


def test_summaries_from_files(tmp_path):
    (tmp_path / "mine.py").write_text("def length(seen):\n    return (seen > 0).sum(axis=1)\n")
    kept = f"{tmp_path}/mine.py:length"
    by_file, by_name = diagnose("reference", "TreeMarkovChain", summaries=[kept, "position"], flips=19).findings
    assert by_file.values == by_name.values and by_file.asked["summary"] == kept
    with pytest.raises(ConfigurationError, match="no function"):
        diagnose("reference", "TreeMarkovChain", summaries=[f"{tmp_path}/mine.py:width"])


def test_what_is_refused():
    for options, error in (
        ({"targets": ["value"]}, ParameterError),
        ({"summaries": ["marcov"]}, ParameterError),
        ({"episodes": 2}, ParameterError),
        ({"policy": "optimum"}, UnknownNameError),
    ):
        with pytest.raises(error):
            diagnose(**{"policy": "reference", "env_id": "TreeMarkovChain", **options})


def test_the_command(monkeypatch, capsys):
    words = ["diagnose", "TreeMarkovChain", "--summary", "position", "--target", "action", "--flips", "99"]

    def run(*more):
        monkeypatch.setattr("sys.argv", ["theorybench", *words, *more])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert not stopped.value.code
        return capsys.readouterr().out

    (found,) = json.loads(run("--json"))["findings"]
    assert found["diagnostic"] == "zero-flow" and found["values"]["p_value"] == 0.01
    shown = run("--episodes", "800", "--param", "pass_k=4")
    assert "position" in shown and "refuted at 5%" in shown and "800 episodes of reference" in shown
