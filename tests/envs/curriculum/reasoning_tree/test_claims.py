"""Each claim holds, and fails in the laboratory that breaks its mechanism."""

import dataclasses
import math

import numpy as np
import pytest

from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.views import View
from theorybench.envs.curriculum.reasoning_tree import claims as reasoning_tree_claims
from theorybench.envs.curriculum.reasoning_tree.claims import CLAIMS, QueryGrowth, depth_ladder, hint_ladder
from theorybench.envs.curriculum.reasoning_tree.setting import ReasoningTree
from theorybench.leaderboard.evidence.lab import TrainingLab

ID = "TheoryBench/ReasoningTree-v0"
CLAIM = {claim.id.removeprefix("reasoning-tree-"): claim for claim in CLAIMS}


class BrokenLab:
    """A laboratory with a fault: what tests break are switches.

    - "skip": stages are rounded up to multiples of 4, so that rungs are skipped.
    - "partial": the verifier looks at the last pick alone.
    - "leak": half of the path stands in the policy's rows from the start; with a hint, the pick after it does.
    - "judge": the verifier sees the chain where it should see a bit.
    - "plain": both agents train on the full task. "ladder": both climb.
    """

    def __init__(self, setting, fault):
        self.setting, self.fault, self.lab = setting, fault, TrainingLab(ID, setting)
        self.oracle = self.lab.oracle

    def at(self, **parameters):
        return BrokenLab(dataclasses.replace(self.setting, **parameters), self.fault)

    def train(self, agent_name, seeds, budget):
        agent = {"plain": "rlvr", "ladder": "curriculum-rlvr"}[self.fault]
        return self.lab.train(agent, seeds, budget)

    def simulate(self, policy, episodes, seed, **options):
        setting, lab = self.setting, self.lab
        stage, hint = options.get("stage", setting.num_stages), options.get("hint", 0)
        if self.fault == "skip":
            stage = options["stage"] = min(-(-stage // 4) * 4, setting.num_stages)
        if self.fault == "judge":
            lab = lab.at(verifier="exact")
        if self.fault == "leak":
            known = slice(hint, hint + 1) if hint else slice(0, setting.L // 2)
            policy.table[known] = np.eye(setting.num_actions)[setting.tables.path[known]]
        played = lab.simulate(policy, episodes, seed, **options)
        if self.fault == "partial":
            last = played.actions[np.arange(episodes), played.lengths - 1]
            right = (played.lengths == stage - hint) & (last == setting.tables.path[stage - 1])
            played = dataclasses.replace(played, rewards=right.astype(np.float64))
        return played


def check(name, fault=None, **parameters):
    claim = CLAIM[name]
    setting = ReasoningTree(**{**claim.parameters, **parameters})
    make_lab = (lambda s: TrainingLab(ID, s)) if fault is None else (lambda s: BrokenLab(s, fault))
    return dataclasses.replace(claim, setting=setting, make_lab=make_lab).check(seed=0)


@pytest.mark.parametrize("name", CLAIM)
def test_claim_holds(name):
    result = check(name)
    assert result.holds, result


@pytest.mark.parametrize("name", ["curriculum", "hints", "confirmation"])
def test_claim_holds_on_another_instance(name):
    result = check(name, d=5, instance=10_007)
    assert result.holds, result


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("direct", "leak"),
        ("direct", "partial"),
        ("curriculum", "skip"),
        ("learners", "plain"),
        ("learners", "ladder"),
        ("test-time-direct", "leak"),
        ("test-time-direct", "partial"),
        ("test-time-curriculum", "skip"),
        ("hints", "leak"),
        ("increment", "partial"),
        ("confirmation", "skip"),
        ("parity-survival", "judge"),
        ("parity-tests", "judge"),
    ],
)
def test_claim_fails_when_its_mechanism_is_broken(name, fault, monkeypatch):
    monkeypatch.setattr(reasoning_tree_claims, "LIMIT", 2**17)
    result = check(name, fault)
    assert not result.holds, result


def test_predictions_are_the_theorems():
    predicted = {name: claim.predicted(claim.bound()[0]) for name, claim in CLAIM.items()}
    assert predicted["direct"] == pytest.approx(math.log(5))
    assert predicted["increment"] == pytest.approx(math.log(5))
    assert predicted["curriculum"] == pytest.approx(1)
    assert predicted["test-time-direct"] == pytest.approx(math.log(5), abs=0.01)
    assert predicted["test-time-curriculum"] == pytest.approx(0.8056, abs=1e-4)
    assert predicted["learners"] == pytest.approx(1 - 20_000 * 9.0**-7, abs=1e-4)
    assert predicted["parity-survival"] == 1 / 16 and predicted["parity-tests"] == 15 / 8


def test_a_skipping_ladder_grows_faster_than_a_line():
    lab = BrokenLab(ReasoningTree(d=2, L=7), "skip")
    value, low, _ = QueryGrowth("log-length", trials=100).measure(lab, 0)
    assert low > 1.5 and value > 2


def test_ladders_cover_the_path_once():
    setting = ReasoningTree(L=6)
    for increment in range(1, 8):
        depth, hints = depth_ladder(setting, increment), hint_ladder(setting, increment)
        for rungs in (depth, hints):
            assert sorted(i for _, _, new in rungs for i in new) == list(range(7))
        assert all(hint == 0 and new.stop == stage for stage, hint, new in depth)
        assert all(stage == 7 and new.start == hint for stage, hint, new in hints) and hints[-1][1] == 0


def test_a_search_that_finds_nothing_fails(monkeypatch):
    monkeypatch.setattr(reasoning_tree_claims, "LIMIT", 64)
    value, low, high = QueryGrowth("length", trials=10).measure(ReasoningTree(), TrainingLab(ID, ReasoningTree()), 0)
    assert math.isnan(value) and math.isnan(low) and math.isnan(high)


def test_the_reference_is_what_searches_start_from():
    setting = ReasoningTree(d=3, L=2)
    uniform = TablePolicy(View.of(setting, "position"), np.full((3, 4), 0.25))
    played = TrainingLab(ID, setting).simulate(uniform, 1000, 0)
    assert played.actions.max() == 3 and played.rewards.mean() == pytest.approx(1 / 64, abs=0.02)
