"""Claims about designs and distillation hold for an independent learner, and fail when their mechanism is broken."""

import dataclasses

import numpy as np
import pytest

from theorybench.agents.training.bradley_terry import fit_bradley_terry
from theorybench.envs.core.policy import LinearPolicy
from theorybench.envs.preference.bandit.design_claims import CLAIMS
from theorybench.envs.preference.bandit.oracle import PreferenceBanditOracle
from theorybench.envs.preference.bandit.setting import PreferenceBandit

CLAIM = {claim.id.removeprefix("preference-"): claim for claim in CLAIMS}


class FactorLab:
    """Learns on the hypercube in the frame of sign vectors z = s_x * y, where all contexts are one.

    What tests break: `second` draws second responses ("design", "policy"), `pairs` come from "initial" or "reference",
    `anchor` is where coordinates without information go ("start", "reference"), and with `copies` all labels of a
    pair repeat its first.
    """

    def __init__(self, setting, second="design", pairs="initial", anchor="start", copies=False):
        self.setting, self.oracle = setting, PreferenceBanditOracle(setting)
        self.second, self.pairs, self.anchor, self.copies = second, pairs, anchor, copies
        size = setting.dimension
        self.signs = 1.0 - 2.0 * (np.arange(2**size)[:, None] >> np.arange(size) & 1)

    def trace(self, agent_name, seeds, budget, *, points, solver, policy, rounds=1, repeats=None):
        assert (solver, policy, points) == ("newton", "linear", rounds)
        courses = []
        for seed in seeds:
            rng, theta, course = np.random.default_rng([11, seed]), np.full(6, self.setting.theta_init), []
            for _ in range(rounds):
                if agent_name == "reward-distillation":
                    theta = self.distil(rng, theta, budget // repeats, repeats)
                else:
                    theta = self.compare(rng, theta, budget // rounds, designed=agent_name == "dpo-hybrid")
                course.append((0, LinearPolicy(self.setting, theta)))
            courses.append(course)
        return courses

    def draw(self, rng, theta, count):
        plus = rng.random((count, 6)) < 1 / (1 + np.exp(-2 * theta))
        return np.where(plus, 1.0, -1.0)

    def win(self, differences):
        return 1 / (1 + np.exp(-self.setting.beta * differences @ self.setting.tables.theta))

    def compare(self, rng, theta, count, designed):
        sampler = np.zeros(6) if self.pairs == "reference" else theta
        first, second = self.draw(rng, sampler, count), self.draw(rng, sampler, count)
        if designed and self.second == "design":
            second = self.signs[rng.choice(len(self.signs), count, p=self.design(theta))]
        differences = first - second
        labels = rng.random(count) < self.win(differences)
        anchor = theta if self.anchor == "start" else np.zeros(6)
        return fit_bradley_terry(differences, labels[None], anchor[None], beta=self.setting.beta)[0]

    def design(self, theta):
        vectors = self.signs - np.tanh(theta)
        weights = np.full(len(vectors), 1 / len(vectors))
        for _ in range(150):
            information = (vectors * weights[:, None]).T @ vectors
            weights = weights * ((vectors @ np.linalg.inv(information)) * vectors).sum(axis=1) / 6
        return weights / weights.sum()

    def distil(self, rng, theta, count, repeats):
        sampler = np.zeros(6) if self.pairs == "reference" else theta
        differences = self.draw(rng, sampler, count) - self.draw(rng, sampler, count)
        wins = rng.binomial(repeats, self.win(differences))
        if self.copies:
            wins = repeats * (rng.random(count) < self.win(differences))
        odds = np.log((wins + 0.5) / (repeats - wins + 0.5)) / self.setting.beta
        return theta + np.linalg.lstsq(differences, odds - differences @ theta, rcond=None)[0]


def check(name, **broken):
    claim = CLAIM[name]
    setting = PreferenceBandit(**claim.parameters)
    return dataclasses.replace(claim, setting=setting, make_lab=lambda s: FactorLab(s, **broken)).check(seed=0)


@pytest.mark.parametrize("name", CLAIM)
def test_claim_holds(name):
    result = check(name)
    assert result.holds, result


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("hybrid-round-1", {"second": "policy"}),
        ("hybrid-floor", {"second": "policy"}),
        ("hybrid-far", {"second": "policy"}),
        ("hybrid-beside-on-policy", {"pairs": "reference"}),
        ("hybrid-beside-on-policy", {"anchor": "reference"}),
        ("distillation-half", {"pairs": "reference"}),
        ("distillation-half", {"copies": True}),
        ("distillation-spans", {"copies": True}),
        ("distillation-noise", {"copies": True}),
        ("distillation-noise", {"pairs": "reference"}),
    ],
)
def test_claim_fails_when_its_mechanism_is_broken(name, broken):
    result = check(name, **broken)
    assert not result.holds, result


def test_predictions_are_the_published_numbers():
    predicted = {name: claim.predicted(claim.bound()[0]) for name, claim in CLAIM.items()}
    assert predicted["hybrid-floor"] == pytest.approx(14.63, abs=0.005)
    assert predicted["hybrid-far"] == pytest.approx(14.63, abs=0.005)
    assert predicted["hybrid-round-1"] == pytest.approx(18.88, abs=0.005)
    assert predicted["hybrid-beside-on-policy"] == pytest.approx(0, abs=1e-9)


def test_the_noise_of_distillation_is_that_of_every_pair_summed():
    setting = PreferenceBandit(dimension=3, num_contexts=2, theta_init=0.7, beta=1.5)
    probs, features = setting.linear_probs(np.full(3, 0.7)), setting.tables.features
    spread, noise = np.zeros((3, 3)), np.zeros((3, 3))
    for x, y, z in np.ndindex(2, 8, 8):
        difference = features[x, y] - features[x, z]
        win = 1 / (1 + np.exp(-setting.beta * difference @ setting.tables.theta))
        part = probs[x, y] * probs[x, z] / 2 * np.outer(difference, difference)
        spread, noise = spread + part, noise + part / (win * (1 - win))
    inverse = np.linalg.inv(spread)
    covariance = PreferenceBanditOracle(setting).optimal_covariance
    expected = np.trace(covariance @ inverse @ noise @ inverse) / 1.5**2
    assert CLAIM["distillation-noise"].predicted(setting) == pytest.approx(expected, rel=1e-10)
