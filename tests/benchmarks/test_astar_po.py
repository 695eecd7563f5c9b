"""A*-PO's benchmark: every option is stated, choices are stored, costs charge misses, and its theory is exact."""

import dataclasses
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from theorybench.agents.agent import hyperparameters
from theorybench.agents.harness import train
from theorybench.agents.loading import make_agent
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.views import View
from theorybench.envs.preference.advantage_regression import path_probs, penalised_rewards
from theorybench.envs.preference.optimal_advantage import OptimalAdvantage
from theorybench.envs.preference.optimal_advantage_oracle import OptimalAdvantageOracle
from theorybench.envs.preference.optimal_value import optimal_value
from theorybench.leaderboard.runner import run_many

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import _contest as contest
import _study as study
import _tables as tables
import _theory as theory
import astar_po

#: Options of transformers, of which none trains here.
UNREAD = {"width", "layers", "heads"}
SETTING = OptimalAdvantage(num_prompts=3, num_responses=4, beta=0.3, zero_share=0.0, instance=1)
CELL = contest.advantage("small", 0.1, budget=4096, num_prompts=2, num_responses=4)


@pytest.mark.parametrize("contender", contest.CONTENDERS, ids=lambda one: one.name)
@pytest.mark.parametrize("cell", astar_po.FULL.headline, ids=lambda cell: cell.name)
def test_every_option_is_stated(cell, contender):
    options = contender.options(cell, contender.start(cell))
    agent = make_agent(contender.name, **options)
    unstated = set(hyperparameters(agent)) - set(options) - UNREAD
    assert not unstated, "state them in benchmarks/_contest.py, so that defaults move nothing"


def test_choices_are_stored_for_every_cell():
    entries = study.Study(astar_po.FULL, Path("unused")).entries
    chosen = study.load_choices(astar_po.CHOICES, entries)
    assert [entry.name for entry in chosen] == [entry.name for entry in entries]
    assert all(entry.tried > len(entry.neighbours()) for entry in chosen if entry.settled)


def test_choices_that_are_not_there_are_asked_for(tmp_path):
    entry = study.Entry(CELL, contest.RLOO, contest.RLOO.start(CELL), 3, True)
    with pytest.raises(SystemExit, match="small / rloo: run this with --search"):
        study.load_choices(tmp_path / "choices.json", [entry])
    study.save_choices(tmp_path / "choices.json", [entry])
    assert study.load_choices(tmp_path / "choices.json", [entry]) == [entry]
    moved = dataclasses.replace(entry, point={**entry.point, "group_size": 3})
    study.save_choices(tmp_path / "choices.json", [moved])
    with pytest.raises(SystemExit):
        study.load_choices(tmp_path / "choices.json", [entry])


def test_neighbours_differ_by_one_rung_and_ends_are_told():
    entry = study.Entry(CELL, contest.RLOO, {"learning_rate": 3.0, "group_size": 2, "num_iterations": 2})
    points = [tuple(one.point.values()) for one in entry.neighbours()]
    assert points == [(1.0, 2, 2), (3.0, 4, 2), (3.0, 2, 1), (3.0, 2, 4)]
    assert entry.at_ends() == ["learning_rate"]  # groups cannot be smaller than 2


def test_expected_episodes_charge_the_runs_that_miss():
    assert contest.expected([100.0, 300.0, None], 1000) == 700.0
    assert contest.expected([None], 1000) == math.inf
    assert contest.close((130.0, 0.0), (100.0, 0.0))
    assert not contest.close((131.0, 0.0), (100.0, 0.0))
    assert contest.close((math.inf, -0.8), (math.inf, -0.7))
    assert contest.close((9e9, -0.96), (math.inf, -0.7))
    assert not contest.close((math.inf, -0.6), (math.inf, -0.7))


def test_generations_compare_expected_episodes():
    options = contest.RLOO.options(CELL, contest.RLOO.start(CELL))
    parameters = {**CELL.parameters, "instance": 0}
    fast, slow, never = (
        run_many(
            CELL.env_id,
            "rloo",
            list(range(6)),
            budget=CELL.budget,
            parameters=parameters,
            hyperparameters={**options, "learning_rate": step},
            fractions=study.fractions(12),
        )
        for step in (0.3, 0.1, 0.001)
    )
    assert tables.generations(fast, fast, CELL.budget) == (1.0, 1.0, 1.0)
    middle, low, high = tables.generations(fast, slow, CELL.budget)
    costs = [contest.expected(contest.episodes_of(records), CELL.budget) for records in (fast, slow)]
    assert 1.0 < low < middle == costs[1] / costs[0] < high
    assert tables.generations(fast, never, CELL.budget) == (math.inf, math.inf, math.inf)
    assert tables.generations(never, fast, CELL.budget) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("group", [1, 2, 4])
def test_noise_is_that_of_simulated_batches(group):
    rewards, beta, score, batches = SETTING.tables.rewards, SETTING.beta, 0.6, 20_000
    probs = path_probs(rewards, beta, theory.tilt_of(SETTING, score))
    rng = np.random.default_rng(0)
    prompts = rng.integers(0, 3, (batches, contest.BATCH // group))[..., None]
    draws = rng.random((batches, contest.BATCH // group, group, 1))
    responses = (draws > probs.cumsum(axis=1)[prompts[..., 0], None, :-1]).sum(axis=-1)
    worth = penalised_rewards(rewards, probs, beta)[prompts, responses]
    if group == 1:
        worth -= optimal_value(SETTING.chances, beta)[prompts]
    else:
        worth -= (worth.sum(axis=-1, keepdims=True) - worth) / (group - 1)
    prompts = np.broadcast_to(prompts, responses.shape)
    number = np.arange(batches)[:, None, None]
    gradients = np.zeros((batches, *rewards.shape))
    np.add.at(gradients, (number, prompts, responses), worth / contest.BATCH)
    gradients -= gradients.sum(axis=-1, keepdims=True) * probs
    noise = gradients.var(axis=0).sum() / (gradients.mean(axis=0) ** 2).sum()
    assert theory.noise_to_signal(SETTING, score, group=group) == pytest.approx(noise, rel=0.03)


def test_noise_with_v_hat_tends_to_that_of_the_optimal_value():
    exact = theory.noise_to_signal(SETTING, 0.95)
    values = [theory.noise_to_signal(SETTING, 0.95, samples=n) for n in (2, 32, 2000)]
    assert values[0] > values[1] > values[2] == pytest.approx(exact, rel=0.02)


def test_the_tilt_of_a_score_has_that_score():
    oracle = OptimalAdvantageOracle(SETTING)
    table = path_probs(SETTING.tables.rewards, SETTING.beta, theory.tilt_of(SETTING, 0.7))
    value = oracle.evaluate(TablePolicy(View.of(SETTING, "prompt"), table))["objective"]
    assert (value - oracle.reference_value) / (oracle.optimal_value - oracle.reference_value) == pytest.approx(0.7)


def test_grpo_goes_where_its_own_term_leads():
    parameters = {"num_prompts": 1, "num_responses": 8, "zero_share": 0.0, "accuracy": 0.125, "concentration": 1e6}
    setting, weight = OptimalAdvantage(**parameters, beta=0.5), 0.5
    p = float(setting.chances[0])

    def loss(s: float) -> float:
        return -s + weight * 8 / 7 * (p * math.log(p / s) + (1 - p) * math.log((1 - p) / (1 - s)))

    best = float(minimize_scalar(loss, bounds=(1e-6, 1 - 1e-6), method="bounded").x)
    kl = best * math.log(best / p) + (1 - best) * math.log((1 - best) / (1 - p))
    score = (best - 0.5 * kl - p) / (float(optimal_value(p, 0.5)) - p)
    assert theory.score_of_grpo(setting, weight) == pytest.approx(score, abs=1e-4)
    cell = contest.advantage("one", 0.5, **parameters)
    options = contest.GRPO.options(
        cell, {**contest.GRPO.start(cell), "scale_rewards": "none", "learning_rate": 0.01, "weight": 1.0}
    )
    agent = make_agent("grpo", **options)
    trained = train(agent, cell.env_id, {**cell.parameters, "instance": 0}, list(range(4)), 2**15)
    found = [float(one.policy.table[0] @ setting.tables.rewards[0]) for one in trained]
    assert np.mean(found) == pytest.approx(best, abs=0.03)
