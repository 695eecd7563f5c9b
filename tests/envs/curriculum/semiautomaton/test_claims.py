"""Each claim holds, and fails in the laboratory that breaks its mechanism; the studies show what they say."""

import dataclasses

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.curriculum.semiautomaton import studies as semiautomaton_studies
from theorybench.envs.curriculum.semiautomaton.claims import CLAIMS
from theorybench.envs.curriculum.semiautomaton.setting import Semiautomaton
from theorybench.leaderboard.evidence.lab import TrainingLab

ID = "TheoryBench/Semiautomaton-v0"
CLAIM = {claim.id.removeprefix("semiautomaton-"): claim for claim in CLAIMS}


class BrokenLab:
    """A laboratory with a fault.

    - "first": the verifier pays for the first claim.
    - "longer": the ladder skips its odd rungs.
    - "plain": both agents train on the full task.
    """

    def __init__(self, setting, fault):
        self.setting, self.fault, self.lab = setting, fault, TrainingLab(ID, setting)
        self.oracle = self.lab.oracle

    def train(self, agent_name, seeds, budget, **hyperparameters):
        return self.lab.train("rlvr", seeds, budget, **hyperparameters)

    def simulate(self, policy, episodes, seed, **options):
        setting = self.setting
        if self.fault == "longer":
            options["stage"] += options["stage"] % 2
        played = self.lab.simulate(policy, episodes, seed, **options)
        if self.fault == "first":
            start, letter = played.observations[:, 0, 0].astype(int) - 1, played.observations[:, 0, 1].astype(int)
            right = setting.tables.moves[(letter - setting.N - 1) * setting.N + start]
            played = dataclasses.replace(played, rewards=(played.actions[:, 0] == right).astype(np.float64))
        return played


def check(name, fault=None, **parameters):
    claim = CLAIM[name]
    setting = Semiautomaton(**{**claim.parameters, **parameters})
    make_lab = (lambda s: TrainingLab(ID, s)) if fault is None else (lambda s: BrokenLab(s, fault))
    return dataclasses.replace(claim, setting=setting, make_lab=make_lab).check(seed=0)


@pytest.mark.parametrize("name", [name for name in CLAIM if name not in ("learners", "network")])
def test_claim_holds(name):
    result = check(name)
    assert result.holds, result


@pytest.mark.slow
@pytest.mark.parametrize("name", ["learners", "network"])
def test_claims_on_training_hold(name):
    result = check(name)
    assert result.holds, result


@pytest.mark.parametrize("name", ["first-letter", "no-gradient"])
def test_claim_holds_on_another_instance(name):
    result = check(name, N=3, m=5, instance=10_007, family="shuffle")
    assert result.holds, result


@pytest.mark.parametrize(
    ("name", "fault", "parameters"),
    [
        ("decay", None, {"m": 8}),
        ("decay", None, {"family": "permutations"}),
        ("decay", "first", {}),
        ("factorial", None, {"m": 4}),
        ("factorial", "first", {}),
        ("first-letter", "longer", {}),
        ("no-gradient", "first", {}),
    ],
)
def test_claim_fails_when_its_mechanism_is_broken(name, fault, parameters):
    assert not check(name, fault, **parameters).holds


@pytest.mark.slow
def test_learners_are_alike_without_short_words():
    assert not check("learners", "plain").holds
    assert not check("network", T=2).holds


def test_studies(monkeypatch):
    monkeypatch.setattr(semiautomaton_studies, "ALPHABETS", (6, 500))
    monkeypatch.setattr(semiautomaton_studies, "EPISODES", 2000)
    monkeypatch.setattr(semiautomaton_studies, "LENGTHS", (1, 2, 4))
    monkeypatch.setattr(semiautomaton_studies, "TRAINED", (1, 4))
    monkeypatch.setattr(semiautomaton_studies, "BUDGET", 8_000)
    studies = {study.id: dataclasses.replace(study, seeds=3) for study in tb.studies(ID)}
    (chart,) = studies["parting"].result().charts
    ends = {series.group: series.y[-1] for series in chart.series if series.style == "predicted"}
    assert ends["6 letters"] > ends["500 letters"] > 0.9 * ends["fresh letters"]
    (chart,) = studies["lengths"].result().charts
    direct, ladder = chart.series
    assert ladder.y[1] > 0.9 > 0.7 > direct.y[1]


@pytest.mark.slow
def test_networks_learn_the_machine_from_ever_longer_words_and_only_the_words_from_long_ones(monkeypatch):
    monkeypatch.setattr(semiautomaton_studies, "NETWORK_BUDGET", 4_000)
    (study,) = (study for study in tb.studies(ID) if study.id == "networks")
    small = dataclasses.replace(study, setting=dataclasses.replace(study.setting, N=2, T=3))
    curves, stairs = small.result(seeds=2).charts
    for chart in (curves, stairs):
        assert [series.group for series in chart.series] == ["long words alone", "ever longer words", "chance"]
        assert set(chart.series[-1].y) == {0.5}
    direct, ladder, _ = stairs.series
    assert min(ladder.y) > 0.9
    assert direct.y[2] > 0.9 > 0.75 > max(direct.y[:2])  # of two states and three letters it learns 16 prompts by heart
    assert curves.series[1].y[-1] == pytest.approx(ladder.y[2], abs=0.05)
