"""Claims about test-time search hold where consistency is rewarded, and fail under a judge of accuracy."""

import dataclasses
import functools

import pytest

import theorybench as tb
from theorybench.envs.tree.markov_chain.evidence.inference_time_claims import CLAIMS
from theorybench.envs.tree.markov_chain.oracle import MarkovChainOracle
from theorybench.envs.tree.markov_chain.setting import TreeMarkovChain
from theorybench.leaderboard.evidence.lab import TrainingLab

CLAIM = {claim.id.removeprefix("tree-"): claim for claim in CLAIMS}
TREE, ACCURATE = "TheoryBench/TreeMarkovChain-v0", "Toy/AccurateTree-v0"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AccurateTree(TreeMarkovChain):
    """The same tree under an exact verifier: every valid CoT is right."""

    def transition(self, state, actions, rng):
        moved, _, ended = super().transition(state, actions, rng)
        return moved, (moved.node == moved.goal).astype(float), ended


tb.register(ACCURATE, AccurateTree, MarkovChainOracle, budget=1000)


class OtherLab(TrainingLab):
    """Trains another agent than the one that is asked for."""

    def __init__(self, env_id, setting, agent):
        super().__init__(env_id, setting)
        self._agent = agent

    def train(self, agent_name, seeds, budget, **hyperparameters):
        return super().train(self._agent, seeds, budget)


def check(name, setting, make_lab, seed=0):
    return dataclasses.replace(CLAIM[name], setting=setting, make_lab=make_lab).check(seed)


@pytest.mark.parametrize("name", CLAIM)
def test_claim_holds(name):
    setting = TreeMarkovChain(**CLAIM[name].parameters)
    result = check(name, setting, functools.partial(TrainingLab, TREE))
    assert result.holds, result


@pytest.mark.parametrize(
    ("name", "measured"),
    [("best-of-n", 0.7026), ("best-of-n-hard-share", 1.0), ("prm-greedy", 0.1324), ("dprm-sample", 1.3762)],
)
def test_claim_fails_under_a_judge_of_accuracy(name, measured):
    """All valid CoTs are then one level: their shares among themselves are the base chain's."""
    setting = AccurateTree(**CLAIM[name].parameters)
    result = check(name, setting, functools.partial(TrainingLab, ACCURATE))
    assert not result.holds and result.measured == pytest.approx(measured, abs=0.01), result


@pytest.mark.parametrize(
    ("name", "agent"),
    [("best-of-n", "soft-best-of-n"), ("prm-greedy", "dprm-sample"), ("dprm-sample", "prm-sample")],
)
def test_claim_fails_for_another_agent(name, agent):
    setting = TreeMarkovChain(**CLAIM[name].parameters)
    result = check(name, setting, functools.partial(OtherLab, TREE, agent=agent))
    assert not result.holds, result


def test_predictions():
    setting = TreeMarkovChain(train_tasks=(0,))
    predicted = {name: claim.predicted(setting) for name, claim in CLAIM.items()}
    wanted = {"best-of-n": 0.88145, "best-of-n-hard-share": 0.71151, "prm-greedy": 0.727995, "dprm-sample": 0.77737}
    assert predicted == pytest.approx(wanted, abs=6e-6)
    for claim in CLAIMS:
        assert "2511.07368" in claim.source and "tolerance" in claim.source and claim.falsified_by and claim.formula
