"""Each claim holds, and fails in the laboratory that breaks its mechanism; the studies show what they say."""

import dataclasses
import math

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.curriculum.relative_budget import studies
from theorybench.envs.curriculum.relative_budget.claims import CLAIMS
from theorybench.envs.curriculum.relative_budget.oracle import RelativeBudgetOracle
from theorybench.envs.curriculum.relative_budget.setting import RelativeBudget
from theorybench.leaderboard.evidence.lab import TrainingLab

ID = "TheoryBench/RelativeBudget-v0"
CLAIM = {claim.id.removeprefix("relative-budget-"): claim for claim in CLAIMS}
#: The cheapest claim of each kind is checked at every run of the tests, the others where slow ones are.
QUICK = ("deficient", "ample", "best-step", "table-step", "gradient")


class NarrowOracle(RelativeBudgetOracle):
    """Takes the best step of a table on sub-steps for the best of all."""

    def tilted_policy(self, beta):
        return self.regularised_table(beta)


class BrokenLab:
    """A laboratory with a fault.

    - "binary": every solution earns 1.
    - "warm": the base model has an easier first sub-step, as if a token more had been given away.
    - "cut": there is no ampler horizon than the setting's, so that solutions are cut off.
    - "narrow": the best step is one of tables on sub-steps.
    - a dictionary: agents train with these hyper-parameters instead.
    """

    def __init__(self, setting, fault):
        self.setting, self.fault, self.lab = setting, fault, TrainingLab(ID, setting)
        self.oracle = NarrowOracle(setting) if fault == "narrow" else self.lab.oracle

    def at(self, **parameters):
        return self if self.fault == "cut" else BrokenLab(self.lab.at(**parameters).setting, self.fault)

    def train(self, agent_name, seeds, budget, **hyperparameters):
        return self.lab.train(agent_name, seeds, budget, **{**hyperparameters, **self.fault})

    def simulate(self, policy, episodes, seed, **options):
        if self.fault == "warm":
            options["stage"] = self.setting.K - 1
        played = self.lab.simulate(policy, episodes, seed, **options)
        if self.fault == "binary":
            played = dataclasses.replace(played, rewards=(played.rewards > 0).astype(np.float64))
        return played


class StandardisedLab(BrokenLab):
    """GRPO trains in place of RLVR: its advantages are standardised."""

    def train(self, agent_name, seeds, budget, **hyperparameters):
        size = hyperparameters["episodes_per_update"]
        rate = hyperparameters["learning_rate"] * self.setting.horizon
        own = {**hyperparameters, "loss_type": "dr_grpo", "group_size": size, "learning_rate": rate}
        return self.lab.train("grpo", seeds, budget, **own)

    def at(self, **parameters):
        return StandardisedLab(self.lab.at(**parameters).setting, None)


def check(name, make_lab, seed=0, **parameters):
    claim = CLAIM[name]
    setting = RelativeBudget(**{**claim.parameters, **parameters})
    return dataclasses.replace(claim, setting=setting, make_lab=make_lab).check(seed=seed)


def sound(setting):
    return TrainingLab(ID, setting)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CLAIM]
)
def test_claim_holds(name):
    result = check(name, sound)
    assert result.holds, result


@pytest.mark.parametrize("name", ["best-step", "table-step"])
def test_claim_holds_for_other_sizes(name):
    result = check(name, sound, seed=1, K=2, instance=10_003)
    assert result.holds, result


@pytest.mark.parametrize(
    ("name", "fault", "parameters"),
    [
        ("deficient", "binary", {}),
        ("deficient", "warm", {}),
        ("balanced", "binary", {}),
        ("ample", "binary", {}),
        ("tilt", "cut", {}),
        ("stationary", "cut", {}),
        ("best-step", "narrow", {}),
        ("best-step-peak", "binary", {}),
        ("table-step", {"max_gradient_norm": 1e-3, "optimizer": "adam"}, {}),
        ("gradient", {}, {"xi": 1.0}),
        ("grpo-flat", {"scale_rewards": "none"}, {}),
    ],
)
def test_claim_fails_when_its_mechanism_is_broken(name, fault, parameters):
    assert not check(name, lambda setting: BrokenLab(setting, fault), **parameters).holds


@pytest.mark.parametrize("name", ["gradient", "rlvr-falls"])
def test_standardised_advantages_do_not_fall(name):
    assert not check(name, lambda setting: StandardisedLab(setting, None)).holds


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "parameters"), [({"beta_1": 1.0, "beta_2": 1.0}, {}), ({}, {"xi": 1.5})])
def test_another_tilt_is_learnt_at_another_temperature_or_where_solutions_are_cut_off(fault, parameters):
    assert not check("learnt-tilt", lambda setting: BrokenLab(setting, fault), **parameters).holds


def test_regimes(monkeypatch):
    for name, value in {"BUDGETS": (0.2, 0.7, 4.0), "LINE": (0.2, 0.7, 4.0), "EPISODES": 3200}.items():
        monkeypatch.setattr(studies, name, value)
    (study,) = [study for study in tb.studies(ID) if study.id == "regimes"]
    result = study.result(seeds=2)
    three, rates = result.charts
    assert three.groups == ("RLVR, rate 1", "GRPO, rate 0.1", "A*-PO, beta 0.1")
    assert rates.groups == ("RLVR, rate 1", "RLVR, rate 4", "GRPO, rate 0.1", "GRPO, rate 0.4")
    drawn = {(series.group, series.style): np.array(series.y) for series in three.series}
    for name in three.groups:
        assert np.abs(drawn[name, "measured"] - drawn[name, "predicted"]).max() < 0.03, name
        assert drawn[name, "measured"][0] < 0.05
    assert drawn["RLVR, rate 1", "measured"][2] < drawn["RLVR, rate 1", "measured"][1] - 0.05
    assert drawn["A*-PO, beta 0.1", "measured"][2] < drawn["A*-PO, beta 0.1", "measured"][1] - 0.2
    assert drawn["GRPO, rate 0.1", "measured"][2] > drawn["GRPO, rate 0.1", "measured"][1] + 0.05


def test_steps_and_samples(monkeypatch):
    values = {"STEP_BUDGETS": (0.7, 4.0), "LENGTHS": (1, 4), "BUDGETS": (0.2, 1.0, 4.0), "PARTS": 1}
    for name, value in values.items():
        monkeypatch.setattr(studies, name, value)
    found = {study.id: study.result(seeds=3) for study in tb.studies(ID) if study.id != "regimes"}
    gain, score = found["steps"].charts
    drawn = {(series.group, series.style): series for series in (*gain.series, *score.series)}
    assert all(agreed.distance < 0.02 * max(drawn[agreed.group, "predicted"].y) for agreed in gain.agreement())
    assert drawn["GRPO", "measured"].y[1] > 3 * drawn["GRPO", "measured"].y[0]
    (chart,), (table,) = found["samples"].charts, found["samples"].tables
    simulated = {series.group: series for series in chart.series if series.style == "simulated"}
    assert simulated["K = 4"].x == (1.0, 4.0)  # too few solutions at .2
    for agreed in chart.agreement():
        assert agreed.inside >= agreed.points - 1
    assert [row[1] for row in table.rows] == pytest.approx([1.1, 1.4])
    assert all(1.4 <= row[2] <= 1.6 and math.isfinite(row[4]) for row in table.rows)
