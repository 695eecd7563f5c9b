"""Each claim holds, and fails in the laboratory that breaks its mechanism; the studies show what they say."""

import dataclasses

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.curriculum.parity import studies as parity_studies
from theorybench.envs.curriculum.parity.claims import CLAIMS
from theorybench.envs.curriculum.parity.setting import Parity, parity
from theorybench.leaderboard.evidence.lab import TrainingLab

ID = "TheoryBench/Parity-v0"
CLAIM = {claim.id.removeprefix("parity-"): claim for claim in CLAIMS}


class BrokenLab:
    """A laboratory with a fault.

    - "steps": the verifier judges every claim, not the last alone.
    - "first": it pays for the first claim.
    - "skip": stages are rounded up to even ones.
    - "fewer": the answer is judged against one secret bit less.
    - "plain": both agents train on the full task.
    """

    def __init__(self, setting, fault):
        self.setting, self.fault, self.lab = setting, fault, TrainingLab(ID, setting)
        self.oracle = self.lab.oracle

    def train(self, agent_name, seeds, budget, **hyperparameters):
        return self.lab.train("rlvr", seeds, budget, **hyperparameters)

    def simulate(self, policy, episodes, seed, **options):
        setting = self.setting
        if self.fault == "skip" and "stage" in options:
            options["stage"] += options["stage"] % 2
        if self.fault == "fewer":
            options["stage"] = setting.k - 1
        played = self.lab.simulate(policy, episodes, seed, **options)
        truth = parity(played.prompts[:, None] & setting.tables.masks[1:])[:, : played.actions.shape[1]]
        right = played.actions == truth
        if self.fault == "steps":
            return dataclasses.replace(played, rewards=right.all(axis=1).astype(np.float64))
        if self.fault == "first":
            return dataclasses.replace(played, rewards=right[:, 0].astype(np.float64))
        return played


def check(name, fault=None, seed=0, **parameters):
    claim = CLAIM[name]
    setting = Parity(**{**claim.parameters, **parameters})
    make_lab = (lambda s: TrainingLab(ID, s)) if fault is None else (lambda s: BrokenLab(s, fault))
    return dataclasses.replace(claim, setting=setting, make_lab=make_lab).check(seed=seed)


@pytest.mark.parametrize("name", [name for name in CLAIM if name != "learners"])
def test_claim_holds(name):
    result = check(name)
    assert result.holds, result


def test_random_tables_are_all_played():
    """A few of them have a skewed mean: 300 fell short of it at this seed, with an interval of half its size."""
    result = check("leaning", seed=3)
    assert result.holds and result.high - result.low < 0.1 * result.predicted, result


@pytest.mark.slow
def test_learners_are_apart():
    result = check("learners")
    assert result.holds, result


@pytest.mark.parametrize("name", ["product", "no-gradient", "blind", "stages"])
def test_claim_holds_on_another_instance(name):
    result = check(name, d=9, k=5, instance=10_007)
    assert result.holds, result


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("product", "steps"),
        ("no-gradient", "first"),
        ("no-gradient", "steps"),
        ("first-stage", "skip"),
        ("along-parity", "fewer"),
        ("blind", "fewer"),
        ("leaning", "first"),
        ("stages", "skip"),
    ],
)
def test_claim_fails_when_its_mechanism_is_broken(name, fault):
    assert not check(name, fault).holds


@pytest.mark.slow
def test_learners_are_alike_without_stages():
    assert not check("learners", "plain").holds


def test_studies(monkeypatch):
    monkeypatch.setattr(parity_studies, "DIRECT", (1, 2))
    monkeypatch.setattr(parity_studies, "STAGED", (1, 3))
    monkeypatch.setattr(parity_studies, "LIMIT", 6_000)
    studies = {study.id: dataclasses.replace(study, seeds=2) for study in tb.studies(ID)}
    result = studies["parity-cost"].result()
    (chart,) = result.charts
    assert set(chart.groups) == set(result.groups)
    (search,) = [row for row in chart.agreement() if row.group == "search by stages"]
    assert search.inside == search.points == 2
    assert all(row[2] == row[3] for row in result.tables[0].rows)
    small = dataclasses.replace(studies["parity-staircase"], setting=Parity(k=3)).result()
    (course,) = small.charts
    heights = np.array([series.y for series in course.series])
    learnt = (heights > 0.9).argmax(axis=1)
    assert (np.diff(learnt) > 0).all() and (heights[:, -1] > 0.9).all()
    for stage, theory, found in small.tables[0].rows:
        assert found.low <= theory <= found.high, stage
