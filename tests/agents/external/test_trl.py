"""TRL's trainers: turns, masks and budgets, on models with random weights where a base model is not what counts."""

import pytest

import theorybench as tb
from theorybench.agents.language import LanguagePolicy, build
from theorybench.agents.language.turns import rows
from theorybench.envs.core.registry import lookup


@pytest.fixture(autouse=True)
def untrained(request, monkeypatch):
    """Random models in place of pre-trained ones, but for tests that take turns."""
    if not request.node.get_closest_marker("rotating"):
        monkeypatch.setattr("theorybench.agents.external.trl.pretrained", build)


def divergence_at_the_start(env_id, **parameters):
    oracle = lookup(env_id).oracle(lookup(env_id).make_setting(parameters))
    return oracle.evaluate(LanguagePolicy.of(build(env_id, **parameters)), ["kl"])["kl"]


def test_where_the_first_model_solves_no_prompt_it_stays():
    env_id, parameters = "TheoryBench/ReasoningTree-v0", {"d": 3, "L": 3}
    record = tb.run(env_id, "trl-astar-po[prompts=4,value_samples=2]", seed=0, budget=100, **parameters)
    assert (record.status, record.spent.episodes) == ("ok", 8), "nothing is paid for a second stage"
    assert record.metrics["kl"] == pytest.approx(divergence_at_the_start(env_id, **parameters), abs=1e-6)


def test_where_no_response_earns_anything_the_first_model_stays():
    parameters = {"d": 3, "L": 5}
    record = tb.run("TheoryBench/ReasoningTree-v0", "trl-sft", seed=0, budget=4, **parameters)
    assert (record.status, record.spent.episodes) == ("ok", 4)
    expected = divergence_at_the_start("TheoryBench/ReasoningTree-v0", **parameters)
    assert record.metrics["kl"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("agent", ["trl-rloo", "trl-sft"])
@pytest.mark.parametrize("env_id", ["KFoldComposition", "Countdown"])
def test_trainers_that_take_no_turns_say_so(agent, env_id):
    with pytest.warns(UserWarning, match="trl-grpo alone takes turns"):
        record = tb.run(f"TheoryBench/{env_id}-v0", agent, seed=0, budget=64)
    assert (record.status, record.spent.episodes) == ("failed", 0)


def test_words_that_the_environment_said_are_not_trained_on(monkeypatch):
    env_id, parameters = "TheoryBench/KFoldComposition-v0", {"N": 2, "k": 2}

    def run():
        record = tb.run(env_id, "trl-grpo[learning_rate=0.01]", seed=0, budget=70, **parameters)
        assert (record.status, record.spent.episodes, record.spent.steps) == ("ok", 64, 128), record.error
        return record.metrics["kl"]

    start, learnt = divergence_at_the_start(env_id, **parameters), run()
    silent = [[0, 0, 0]] * 64  # as if the environment had said everything
    monkeypatch.setattr("theorybench.agents.external.trl.rows", lambda *given: rows(*given)._replace(masks=silent))
    assert run() == pytest.approx(start, abs=1e-3)
    assert abs(learnt - start) > 1e-2


def test_grpo_plays_no_illegal_moves_and_stays_within_its_budget():
    record = tb.run("TheoryBench/Countdown-v0", "trl-grpo", seed=0, budget=130, numbers=3, prompts=2)
    assert record.status == "ok", record.error
    assert record.spent.episodes == 128
    assert 128 < record.spent.steps <= 256
    assert 1e-3 < record.metrics["kl"] < 10  # finite: what the base model never does is not done


@pytest.mark.rotating
def test_grpo_learns_where_every_action_answers_another_prompt():
    agent = "trl-grpo[learning_rate=0.003]"
    record = tb.run("TheoryBench/RelativeBudget-v0", agent, seed=0, budget=640, K=1, A=4, p=0.25)
    assert record.status == "ok", record.error
    assert record.score > 0.3
    assert record.spent.episodes == 640
