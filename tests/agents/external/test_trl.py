"""TRL's trainers: versions that differ are refused, and without rewards the base model stays."""

import pytest

import theorybench as tb
from theorybench.agents.language.turns import rows


def test_where_the_base_model_solves_no_prompt_it_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("THEORYBENCH_CACHE", str(tmp_path))
    agent = "trl-astar-po[prompts=4,value_samples=2]"
    record = tb.run("TheoryBench/ReasoningTree-v0", agent, seed=0, budget=100, d=3, L=3)
    assert (record.status, record.spent.episodes) == ("ok", 8)
    assert abs(record.score) < 1e-3


@pytest.mark.parametrize("agent", ["trl-rloo", "trl-sft"])
@pytest.mark.parametrize("env_id", ["KFoldComposition", "Countdown"])
def test_trainers_that_take_no_turns_say_so(agent, env_id, monkeypatch):
    monkeypatch.setattr("theorybench.agents.external.trl.pretrained", None)  # before anything is trained
    with pytest.warns(UserWarning, match="trl-grpo alone takes turns"):
        record = tb.run(f"TheoryBench/{env_id}-v0", agent, seed=0, budget=64)
    assert record.status == "failed"


def test_words_that_the_environment_said_are_not_trained_on(tmp_path, monkeypatch):
    monkeypatch.setenv("THEORYBENCH_CACHE", str(tmp_path))

    def run():
        record = tb.run("TheoryBench/KFoldComposition-v0", "trl-grpo[learning_rate=0.01]", seed=0, budget=70, N=2, k=2)
        assert (record.status, record.spent.episodes, record.spent.steps) == ("ok", 64, 128), record.error
        return record.metrics["kl"]

    learnt = run()
    silent = [[0, 0, 0]] * 64  # as if the environment had said everything
    monkeypatch.setattr("theorybench.agents.external.trl.rows", lambda *given: rows(*given)._replace(masks=silent))
    assert run() < 1e-2 < learnt


def test_grpo_plays_no_illegal_moves_and_stays_within_its_budget(tmp_path, monkeypatch):
    monkeypatch.setenv("THEORYBENCH_CACHE", str(tmp_path))
    record = tb.run("TheoryBench/Countdown-v0", "trl-grpo", seed=0, budget=130, numbers=3, prompts=2)
    assert record.status == "ok", record.error
    assert record.spent.episodes == 128
    assert 128 < record.spent.steps <= 256
    assert 1e-3 < record.metrics["kl"] < 10  # finite: the base model is not left


def test_grpo_learns_where_every_action_answers_another_prompt(tmp_path, monkeypatch):
    monkeypatch.setenv("THEORYBENCH_CACHE", str(tmp_path))
    agent = "trl-grpo[learning_rate=0.003]"
    record = tb.run("TheoryBench/RelativeBudget-v0", agent, seed=0, budget=640, K=1, A=4, p=0.25)
    assert record.status == "ok", record.error
    assert record.score > 0.3
    assert record.spent.episodes == 640
