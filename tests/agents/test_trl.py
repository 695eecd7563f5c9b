"""TRL's trainers: versions that differ are refused, and without rewards the base model stays."""

import pytest

import theorybench as tb


def test_where_the_base_model_solves_no_prompt_it_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("THEORYBENCH_CACHE", str(tmp_path))
    agent = "trl-astar-po[prompts=4,value_samples=2]"
    record = tb.run("TheoryBench/ReasoningTree-v0", agent, seed=0, budget=100, d=3, L=3)
    assert (record.status, record.spent.episodes) == ("ok", 8)
    assert abs(record.score) < 1e-3


@pytest.mark.parametrize("agent", ["trl-rloo", "trl-sft"])
@pytest.mark.parametrize("env_id", ["KFoldComposition", "Countdown"])
def test_trainers_that_take_no_turns_say_so(agent, env_id, monkeypatch):
    monkeypatch.setattr("theorybench.agents.trl.pretrained", None)  # before anything is trained
    with pytest.warns(UserWarning, match="trl-grpo alone takes turns"):
        record = tb.run(f"TheoryBench/{env_id}-v0", agent, seed=0, budget=64)
    assert record.status == "failed"


@pytest.mark.parametrize(
    ("env_id", "parameters", "steps"),
    [("KFoldComposition", {"N": 2, "k": 2}, [256]), ("Countdown", {"numbers": 3, "prompts": 2}, range(128, 257))],
)
def test_grpo_plays_turn_by_turn_within_its_budget(env_id, parameters, steps, tmp_path, monkeypatch):
    monkeypatch.setenv("THEORYBENCH_CACHE", str(tmp_path))
    record = tb.run(f"TheoryBench/{env_id}-v0", "trl-grpo", seed=0, budget=130, **parameters)
    assert record.status == "ok", record.error
    assert record.spent.episodes == 128
    assert record.spent.steps in steps
    assert record.metrics["kl"] > 1e-3


def test_grpo_learns_where_every_action_answers_another_prompt(tmp_path, monkeypatch):
    monkeypatch.setenv("THEORYBENCH_CACHE", str(tmp_path))
    agent = "trl-grpo[learning_rate=0.003]"
    record = tb.run("TheoryBench/RelativeBudget-v0", agent, seed=0, budget=640, K=1, A=4, p=0.25)
    assert record.status == "ok", record.error
    assert record.score > 0.3
    assert record.spent.episodes == 640
