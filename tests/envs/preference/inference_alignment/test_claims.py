"""Each claim holds for an independent learner, and fails for what breaks its mechanism."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.preference.inference_alignment.claims import CLAIMS
from theorybench.envs.preference.inference_alignment.experiments import (
    BoundHolds,
    ErrorRate,
    PlayedGain,
    Sharpness,
    random_settings,
)
from theorybench.envs.preference.inference_alignment.law import (
    ClosedForm,
    GridRate,
    UShaped,
    balanced_cdf,
    balanced_probs,
)
from theorybench.envs.preference.inference_alignment.oracle import InferenceAlignmentOracle
from theorybench.envs.preference.inference_alignment.setting import InferenceAlignment

CLAIM = {claim.id.removeprefix("inference-"): claim for claim in CLAIMS}
ID = "TheoryBench/InferenceAlignment-v0"


def wrong_power(samples):
    """a = 1 / N, in place of 1 / (N - 1)."""
    return 1 / samples


class GroupLab:
    """Mirror ascent on sampled groups: phi(y) = N E max(r(y), the best of N - 1 others); what tests break are switches.

    `told`: N that learners go by; `aware`: which learners know of inference; `drawn`: how many of each N responses that
    are played are fresh, the others being copies; `others`: play a uniform policy in place of the one asked for.
    """

    def __init__(self, setting, **broken):
        self.setting, self.oracle, self.broken = setting, InferenceAlignmentOracle(setting), broken

    def at(self, **parameters):
        return type(self)(dataclasses.replace(self.setting, **parameters), **self.broken)

    def simulate(self, policy, episodes, seed):
        rng, probs = np.random.default_rng([5, seed]), policy.probs(self.oracle.observations)[0]
        probs = np.full_like(probs, 1 / len(probs)) if self.broken.get("others") else probs
        actions = rng.choice(len(probs), p=probs, size=episodes)
        fresh, samples = self.broken.get("drawn"), self.setting.samples
        if fresh:
            groups = actions.reshape(-1, samples)
            groups[:, fresh:] = groups[:, :1]
            actions = groups.ravel()
        return SimpleNamespace(actions=actions[:, None], rewards=self.setting.tables.rewards[actions])

    def train(self, name, seeds, budget, **options):
        aware = name in self.broken.get("aware", ("nonlinear-grpo",))
        told = self.broken.get("told", self.setting.samples)
        return [self.oracle.policy(self.learn(seed, told if aware else 1)) for seed in seeds]

    def learn(self, seed, samples):
        setting, rng = self.setting, np.random.default_rng([6, seed])
        criteria, weights = setting.tables.criteria, setting.inference.weights
        logits = start = np.log(setting.reference)
        for step in range(400):
            probs = np.exp(logits - logits.max())
            probs /= probs.sum()
            scores = setting.tables.rewards
            if samples > 1:
                others = rng.choice(len(probs), p=probs, size=(400, samples - 1))
                best = criteria[:, others].max(axis=2)  # (m, groups)
                scores = samples * weights @ np.maximum(criteria[:, :, None], best[:, None]).mean(axis=2)
            rate = 1 / (1 + step / 100) if samples > 1 else 20.0
            logits = (logits / rate + scores + setting.beta * start) / (1 / rate + setting.beta)
        probs = np.exp(logits - logits.max())
        return probs / probs.sum()


def check(name, seed=0, experiment=None, parameters=None, **broken):
    claim = CLAIM[name]
    setting = InferenceAlignment(**{**claim.parameters, **(parameters or {})})
    if experiment is not None:
        claim = dataclasses.replace(claim, predicted=experiment.predicted, measure=experiment.measure)
    return dataclasses.replace(claim, setting=setting, make_lab=lambda s: GroupLab(s, **broken)).check(seed=seed)


@pytest.mark.parametrize("name", CLAIM)
def test_claim_holds(name):
    result = check(name)
    assert result.holds, result


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("one-step", {"parameters": {"samples": 2}}),
        ("plain", {"told": 4}),
        ("smoothness", {"experiment": Sharpness(factor=1 / 3)}),
        ("prox-bound", {"experiment": BoundHolds(factor=0.25)}),
        ("derivative", {"experiment": ErrorRate(power=1.0)}),
        ("derivative", {"others": True}),
        ("compromise", {"parameters": {"samples": 2, "tilt": -1.0}}),
        ("closed-form", {"experiment": ClosedForm(exponent=wrong_power)}),
        ("closed-form", {"experiment": ClosedForm(sizes=(4,), exponent=wrong_power)}),
        ("closed-form", {"parameters": {"beta": 0.001}}),
        ("closed-form", {"parameters": {"first_weight": 1.1}}),
        ("grid", {"experiment": GridRate(exponent=wrong_power)}),
        ("u-shape", {"experiment": UShaped(sizes=(2, 3)), "parameters": {"tilt": -1.0}}),
        ("gain", {"drawn": 3}),
        ("naive-loss", {"drawn": 3}),
        ("naive-loss", {"others": True}),
        ("learner", {"aware": ()}),
        ("learner", {"told": 2}),
        ("naive-learner", {"aware": ("grpo",)}),
        ("learner-kl", {"aware": ()}),
        ("learner-kl", {"told": 2}),
        ("naive-learner-kl", {"aware": ("rloo",)}),
    ],
)
def test_claim_fails_when_its_mechanism_is_broken(name, broken):
    result = check(name, **broken)
    assert not result.holds, result


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_wrong_l_is_found_at_every_seed(seed):
    assert check("prox-bound", seed, experiment=BoundHolds(settings=25)).holds
    assert not check("prox-bound", seed, experiment=BoundHolds(settings=25, factor=0.25)).holds


@pytest.mark.parametrize("name", ["learner", "naive-learner", "derivative", "gain", "plain"])
def test_claim_holds_for_the_agents_that_ship(name):
    (claim,) = [claim for claim in tb.claims(ID) if claim.id == f"inference-{name}"]
    result = claim.check(seed=1)
    assert result.holds, result


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2, 3])
def test_all_claims_hold_for_the_agents_that_ship(seed):
    for claim in tb.claims(ID):
        result = claim.check(seed=seed)
        assert result.holds, (claim.id, result)


def test_predictions_are_the_published_numbers():
    predicted = {name: claim.predicted(claim.bound()[0]) for name, claim in CLAIM.items()}
    assert predicted["gain"] == pytest.approx(0.0193, abs=5e-5)
    assert predicted["smoothness"] == pytest.approx(3 * 0.75**3)
    assert predicted["naive-learner"] == pytest.approx(0.75)
    assert predicted["naive-loss"] > 0.2 and predicted["learner"] - predicted["naive-loss"] == pytest.approx(0.75)


def test_the_closed_form_is_the_law_that_it_should_be():
    y = np.linspace(0, 1, 11)
    np.testing.assert_allclose(balanced_cdf(y, 2), y)
    np.testing.assert_allclose(balanced_cdf(y, 4) + balanced_cdf(1 - y, 4), 1)
    np.testing.assert_array_equal(balanced_cdf(y, 1), y >= 0.5)
    setting = InferenceAlignment(beta=0.0, tilt=0.0, samples=3, num_points=7)
    law = balanced_probs(setting)
    assert law.sum() == pytest.approx(1) and (law > 0).all()
    scores = setting.aligned.variation(law)
    assert np.ptp(scores) < 1e-12  # the first variation is even: optimal
    assert np.ptp(setting.aligned.variation(balanced_probs(setting, wrong_power))) > 1e-3


def test_played_gain_is_that_of_any_exact_policy():
    """Playing best-of-4 of the closed form with a = 1 / N is worth what the oracle says, and not what J* is."""
    setting = InferenceAlignment(beta=0.0, tilt=0.0)
    lab, oracle = GroupLab(setting), InferenceAlignmentOracle(setting)
    wrong = PlayedGain("plain", exponent=wrong_power)
    values = [
        oracle.evaluate(oracle.policy(balanced_probs(setting, *power)))["aligned_value"]
        for power in ((), (wrong_power,))
    ]
    assert values[0] - values[1] > 5e-4 and values[0] == pytest.approx(oracle.optimal_value, abs=1e-12)
    assert PlayedGain("plain").predicted(setting) - wrong.predicted(setting) == pytest.approx(values[0] - values[1])
    value, low, high = PlayedGain("plain", groups=20_000).measure(lab, 0)
    assert low < values[0] - 0.75 < high and value == pytest.approx((low + high) / 2)


def test_random_settings_are_many_kinds():
    drawn = random_settings(0, 40)
    assert {2, 41} <= {setting.num_points for setting in drawn}
    assert len({setting.samples for setting in drawn}) > 3 and len({setting.fingerprint for setting in drawn}) == 40


def test_studies_show_theory_and_what_was_learnt():
    by_id = {study.id: study for study in tb.studies(ID)}
    study = by_id["inference-density"]
    result = study.run(GroupLab(study.setting), 0, 2)
    rows = {row[0]: row for row in result.tables[0].rows}
    assert [rows[n][2] for n in (2, 4, 8)] == pytest.approx([rows[n][3] for n in (2, 4, 8)], abs=1e-9)
    assert all(abs(rows[n][6].value - rows[n][2]) < 0.01 for n in (1, 2, 4, 8))
    assert all(rows[n][5] == pytest.approx(0.75) for n in (1, 2, 4, 8))
    study = by_id["inference-learners"]
    (chart,) = study.run(GroupLab(study.setting), 0, 2).charts
    optimum, naive, start = (np.array(s.y) for s in chart.series if s.style == "predicted")
    assert (optimum >= start + 1e-3).all() and optimum[0] == pytest.approx(naive[0], abs=1e-9)
    assert (naive[1:] < start[1:]).all()  # unaware learners end below where they began
    study = by_id["inference-prox"]
    steps, rough, squares = study.run(GroupLab(study.setting), 0, 2).charts
    bounds = {s.group: dict(zip(s.x, s.y, strict=True)) for s in steps.series if s.style == "predicted"}
    for series in steps.series:
        if series.style == "measured":
            assert all(y <= bounds[series.group][x] for x, y in zip(series.x, series.y, strict=True))
    ends = {s.group: s.y[-1] for s in rough.series}
    assert ends["M = 64"] > ends["M = 4096"] > 0.5 * ends["exact"]
    (found,) = squares.agreement()
    assert found.points == 8 and found.distance < 0.003
