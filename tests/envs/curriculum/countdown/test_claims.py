"""Each claim about Countdown holds, and fails in the laboratory that breaks its mechanism."""

import dataclasses

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.core.policy import Policy
from theorybench.envs.curriculum.countdown import studies as countdown_studies
from theorybench.envs.curriculum.countdown.claims import CLAIMS
from theorybench.envs.curriculum.countdown.setting import Countdown
from theorybench.leaderboard.evidence.lab import TrainingLab

ID = "TheoryBench/Countdown-v0"
CLAIM = {claim.id.removeprefix("countdown-"): claim for claim in CLAIMS}


class Once(Policy):
    """A base model that counts sums and products once: the larger number stands first."""

    def __init__(self, setting):
        self._setting = setting

    def probs(self, observations):
        setting = self._setting
        twice = (setting.slots.left > setting.slots.right) & (np.arange(setting.num_actions) % 2 == 0)
        rows = np.where(twice, 0.0, setting.reference_probs(observations))
        return rows / rows.sum(axis=1, keepdims=True)


class BrokenLab:
    """A laboratory with a fault.

    - "once": the base model counts sums and products once.
    - "cold": policies have half of the temperature.
    - "copies": plays of a prompt are copies of one.
    - "given": stages begin one move later. "leak": hints give one move more than they say.
    - "skip": the memory ends two rungs below the one that is searched.
    - "flat": the ladder is ignored.
    """

    def __init__(self, setting, fault):
        self.setting, self.fault, self.lab = setting, fault, TrainingLab(ID, setting)
        self.oracle = self.lab.oracle

    def train(self, agent_name, seeds, budget):
        return self.lab.train("rlvr" if self.fault == "flat" else agent_name, seeds, budget)

    def simulate(self, policy, episodes, seed, **options):
        if self.fault == "once":
            policy = Once(self.setting)
        if self.fault == "cold":
            policy = self.oracle.tilted_policy(policy.temperature / 2)
        if self.fault == "given":
            options["stage"] = max(1, options["stage"] - 1)
        if self.fault == "leak" and "hint" in options:
            options["hint"] += 1
        if self.fault == "skip" and options["stage"] > 1:
            policy = self.oracle.memory_policy(options["stage"] - 1)
        played = self.lab.simulate(policy, episodes, seed, **options)
        if self.fault == "copies":
            size = options["group_size"]
            played = dataclasses.replace(played, rewards=np.repeat(played.rewards[::size], size))
        return played


def check(name, fault=None, **parameters):
    claim = CLAIM[name]
    setting = Countdown(**{**claim.parameters, **parameters})
    make_lab = (lambda s: TrainingLab(ID, s)) if fault is None else (lambda s: BrokenLab(s, fault))
    return dataclasses.replace(claim, setting=setting, make_lab=make_lab).check(seed=0)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "learning")) for n in CLAIM])
def test_claim_holds(name):
    result = check(name)
    assert result.holds, result


@pytest.mark.parametrize("name", ["base-success", "tilt", "staged-search"])
def test_claim_holds_on_another_instance(name):
    result = check(name, instance=10_007)
    assert result.holds, result


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("base-success", "once"),
        ("tilt", "cold"),
        ("best-of", "copies"),
        ("direct-search", "given"),
        ("staged-search", "skip"),
        ("staged-search", "given"),
        ("hints", "leak"),
        pytest.param("learning", "flat", marks=pytest.mark.slow),
    ],
)
def test_claim_fails_in_a_broken_laboratory(name, fault):
    result = check(name, fault)
    assert not result.holds, result


def test_studies_agree_with_the_solver(monkeypatch):
    for name, value in (("COUNTS", (3, 4)), ("DRAWN", (2, 3, 4)), ("GAMES", 2**10)):
        monkeypatch.setattr(countdown_studies, name, value)
    for study in tb.studies(ID):
        result = study.result(0, seeds=16)
        found = [agreement for chart in result.charts for agreement in chart.agreement()]
        assert sum(a.inside for a in found) >= sum(a.points for a in found) - 1
        assert result.tables
