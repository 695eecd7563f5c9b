"""Each claim about A*-PO holds, and fails where its mechanism is broken; the studies' points lie on their curves."""

import dataclasses

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.views import View
from theorybench.envs.preference.optimal_advantage.experiments import fit_regression
from theorybench.leaderboard.evidence.lab import TrainingLab

ID = "TheoryBench/OptimalAdvantage-v0"
CLAIM = {claim.id.removeprefix("advantage-"): claim for claim in tb.claims(ID)}
STUDY = {study.id.removeprefix("advantage-"): study for study in tb.studies(ID)}


class BrokenLab(TrainingLab):
    """A lab in which responses come from another policy, verifiers err, or another learner trains."""

    def __init__(self, setting, *, sampler=None, errors=0.0, learner=None, trained=None, **parameters):
        super().__init__(ID, dataclasses.replace(setting, **parameters))
        self.sampler, self.errors, self.learner, self.trained = sampler, errors, learner, trained or {}

    def simulate(self, policy, episodes, seed, **options):
        acting = getattr(self.oracle, self.sampler) if self.sampler else policy
        played = super().simulate(acting, episodes, seed, **options)
        probs = self.oracle.table(policy)[played.prompts, played.actions[:, 0], None]
        log_probs = np.log(np.maximum(probs, 1e-300))
        wrong = np.random.default_rng([seed, 7]).random(episodes) < self.errors
        rewards = np.where(wrong, 1.0 - played.rewards, played.rewards)
        return dataclasses.replace(played, log_probs=log_probs, rewards=rewards)

    def train(self, agent_name, seeds, budget, **hyperparameters):
        if self.learner is None:
            return super().train(agent_name, seeds, budget, **{**hyperparameters, **self.trained})
        view = View.of(self.setting, "prompt")
        return [TablePolicy(view, self.learner(self.setting, np.random.default_rng(seed))) for seed in seeds]


def stays(setting, rng):
    return np.full(setting.tables.rewards.shape, 1 / setting.num_responses)


def gives_up(setting, rng):
    """The optimum on half of the prompts, a wrong response on the others."""
    rewards = setting.tables.rewards
    table = np.exp((rewards - rewards.max(axis=1, keepdims=True)) / setting.beta)
    table[::2] = np.eye(setting.num_responses)[rewards.argmin(axis=1)][::2]
    return table / table.sum(axis=1, keepdims=True)


def regresses_on_the_reference(setting, rng):
    """Stage 2 on a large sample of the reference, V-hat from one response of it."""
    rewards = setting.tables.rewards
    values = rewards[np.arange(len(rewards)), rng.integers(setting.num_responses, size=len(rewards))]
    even = np.full(setting.num_responses, 1 / setting.num_responses)
    return np.stack([fit_regression(even, r, setting.beta, v) for r, v in zip(rewards, values, strict=True)])


def check(name, **broken):
    return dataclasses.replace(CLAIM[name], make_lab=lambda setting: BrokenLab(setting, **broken)).check(seed=3)


@pytest.mark.parametrize("name", CLAIM)
def test_claim_holds(name):
    result = CLAIM[name].check(seed=3)
    assert result.holds, result


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("gradient-0", {"sampler": "reference_policy"}),
        ("gradient-0.3", {"sampler": "reference_policy"}),
        ("gradient-5", {"sampler": "reference_policy"}),
        ("variance-at-reference", {"sampler": "optimal_policy"}),
        ("variance-at-reference", {"errors": 0.1}),
        ("variance-between", {"sampler": "reference_policy"}),
        ("variance-at-optimum", {"errors": 0.1}),
        ("variance-of-reference", {"errors": 0.1}),
        ("variance-of-optimum", {"errors": 0.01}),
        ("off-policy", {"sampler": "optimal_policy"}),
        ("off-policy-exact", {"errors": 0.01}),
        ("on-policy", {"learner": regresses_on_the_reference}),
        ("value-mean", {"sampler": "optimal_policy"}),
        ("value-spread", {"sampler": "optimal_policy"}),
        ("ceiling", {"zero_share": 0.0}),
        ("ceiling", {"learner": gives_up}),
        ("pass-1", {"learner": stays}),
        ("pass-128", {"learner": gives_up}),
        ("hopeless", {"learner": gives_up}),
        ("hopeless", {"trained": {"policy": "mlp", "learning_rate": 0.003}}),
        ("tries", {"learner": stays}),
        ("pass-1-over-8", {"learner": stays}),
        ("pass-1-over-8", {"trained": {"beta_2": 0.5}}),
        ("filter", {"sampler": "optimal_policy"}),
        ("filter", {"learner": stays}),
    ],
)
def test_claim_fails_when_its_mechanism_is_broken(name, broken):
    result = check(name, **broken)
    assert not result.holds, result


def test_predictions_are_the_published_numbers():
    predicted = {name: claim.predicted(claim.setting) for name, claim in CLAIM.items()}
    assert predicted["gradient-0"] == predicted["gradient-0.3"] == predicted["gradient-5"] > 0
    assert predicted["value-mean"] == pytest.approx(0.466, abs=5e-4)
    assert predicted["value-spread"] == pytest.approx(0.406, abs=5e-4)
    assert predicted["variance-at-reference"] == pytest.approx(0.1)
    assert predicted["variance-at-optimum"] == pytest.approx(0.76978, abs=5e-6)
    assert predicted["variance-of-reference"] > 5
    assert predicted["variance-of-optimum"] == 0
    assert predicted["off-policy"] < 0.5 < 0.8 < predicted["off-policy-exact"]
    assert predicted["off-policy-exact"] == pytest.approx(predicted["on-policy"], abs=1e-12)
    assert predicted["pass-128"] < 0.03 * predicted["pass-1"]
    assert predicted["tries"] == pytest.approx(18.5588, abs=5e-5)
    assert predicted["pass-1-over-8"] > 0.1
    assert 0.61 < predicted["filter"] < 1 - 0.9**9


@pytest.mark.parametrize("name", ["v-hat-bias", "gradient-variance"])
def test_points_of_studies_lie_on_their_curves(name):
    result = STUDY[name].result(seed=1, seeds=8)
    for chart in result.charts:
        found = chart.agreement()
        assert {group.group for group in found} == set(chart.groups)
        assert sum(group.inside for group in found) >= 0.9 * sum(group.points for group in found)
        assert max(group.distance for group in found) < 0.02
    (table,) = result.tables
    for row in table.rows:
        named = dict(zip((column.name for column in table.columns), row, strict=True))
        theory = named.get("mean", named.get("best V-hat"))
        counted = named.get("mean counted", named.get("best counted"))
        assert counted.value == pytest.approx(theory, abs=0.01)


def test_studies_say_what_they_find():
    bias, variance = (STUDY[name].result(seed=0, seeds=2) for name in ("v-hat-bias", "gradient-variance"))
    assert "At p = 0.1 and beta = 0.1 the bias is smaller than 0.05 from N = 28." in bias.notes
    assert "V* gives 5.60 times the variance of V-hat = 0" in variance.notes[0]
    rows = {row[:2]: row for row in bias.tables[0].rows}
    assert rows[0.1, 0.1][2:5] == pytest.approx((0.76978, 0.43047, 0.46577), abs=5e-6)
    assert variance.tables[0].rows[-1][-1] == 0.0


@pytest.mark.slow
def test_points_of_pass_at_k_lie_on_their_curves():
    result = STUDY["pass-at-k"].result(seed=1, seeds=8)
    passed, tries = result.charts
    assert passed.groups == ("reference", "A*-PO, beta = 0.25", "A*-PO, beta = 0.25, filter", "A*-PO, beta = 0.5")
    assert max(group.distance for group in passed.agreement()) < 0.02
    assert sum(group.inside for group in tries.agreement()) >= 19
    (table,) = result.tables
    for _, _, theory, counted, bound in table.rows:
        assert counted.low - 0.02 * theory < theory < counted.high + 0.02 * theory
        assert theory < bound
    assert "which the reference reaches in 19 tries" in result.notes[0]
    assert "0.613: the reference's pass@9" in result.notes[1]
