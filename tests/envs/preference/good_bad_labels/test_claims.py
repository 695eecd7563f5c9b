"""Each claim holds for an independent learner, and fails for the learner that breaks its mechanism."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize

import theorybench as tb
from theorybench.envs.preference.good_bad_labels.claims import CLAIMS, SIZES
from theorybench.envs.preference.good_bad_labels.experiments import DPO, KTO, AverageLimit, Emptied, Learner
from theorybench.envs.preference.good_bad_labels.oracle import GoodBadLabelsOracle
from theorybench.envs.preference.good_bad_labels.setting import GoodBadLabels

CLAIM = {claim.id.removeprefix("labels-"): claim for claim in CLAIMS}
ID = "TheoryBench/GoodBadLabels-v0"


class FittingLab:
    """Draws counts of labels and minimises the papers' losses with scipy; what tests break are switches.

    `weight`: of good responses in the mixture that is drawn and labelled; `labels`: likewise, in labels alone;
    `flipped`: share of labels that are turned round; `scores`: the responses that are good most often are good, the
    others bad; `fewer`: part of the labels that are used; `share`: what is believed whatever is asked for; `moved`: the
    learner's reference is where responses come from; `beta`: of losses; `instead`: agent that is trained instead.
    """

    def __init__(self, setting, **broken):
        self.setting, self.oracle, self.broken = setting, GoodBadLabelsOracle(setting), broken
        tables, share = setting.tables, setting.good_share
        drawn, labelled = broken.get("weight", share), broken.get("labels", broken.get("weight", share))
        self.start = drawn * tables.good + (1 - drawn) * tables.bad
        good = labelled * tables.good
        self.chance = good / (good + (1 - labelled) * tables.bad)
        if broken.get("scores"):
            self.chance = (tables.chance > np.median(tables.chance, axis=1, keepdims=True)).astype(float)
        flipped = broken.get("flipped", 0.0)
        self.chance = (1 - flipped) * self.chance + flipped * (1 - self.chance)
        self.reference = tables.mixture if broken.get("moved") else setting.reference

    def at(self, **parameters):
        return type(self)(dataclasses.replace(self.setting, **parameters), **self.broken)

    def train(self, name, seeds, budget, **options):
        for ignored in ("learning_rate", "gradient_steps", "episodes_per_update"):
            options.pop(ignored, None)
        name, options = self.broken.get("instead", (name, options))
        used = int(budget * self.broken.get("fewer", 1.0))
        fit = {"ddro": self.ddro, "kto": self.kto, "online-dpo": self.dpo}[name]
        return [self.oracle.policy(fit(np.random.default_rng([9, seed]), used, **options)) for seed in seeds]

    def counts(self, rng, n):
        contexts = len(self.start)
        shown = rng.multinomial(n, self.start.ravel() / contexts).reshape(self.start.shape)
        good = rng.binomial(shown, self.chance)
        return good, shown - good

    def ddro(self, rng, n, *, variant, good_share="data"):
        good, bad = self.counts(rng, n)
        t = self.broken.get("share", good.sum() / n if good_share == "data" else good_share)
        good, bad = good / good.sum(), bad / bad.sum()

        def ratio(policy, x):
            u = policy / self.reference[x]
            if (t * u >= 1).any():
                return 1e9, np.zeros_like(u)
            both, bend = good[x] + bad[x], 1 - 2 * t
            loss = both @ np.log(1 + bend * u) - good[x] @ np.log(u) - bad[x] @ np.log(1 - t * u)
            return loss, (both * bend / (1 + bend * u) - good[x] / u + bad[x] * t / (1 - t * u)) / self.reference[x]

        def two_term(policy, x):
            u, total = policy / self.reference[x], (1 + t) * good[x] + (1 - t) * bad[x]
            return total @ np.log1p(u) - good[x] @ np.log(u), (total / (1 + u) - good[x] / u) / self.reference[x]

        loss = two_term if variant == "two-term" else ratio
        return np.array([descend(loss, self.setting.tables.mixture[x], x) for x in range(len(good))])

    def kto(self, rng, n, *, beta):
        (good, bad), beta = self.counts(rng, n), self.broken.get("beta", beta)
        marginal = (good + bad).sum(axis=0) / n  # of mismatched responses
        policy, baseline = self.start, 0.0

        def loss(policy, x):
            logs = np.log(policy / self.reference[x])
            kept = 1 / (1 + np.exp(-beta * (logs - baseline)))
            value = good[x] @ (1 - kept) + bad[x] @ kept
            return value / n, (bad[x] - good[x]) * kept * (1 - kept) * beta / policy / n

        for _ in range(3):
            policy = np.array([descend(loss, self.start[x], x) for x in range(len(good))])
            baseline = max(0.0, float((marginal * np.log(policy / self.reference)).sum(axis=1).mean()))
        return policy

    def dpo(self, rng, n, *, sampler, beta):
        assert sampler == "offline"
        beta, (contexts, responses) = self.broken.get("beta", beta), self.start.shape
        x = rng.integers(contexts, size=n // 2)
        ends = np.cumsum(self.start, axis=1)[x]
        first, second = (np.minimum((rng.random(len(x))[:, None] > ends).sum(axis=1), responses - 1) for _ in range(2))
        good = [rng.random(len(x)) < self.chance[x, y] for y in (first, second)]
        wins = np.zeros((contexts, responses, responses))
        for winner, loser, here in ((first, second, good[0] & ~good[1]), (second, first, good[1] & ~good[0])):
            np.add.at(wins, (x[here], winner[here], loser[here]), 1 / len(x))

        def loss(policy, x):
            logs = beta * np.log(policy / self.reference[x])
            margins = logs[:, None] - logs
            slope = wins[x] / (1 + np.exp(margins))
            by_logs = beta * (slope.sum(axis=0) - slope.sum(axis=1))
            return (wins[x] * np.logaddexp(0, -margins)).sum(), by_logs / policy

        return np.array([descend(loss, self.start[x], x) for x in range(contexts)])


def descend(loss, start, x):
    """Minimise a loss of a distribution, (value, gradient by it), on logits."""

    def of_logits(logits):
        policy = np.maximum(np.exp(logits - np.logaddexp.reduce(logits)), 1e-200)
        value, slope = loss(policy, x)
        return value, policy * (slope - policy @ slope)

    found = minimize(of_logits, np.log(start), jac=True, method="BFGS", options={"gtol": 1e-8}).x
    return np.exp(found - np.logaddexp.reduce(found))


def check(name, seed=0, **broken):
    claim = CLAIM[name]
    setting = GoodBadLabels(**claim.parameters)
    return dataclasses.replace(claim, setting=setting, make_lab=lambda s: FittingLab(s, **broken)).check(seed=seed)


@pytest.mark.parametrize("name", CLAIM)
def test_claim_holds(name):
    result = check(name)
    assert result.holds, result


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        *((name, {"weight": 0.35}) for name in ("ddro", "two-term", "cyclic", "rate", "kto")),
        *((name, {"labels": 0.4}) for name in ("ddro", "two-term", "cyclic", "kto")),
        *((name, {"share": 0.4}) for name in ("ddro", "two-term", "cyclic", "rate")),
        *((name, {"scores": True}) for name in ("ddro", "two-term", "cyclic", "dpo-cyclic")),
        *((name, {"fewer": 0.5}) for name in ("rate", "rate-two-term")),  # half of what is charged
        *((name, {"flipped": 0.1}) for name in ("dpo", "dpo-cyclic", "ddro")),
        *((name, {"beta": 2.0}) for name in ("dpo", "dpo-cyclic")),
        ("kto", {"instead": ("ddro", {"variant": "ratio"})}),
        ("kto-empties", {"instead": ("ddro", {"variant": "ratio"})}),
        *((name, {"share": 0.5}) for name in ("wrong-share", "wrong-share-two-term")),
        *((name, {"moved": True}) for name in ("wrong-reference", "wrong-reference-two-term")),
        *((name, {"labels": 0.4}) for name in ("wrong-reference", "wrong-reference-two-term")),
        *((name, {"labels": 0.65}) for name in ("wrong-share", "wrong-share-two-term")),
    ],
)
def test_claim_fails_when_its_mechanism_is_broken(name, broken):
    result = check(name, **broken)
    assert not result.holds, result


def test_dpo_does_not_see_the_mixture_weight_of_labels():
    """A good beside a bad response says nothing of how many are good."""
    assert check("dpo", labels=0.3).holds


@pytest.mark.parametrize("responses", SIZES)
@pytest.mark.parametrize("parameters", [{"good_share": 0.1}, {"concentration": 3.0}, {"beta": 2.0}])
def test_averages_are_of_these_laws(responses, parameters):
    claim = CLAIM[f"dpo-{responses}"]
    learner = Learner("online-dpo", "dpo", known=(("beta", parameters.get("beta", 1.0)),))
    others = {name: value for name, value in parameters.items() if name != "beta"}
    setting = GoodBadLabels(**claim.parameters, **others)
    experiment = AverageLimit(learner)
    measured = dataclasses.replace(claim, measure=experiment.measure, setting=setting, make_lab=FittingLab)
    assert not measured.check().holds


def test_rejected_responses_hold_much_of_the_target():
    """What KTO empties is no trifle: p+ has a quarter of its mass there."""
    setting = GoodBadLabels(**CLAIM["kto-empties"].parameters)
    assert Emptied.rejected(setting, setting.tables.good[None])[0] > 0.2
    assert Emptied(KTO).predicted(setting) == 0.0


def test_predictions_are_far_from_nothing():
    predicted = {name: claim.predicted(claim.bound()[0]) for name, claim in CLAIM.items()}
    for name in ("dpo", "dpo-cyclic", "kto", "wrong-reference", "wrong-reference-two-term"):
        assert predicted[name] > 0.1
    for name in ("wrong-share", "wrong-share-two-term"):
        assert predicted[name] > 8 * CLAIM[name].tolerance
    assert predicted["rate"] > 10 * CLAIM["rate"].tolerance
    assert GoodBadLabelsOracle(GoodBadLabels()).distance(DPO.end(GoodBadLabels())) > 0.5


@pytest.mark.parametrize("name", ["ddro", "kto-empties", "wrong-reference-two-term"])
def test_claim_holds_for_the_agents_that_ship(name):
    (claim,) = [claim for claim in tb.claims(ID) if claim.id == f"labels-{name}"]
    result = claim.check(seed=1)
    assert result.holds, result


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_all_claims_hold_for_the_agents_that_ship(seed):
    for claim in tb.claims(ID):
        result = claim.check(seed=seed)
        assert result.holds, (claim.id, result)


def test_the_study_shows_rates_and_limits():
    (study,) = tb.studies(ID)
    setting = GoodBadLabels(num_responses=6, num_contexts=2)
    result = study.run(FittingLab(setting), 0, 2)
    mixture, cyclic, shares = result.charts
    for chart in (mixture, cyclic):
        lines = {series.group: series for series in chart.series if series.style == "predicted"}
        slope = np.diff(np.log(lines["DDRO"].y)) / np.diff(np.log(lines["DDRO"].x))
        np.testing.assert_allclose(slope, -0.5, atol=1e-12)
        assert lines["DDRO"].y[-1] < 0.02 < min(lines[name].y[-1] for name in ("KTO", "DPO"))
        points = {series.group: series for series in chart.series if series.style == "measured"}
        for name in ("DDRO", "DDRO, two-term"):
            assert points[name].y[-1] == pytest.approx(lines[name].y[-1], rel=0.5)
        for name in ("KTO", "DPO"):
            assert points[name].y[-1] == pytest.approx(lines[name].y[-1], abs=0.1)
    assert {found.group for found in shares.agreement()} == {"DDRO", "DDRO, two-term"}
    assert all(found.distance < 0.01 for found in shares.agreement())
    assert [row[0] for row in result.tables[1].rows] == [6, 20, 100]
    assert len(result.tables[0].rows) == 8
    constants = np.array(result.tables[2].rows)
    assert (np.diff(constants[:, 1:], axis=0) < 0).all()  # the more good labels, the better is p+ known
    assert constants[0, 1:].min() > 3 * constants[3, 1:].max()
