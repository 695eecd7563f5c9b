"""Each claim holds for an independent REINFORCE, and fails for the learner that breaks its mechanism."""

import dataclasses
import functools
import inspect
import itertools

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.core.claim import ClaimResult
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.views import View
from theorybench.envs.tree.flow import softmax
from theorybench.envs.tree.markov_chain import TreeMarkovChain
from theorybench.envs.tree.markov_chain_claims import CLAIMS
from theorybench.envs.tree.markov_chain_oracle import MarkovChainOracle

CLAIM = {claim.id.removeprefix("tree-"): claim for claim in CLAIMS}


def first_task_correctness(setting):
    """acc of every CoT of the first task, by the number that its actions spell in base M: float64 (M^(L-1),)."""
    paths = np.array(list(itertools.product(range(setting.M), repeat=setting.L - 1)))
    node, probability = np.full(len(paths), setting.tree.starts[0]), np.ones(len(paths))
    for t, action in enumerate(paths.T):
        probability *= setting.chain[node, action]
        node = setting.M0 + t * setting.M + action
    probability *= paths[:, -1] == setting.tree.targets[0]
    return probability / probability.sum()


@functools.cache
def reinforce(setting, view_name, rate, updates, batch, seeds, kl, tries):
    """Plain REINFORCE of many runs at once, on the first task: tables of probabilities (runs, rows, M).

    `kl` weighs a penalty to the reference in the reward; with `tries` = n > 0 a question is skipped when one of n
    further samples solves it (reject-easy).
    """
    rng, view, M = np.random.default_rng([11, *seeds]), View.of(setting, view_name), setting.M
    listing = MarkovChainOracle(setting).listing
    observations = np.concatenate([listing.observations(t) for t in range(setting.L - 1)])
    rows, digits = view.index(observations), (M + 1) ** np.arange(setting.L)
    row_of = np.zeros((M + 1) ** setting.L, np.int64)
    row_of[observations @ digits] = rows
    reference = np.full((view.rows, M), -np.log(M))
    reference[rows] = np.log(setting.reference_probs(observations))
    logits, acc = np.tile(reference, (len(seeds), 1, 1)), first_task_correctness(setting)
    run = np.repeat(np.arange(len(seeds)), batch)
    every = np.arange(len(run))

    def sample():
        prefix, path, ratio, steps = np.full(len(run), setting.tree.starts[0] + 1), 0, 0.0, []
        for t in range(setting.L - 1):
            row = row_of[prefix]
            probs = softmax(logits[run, row])
            action = (np.cumsum(probs, 1) < rng.random(len(run))[:, None]).sum(1).clip(max=M - 1)
            steps.append((row, np.eye(M)[action] - probs))
            ratio = ratio + np.log(probs[every, action]) - reference[row, action]
            prefix, path = prefix + (action + 1) * digits[t + 1], path * M + action
        return path, ratio, steps

    for _ in range(updates):
        question = rng.random((len(run), len(acc))) < acc
        path, ratio, steps = sample()
        advantage = question[every, path] - kl * ratio
        for _ in range(tries):
            advantage = advantage * ~question[every, sample()[0]]
        gradient = np.zeros_like(logits)
        for row, score in steps:
            np.add.at(gradient, (run, row), advantage[:, None] * score)
        logits += rate / batch * gradient
    return view, softmax(logits)


class SampledLab:
    """Trains by `reinforce`; what tests break are overrides of the algorithm."""

    def __init__(self, setting, **broken):
        self.setting, self.oracle, self.broken = setting, MarkovChainOracle(setting), broken

    def train(self, agent_name, seeds, budget, *, policy, learning_rate, episodes_per_update, **plain):
        assert agent_name == "rlvr" and plain == {"optimizer": "sgd", "baseline": "none", "start": "reference"}
        updates, batch = budget // episodes_per_update, episodes_per_update
        given = {"policy": policy, "rate": learning_rate, "kl": 0.0, "tries": 0} | self.broken
        policy, rate, kl, tries = given.values()
        view, tables = reinforce(self.setting, policy, rate, updates, batch, tuple(seeds), kl, tries)
        return [TablePolicy(view, table) for table in tables]


def check(name: str, **broken) -> ClaimResult:
    claim = CLAIM[name]
    setting = TreeMarkovChain(**claim.parameters)
    bound = dataclasses.replace(claim, setting=setting, make_lab=lambda s: SampledLab(s, **broken))
    return bound.check(seed=0)


SLOW = ("squeezing-noise", "consistency-limit")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in CLAIM])
def test_claim_holds(name: str) -> None:
    result = check(name)
    assert result.holds, result


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("squeezing", {"kl": 0.2}),
        ("squeezing-hard", {"tries": 5}),
        ("squeezing-noise", {"rate": 0.06}),
        ("forgetting", {"policy": "prefix"}),
        ("forgetting-prefix", {"policy": "markov"}),
        ("consistency", {"tries": 5}),
        ("consistency-many-tries", {"tries": 5}),
        pytest.param("consistency-limit", {"tries": 5}, marks=pytest.mark.slow),
    ],
)
def test_claim_fails_for_another_algorithm(name: str, broken: dict) -> None:
    result = check(name, **broken)
    assert not result.holds, result


def test_every_claim_is_whole() -> None:
    assert len(CLAIM) == len(CLAIMS)
    for claim in CLAIMS:
        assert "2511.07368" in claim.source and claim.falsified_by and inspect.ismethod(claim.measure)
        assert {c.id for c in tb.claims("TheoryBench/TreeMarkovChain-v0")} >= {claim.id}


@pytest.mark.slow
@pytest.mark.parametrize("claim", tb.claims("TheoryBench/TreeMarkovChain-v0"), ids=lambda claim: claim.id)
def test_claim_holds_for_the_shipped_baseline(claim: tb.Claim) -> None:
    result = claim.check(seed=3)
    assert result.holds, result
