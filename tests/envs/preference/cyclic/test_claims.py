"""Each claim holds for independent learners, and fails for those that break its mechanism."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.preference.cyclic.claims import CLAIMS
from theorybench.envs.preference.cyclic.experiments import exact_rounds
from theorybench.envs.preference.cyclic.oracle import CyclicPreferenceOracle
from theorybench.envs.preference.cyclic.setting import CyclicPreference

CLAIM = {claim.id.removeprefix("cyclic-"): claim for claim in CLAIMS}
ID = "TheoryBench/CyclicPreference-v0"


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


class CountingLab:
    """Learners of tables from counts of labels; what tests break are switches.

    `cyclic`: by how much preferences are more cyclic than they are said to be; `pairs`: "reference", "uniform" or
    "good" in place of those that are asked for; `moving`: the reference is the policy of the round; `weight`: of the
    reference in the opponent, times what is said; `mixture`: added to that weight; `averages`: DPO fits win rates.
    """

    def __init__(self, setting, **broken):
        self.setting, self.oracle, self.broken = setting, CyclicPreferenceOracle(setting), broken
        scored, cyclic = setting.extremes
        share = min(1.0, setting.cyclicity + broken.get("cyclic", 0.0))
        self.wins, self.base = (1 - share) * scored + share * cyclic, np.log(setting.tables.reference)

    def at(self, **parameters):
        return type(self)(dataclasses.replace(self.setting, **parameters), **self.broken)

    def simulate(self, policy, episodes, seed):
        rng, probs = np.random.default_rng([7, seed]), policy.probs(self.oracle.observations)
        probs = self.others().get(self.broken.get("pairs"), probs)
        prompts = rng.integers(len(probs), size=episodes)
        ends = np.cumsum(probs, axis=1)[prompts]
        pair = np.minimum((rng.random((episodes, 2, 1)) > ends[:, None]).sum(axis=2), probs.shape[1] - 1)
        rewards = (rng.random(episodes) < self.wins[prompts, pair[:, 0], pair[:, 1]]) - 0.5
        return SimpleNamespace(prompts=prompts, actions=pair[:, None], rewards=rewards)

    def others(self):
        """Policies that pairs may come from instead."""
        reference = self.setting.tables.reference
        uniform = np.full_like(reference, 1 / reference.shape[1])
        return {"reference": reference, "uniform": uniform, "good": softmax(2 * self.setting.scores)}

    def labels(self, rng, probs, count):
        """Count labels of pairs of a policy: how often i met j, and how often it won, (X, K, K) each."""
        joint = (probs[:, :, None] * probs[:, None] / len(probs)).ravel()
        met = rng.multinomial(count, joint / joint.sum()).reshape(self.wins.shape)
        won = rng.binomial(met, self.wins)
        return met + met.swapaxes(1, 2), won + (met - won).swapaxes(1, 2)

    def mirror(self, seed, budget, schedule):
        """Mirror descent against a mixture; the policy after each round."""
        rng, logits = np.random.default_rng([8, seed]), self.base
        for weight, step in schedule:
            weight = min(1.0, weight * self.broken.get("weight", 1.0) + self.broken.get("mixture", 0.0))
            base = logits if self.broken.get("moving") else self.base
            mixed = (1 - weight) * logits + weight * base
            met, won = self.labels(rng, softmax(mixed), budget // len(schedule))
            logits = mixed + step * (won - met / 2).sum(axis=2) / np.maximum(met.sum(axis=2), 1)
            yield self.oracle.policy(softmax(logits))

    def nash_md(self, seed, budget, rounds=100, mixture=None, eta=None):
        weights = [2 / (t + 2) if mixture is None else mixture for t in range(rounds)]
        return list(self.mirror(seed, budget, [(w, eta or w / self.setting.beta) for w in weights]))

    def ipo(self, seed, budget, tau, rounds, gradient_steps):
        rng, logits = np.random.default_rng([9, seed]), self.base
        for _ in range(rounds):
            base = logits if self.broken.get("moving") else self.base
            sampler = self.base if self.broken.get("pairs") == "reference" else logits
            met, won = self.labels(rng, softmax(sampler), budget // rounds)
            # Least squares of h_i - h_j on the mean label: the Laplacian of the pairs.
            laplacian = met.sum(axis=2)[:, :, None] * np.eye(met.shape[1]) - met
            pull = (won - met / 2).sum(axis=2) / tau
            logits = base + np.stack([np.linalg.pinv(own) @ b for own, b in zip(laplacian, pull, strict=True)])
        return [self.oracle.policy(softmax(logits))]

    def dpo(self, seed, budget):
        rng, reference = np.random.default_rng([10, seed]), self.setting.tables.reference
        probs = self.others().get(self.broken.get("pairs"), reference)
        met, won = self.labels(rng, probs, budget)
        if self.broken.get("averages"):
            scores = won.sum(axis=2) / met.sum(axis=2)
        else:  # Zermelo's iteration of worths
            worth = np.ones_like(reference)
            for _ in range(300):
                worth = won.sum(axis=2) / (met / (worth[:, :, None] + worth[:, None])).sum(axis=2)
                worth /= worth.sum(axis=1, keepdims=True)
            scores = np.log(worth)
        return [self.oracle.policy(softmax(self.base + scores / self.setting.beta))]

    def train(self, name, seeds, budget, **options):
        if name == "dpo-offline":
            return [self.dpo(seed, budget)[-1] for seed in seeds]
        return [getattr(self, name.replace("-", "_"))(seed, budget, **options)[-1] for seed in seeds]

    def trace(self, name, seeds, budget, *, points, rounds, eta, mixture=0.0):
        assert points == rounds and name == ("nash-md" if mixture else "sppo")
        schedule = [(mixture, eta)] * rounds
        return [list(enumerate(self.mirror(seed, budget, schedule))) for seed in seeds]


def check(name, seed=0, **broken):
    claim = CLAIM[name]
    setting = CyclicPreference(**claim.parameters)
    return dataclasses.replace(claim, setting=setting, make_lab=lambda s: CountingLab(s, **broken)).check(seed=seed)


@pytest.mark.parametrize("name", CLAIM)
def test_claim_holds(name):
    result = check(name)
    assert result.holds, result


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("borda", {"pairs": "reference"}),
        ("borda-rival", {"pairs": "good"}),
        ("below-threshold", {"pairs": "reference"}),
        ("above-threshold", {"pairs": "reference"}),
        ("above-threshold-rival", {"pairs": "good"}),
        ("threshold", {"pairs": "reference"}),
        ("win-rate", {"cyclic": 0.2}),
        ("win-rate-outside", {"cyclic": 0.2}),
        ("dpo-margin", {"pairs": "good"}),
        ("dpo-margin", {"averages": True}),
        ("dpo-limit", {"pairs": "uniform"}),
        ("dpo-limit", {"averages": True}),
        ("nash-md", {"moving": True}),
        ("nash-md", {"weight": 0.5}),
        ("nash-md-large-beta", {"moving": True}),
        ("nash-md-large-beta", {"weight": 0.2}),
        ("nash-md-small-beta", {"moving": True}),
        ("nash-md-small-beta", {"mixture": 0.05}),
        ("nash-md-mixture", {"weight": 0.5}),
        ("nash-md-mixture", {"moving": True}),
        ("ipo-on-policy", {"pairs": "reference"}),
        ("ipo-on-policy", {"moving": True}),
        ("sppo-last", {"mixture": 0.1}),
        ("sppo-distance", {"mixture": 0.1}),
        ("sppo-mean", {"mixture": 0.3}),
    ],
)
def test_claim_fails_when_its_mechanism_is_broken(name, broken):
    result = check(name, **broken)
    assert not result.holds, result


def test_a_learner_whose_reference_moves_is_far_from_the_fixed_point():
    """It loses the KL term: less and less holds it, and in a ring it circles."""
    setting = CyclicPreference(beta=0.2)
    kept, moved = (CountingLab(setting, **broken) for broken in ({}, {"moving": True}))
    scores = [np.mean([lab.oracle.score(p) for p in lab.train("nash-md", range(4), 100_000)]) for lab in (kept, moved)]
    assert scores[0] > 0.98 and scores[1] < 0.9
    residuals = [lab.oracle.evaluate(lab.train("nash-md", [0], 100_000)[0])["residual"] for lab in (kept, moved)]
    assert residuals[1] > 3 * residuals[0]


@pytest.mark.parametrize("rounds", [1, 10, 100, 1000])
def test_rounds_without_noise_obey_the_theorems(rounds):
    """KL(pi* || pi_T) <= 8 / (tau^2 (T + 1)) of Nash-MD; the regret of exponential weights of self-play."""
    for beta in (0.1, 0.5, 2.0):
        setting = CyclicPreference(beta=beta, cyclicity=0.9, tilt=-3.0)
        best = CyclicPreferenceOracle(setting).optimal_policy.table
        last = exact_rounds(setting, [(2 / (t + 2), 2 / (t + 2) / beta) for t in range(rounds)])[-1]
        assert (best * np.log(best / last)).sum(axis=1).max() <= 8 / (beta**2 * (rounds + 1))
    oracle = CyclicPreferenceOracle(CyclicPreference(cyclicity=1.0))
    for step in (0.1, 1.0):
        before = np.concatenate([[oracle.setting.tables.reference], exact_rounds(oracle.setting, [(0, step)] * rounds)])
        lost = oracle.evaluate(oracle.policy(before[:-1].mean(axis=0)), ["exploitability"])["exploitability"]
        bound = np.log(1 / oracle.setting.tables.reference.min()) / (step * rounds) + step / 8
        assert lost <= bound


def test_self_play_moves_away_by_the_logarithm_that_is_stated():
    oracle = CyclicPreferenceOracle(CyclicPreference(cyclicity=1.0, num_contexts=1))
    reference, wins, nash = (
        oracle.setting.tables.reference[0],
        oracle.setting.tables.wins[0],
        oracle.nash_policy.table[0],
    )
    policies = [reference, *exact_rounds(oracle.setting, [(0.0, 0.5)] * 10)[:, 0]]
    gone = (nash * np.log(nash / reference)).sum()
    for policy in policies[:-1]:
        gone += np.log(policy @ np.exp(0.5 * (wins @ policy - 0.5)))
    assert gone == pytest.approx((nash * np.log(nash / policies[-1])).sum(), abs=1e-9)


def test_every_claim_is_registered_and_documented():
    assert [claim.id for claim in tb.claims(ID)] == [claim.id for claim in CLAIMS]
    assert all(claim.falsified_by and claim.formula and "arXiv" in claim.source for claim in CLAIMS)


def test_claims_of_the_package_hold_where_they_are_quick():
    for claim in tb.claims(ID):
        if claim.id in ("cyclic-borda", "cyclic-win-rate", "cyclic-sppo-distance"):
            assert claim.check(seed=3).holds


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("claim", tb.claims(ID), ids=lambda claim: claim.id)
def test_claims_of_the_package_hold_at_every_seed(claim, seed):
    result = claim.check(seed=seed)
    assert result.holds, result
