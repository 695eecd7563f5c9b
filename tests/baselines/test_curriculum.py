"""Agents that climb: what their rungs ask for, that they reach what direct training does not, and how they fail."""

import itertools

import gymnasium as gym
import numpy as np
import pytest
import torch

from theorybench.agents import make_agent
from theorybench.agents.budget import attach, batch_of
from theorybench.agents.curriculum import Rung, climb
from theorybench.agents.harness import train
from theorybench.agents.rollout import collect
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.registry import lookup
from theorybench.leaderboard.runner import run_many

TREE = "TheoryBench/ReasoningTree-v0"
SMALL = {"instance": 10_000, "d": 4, "L": 4}
CLIMBERS = (
    "curriculum-rlvr",
    "curriculum-rlvr[curriculum=hint]",
    "curriculum-rlvr[rung_episodes=1200]",
    "curriculum-astar-po",
    "curriculum-astar-po[curriculum=hint]",
    "adaptive-curriculum",
    "adaptive-curriculum[curriculum=hint]",
    "mixture-rlvr",
    "mixture-rlvr[curriculum=hint]",
    "curriculum-search",
    "curriculum-search[curriculum=hint]",
)


@pytest.mark.parametrize("name", CLIMBERS)
def test_what_climbs_learns_what_direct_training_does_not(name):
    assert make_agent(name).way == "curriculum" and make_agent("rlvr").way == "direct"
    records = run_many(TREE, name, [0, 1], budget=12_000, parameters=SMALL | {"L": 7})
    assert all(record.score > 0.9 for record in records)
    assert all(record.spent.episodes <= 12_000 for record in records)


def test_direct_search_finds_nothing_there():
    (record,) = run_many(TREE, "curriculum-search[curriculum=none]", [0], budget=3_000, parameters=SMALL | {"L": 7})
    assert make_agent("curriculum-search[curriculum=none]").way == "direct"
    assert record.score == pytest.approx(0, abs=1e-6)


def test_the_rungs_of_a_setting():
    setting = lookup(TREE).make_setting({"d": 3, "L": 2})
    assert climb(setting, "depth") == [Rung(1, 0), Rung(2, 0), Rung(3, 0)]
    assert climb(setting, "hint") == [Rung(3, 2), Rung(3, 1), Rung(3, 0)]
    without = lookup("TheoryBench/TreeMarkovChain-v0").make_setting({})
    assert climb(without, "depth") == climb(without, "hint") == [Rung(1, 0)]


def test_each_episode_may_have_a_stage_and_a_hint_of_its_own():
    envs = gym.make_vec(TREE, num_envs=4, **SMALL)
    batch = batch_of(envs)
    batch.seed(0)
    attach(envs, 1000)
    stages, hints = np.array([1, 2, 3, 4, 5, 5, 3]), np.array([0, 0, 1, 2, 0, 4, 2])

    def choose(observations, legal, numbers, step):
        assert (((observations[:, 4:] > 0).sum(axis=1)) == hints[numbers] + step).all()
        return np.zeros(len(observations), np.int64), np.zeros(len(observations))

    episodes = collect(batch, choose, len(stages), stage=stages, hint=hints)
    np.testing.assert_array_equal(episodes.lengths, stages - hints)


@pytest.mark.parametrize("name", ["adaptive-curriculum", "mixture-rlvr", "curriculum-astar-po"])
def test_a_run_alone_is_the_run_among_others(name):
    together = train(make_agent(name), TREE, SMALL, [3, 4], 3000)
    for seed, outcome in zip((3, 4), together, strict=True):
        alone = train(make_agent(name), TREE, SMALL, [seed], 3000)[0]
        np.testing.assert_array_equal(alone.policy.table, outcome.policy.table)


def test_an_adaptive_run_stays_until_a_rung_is_mastered():
    rungs = []

    class Listener:
        due = True

        def __call__(self, policy, **scalars):
            rungs.append((scalars["rung"], scalars["reward"]))

    agent = make_agent("adaptive-curriculum[threshold=0.8]")
    envs = gym.make_vec(TREE, num_envs=agent.num_envs, **SMALL)
    (budget,) = attach(envs, 8000)
    agent.train(envs, budget, seed=0, log=Listener())
    assert [rung for rung, _ in rungs] == sorted(rung for rung, _ in rungs) and rungs[-1][0] == 5
    for (rung, reward), (following, _) in itertools.pairwise(rungs):
        assert following == min(rung + (reward >= 0.8), 5)


def test_rewards_are_compared_within_a_rung():
    agent = make_agent("mixture-rlvr")
    rungs, rewards = torch.tensor([0.0, 0, 1, 1, 1, 2]), torch.tensor([1.0, 0, 1, 1, 0, 1])
    log_probs = torch.arange(12.0).reshape(6, 2)

    class Data:
        values = rungs

    Data.rewards = rewards
    expected = 0.0
    for i in range(6):
        peers = [float(rewards[j]) for j in range(6) if j != i and rungs[j] == rungs[i]]
        if peers:
            expected -= (float(rewards[i]) - np.mean(peers)) * float(log_probs[i].sum()) / 6
    assert float(agent.loss(log_probs, Data)) == pytest.approx(expected)


def test_a_search_forgets_what_a_one_bit_verifier_paid_by_chance():
    parameters = {"instance": 3, "d": 4, "L": 3, "verifier": "parity"}
    records = run_many(TREE, "curriculum-search", [0, 1, 2], budget=20_000, parameters=parameters)
    assert [record.score for record in records] == [1.0, 1.0, 1.0]
    assert all(record.spent.episodes < 20_000 for record in records)


def test_a_curriculum_that_does_not_exist_is_refused():
    with pytest.raises(ParameterError, match="curriculum"):
        make_agent("curriculum-rlvr[curriculum=width]")
