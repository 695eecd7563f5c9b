"""Each claim holds for an independent REINFORCE, and fails for the learner that breaks its mechanism."""

import dataclasses
import functools
import inspect
import itertools

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.core.evidence.claim import ClaimResult
from theorybench.envs.core.numerics import softmax
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.views import View
from theorybench.envs.tree.markov_chain.claims import CLAIMS
from theorybench.envs.tree.markov_chain.evidence.inference_time_claims import CLAIMS as TEST_TIME_CLAIMS
from theorybench.envs.tree.markov_chain.oracle import MarkovChainOracle
from theorybench.envs.tree.markov_chain.setting import TreeMarkovChain
from theorybench.leaderboard.evidence.lab import TrainingLab

#: Claims about training; those about search at test time have tests of their own.
CLAIM = {claim.id.removeprefix("tree-"): claim for claim in CLAIMS if claim not in TEST_TIME_CLAIMS}
TREE, ONLY_EASY = "TheoryBench/TreeMarkovChain-v0", "Toy/OnlyEasyTree-v0"


@dataclasses.dataclass(frozen=True, kw_only=True)
class OnlyEasyTree(TreeMarkovChain):
    """The same tree under a verifier for whom hard CoTs are wrong."""

    def transition(self, state, actions, rng):
        moved, rewards, ended = super().transition(state, actions, rng)
        easy = self.tree.high[state.node, actions]
        return moved._replace(correctness=moved.correctness * easy), rewards * easy, ended


tb.register(ONLY_EASY, OnlyEasyTree, MarkovChainOracle, budget=1000)


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
def reinforce(setting, view_name, rate, updates, batch, seeds, kl, tries, accurate=False):
    """Plain REINFORCE of many runs at once, on the first task: tables of probabilities (runs, rows, M).

    `kl` weighs a penalty to the reference in the reward; with `tries` = n > 0 a question is skipped when one of n
    further samples solves it (reject-easy). An `accurate` verifier accepts every valid CoT.
    """
    rng, view, M = np.random.default_rng([11, *seeds]), View.of(setting, view_name), setting.M
    listing = MarkovChainOracle(setting).enumeration
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

    chance = np.ceil(acc) if accurate else acc
    for _ in range(updates):
        question = rng.random((len(run), len(acc))) < chance
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
        self.simulate = TrainingLab(TREE, setting).simulate

    def train(self, agent_name, seeds, budget, *, policy, learning_rate, episodes_per_update, kl, reject_easy, **plain):
        assert agent_name == "rlvr" and plain == {"optimizer": "sgd", "baseline": "none", "start": "reference"}
        updates, questions = budget // episodes_per_update, episodes_per_update // (1 + reject_easy)
        used = {"view_name": policy, "rate": learning_rate, "kl": kl, "tries": reject_easy} | self.broken
        view, tables = reinforce(self.setting, updates=updates, batch=questions, seeds=tuple(seeds), **used)
        return [TablePolicy(view, table) for table in tables]


def check(name: str, **broken) -> ClaimResult:
    claim = CLAIM[name]
    setting = TreeMarkovChain(**claim.parameters)
    bound = dataclasses.replace(claim, setting=setting, make_lab=lambda s: SampledLab(s, **broken))
    return bound.check(seed=0)


SLOW = ("squeezing-noise", "consistency-limit", "exploration-queries", "exploration-limit", "exploration-coverage")


def cases(*rows):
    return [pytest.param(*row, marks=pytest.mark.slow if row[0] in SLOW else ()) for row in rows]


@pytest.mark.parametrize("name", cases(*((name,) for name in CLAIM)))
def test_claim_holds(name: str) -> None:
    result = check(name)
    assert result.holds, result


@pytest.mark.parametrize(
    ("name", "broken"),
    cases(
        ("squeezing", {"kl": 0.2}),
        ("squeezing", {"accurate": True}),
        ("squeezing-hard", {"tries": 5}),
        ("squeezing-hard", {"accurate": True}),
        ("squeezing-noise", {"rate": 0.06}),
        ("forgetting", {"view_name": "prefix"}),
        ("forgetting-prefix", {"view_name": "markov"}),
        ("consistency", {"tries": 5}),
        ("consistency-many-tries", {"tries": 5}),
        ("consistency-many-tries", {"accurate": True}),
        ("consistency-limit", {"tries": 5}),
        ("exploration", {"tries": 0}),
        ("exploration", {"accurate": True}),
        ("exploration-updates", {"tries": 0}),
        ("exploration-queries", {"tries": 0}),
        ("exploration-limit", {"tries": 0}),
        ("exploration-coverage", {"tries": 0, "kl": 1.0}),
        ("kl-early", {"kl": 0.0}),
        ("kl-early", {"accurate": True}),
        ("kl-limit", {"kl": 0.5}),
        ("kl-limit", {"kl": 0.0, "tries": 5}),
        ("hard-questions-lead", {"tries": 5}),
        ("hard-questions-lead", {"accurate": True}),
    ),
)
def test_claim_fails_for_another_algorithm(name: str, broken: dict) -> None:
    result = check(name, **broken)
    assert not result.holds, result


def test_nothing_but_easy_cots_solves_a_question_for_a_verifier_of_these_alone() -> None:
    claim = CLAIM["hard-questions"]
    setting = OnlyEasyTree(**claim.parameters)
    result = dataclasses.replace(claim, setting=setting, make_lab=functools.partial(TrainingLab, ONLY_EASY)).check()
    assert not result.holds and result.measured == 0.0, result


def test_every_claim_is_whole() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIM.values():
        assert "2511.07368" in claim.source
        assert "tolerance" in claim.source and claim.falsified_by and claim.formula
        assert inspect.ismethod(claim.measure)
    assert {c.id for c in tb.claims(TREE)} == {claim.id for claim in CLAIMS}


@pytest.mark.slow
@pytest.mark.parametrize("claim", tb.claims(TREE), ids=lambda claim: claim.id)
def test_claim_holds_for_the_shipped_baseline(claim: tb.Claim) -> None:
    result = claim.check(seed=3)
    assert result.holds, result
