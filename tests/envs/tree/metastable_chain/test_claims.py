"""Each claim holds, and fails in the laboratory that breaks its mechanism."""

import dataclasses
import functools
import math

import numpy as np
import pytest

from theorybench.envs.tree.metastable_chain import claims as metastable_chain_claims
from theorybench.envs.tree.metastable_chain.claims import CLAIMS, Slope, simulate
from theorybench.envs.tree.metastable_chain.setting import MetastableChain
from theorybench.leaderboard.evidence.lab import TrainingLab

ID = "TheoryBench/MetastableChain-v0"
CLAIM = {claim.id.removeprefix("metastable-"): claim for claim in CLAIMS}


class OftenThanRare(MetastableChain):
    """Leaps of probability sqrt(eps)."""

    @functools.cached_property
    def reference_rows(self):
        return MetastableChain(**{**self.parameters, "eps": math.sqrt(self.eps)}).reference_rows


class Everywhere(MetastableChain):
    """A leap at every state."""

    @functools.cached_property
    def ring(self):
        ring = super().ring
        return ring._replace(wrong=np.zeros_like(ring.wrong))


class ShortCut(MetastableChain):
    """A leap to the target."""

    @functools.cached_property
    def ring(self):
        ring = super().ring
        return ring._replace(move=ring.move * (self.K - 1))

    def transition(self, state, actions, rng):
        moved, _, ended = super().transition(state, actions, rng)
        cluster = np.minimum(moved.cluster, self.K - 1)
        arrived = cluster == self.K - 1
        return moved._replace(cluster=cluster), arrived.astype(np.float64), ended | arrived


class Divided(MetastableChain):
    """Weights 1/M and eps divided by their sum: leaps of probability eps / (1 + eps)."""

    @functools.cached_property
    def reference_rows(self):
        return MetastableChain(**{**self.parameters, "eps": self.eps / (1 + self.eps)}).reference_rows


class BothWays(MetastableChain):
    """Leaps that are taken back, or not, against what is said."""

    def __new__(cls, **parameters):
        return MetastableChain(**{**parameters, "two_way": not parameters.get("two_way", False)})


class BrokenLab:
    """A laboratory whose settings are of another kind: what tests break."""

    def __init__(self, kind, parameters):
        self.kind, self.parameters, self.setting = kind, parameters, kind(**parameters)

    def at(self, **parameters):
        return BrokenLab(self.kind, {**self.parameters, **parameters})


def check(name, kind=None, seed=0, **parameters):
    claim = CLAIM[name]
    setting = MetastableChain(**{**claim.parameters, **parameters})
    make_lab = (lambda s: TrainingLab(ID, s)) if kind is None else (lambda s: BrokenLab(kind, s.parameters))
    return dataclasses.replace(claim, setting=setting, make_lab=make_lab).check(seed=seed)


@pytest.mark.parametrize("name", CLAIM)
def test_claim_holds(name):
    result = check(name)
    assert result.holds, result


@pytest.mark.parametrize("name", ["two-way", "distilled"])
def test_claim_holds_on_another_instance(name):
    result = check(name, seed=1, instance=10_007)
    assert result.holds, result


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("eps", OftenThanRare),
        ("size", Everywhere),
        ("hops", ShortCut),
        ("two-way", BothWays),
        ("raised", Divided),
        ("raised", OftenThanRare),
        ("raised-small", Divided),
        ("distilled", BothWays),
        ("distilled", ShortCut),
    ],
)
def test_claim_fails_when_its_mechanism_is_broken(name, kind):
    result = check(name, kind)
    assert math.isfinite(result.measured) and not result.holds, result


def test_predictions():
    predicted = {name: claim.predicted(claim.bound()[0]) for name, claim in CLAIM.items()}
    assert predicted["eps"] == pytest.approx(-1, abs=0.03) and predicted["eps"] > -1
    assert predicted["size"] == pytest.approx(1, abs=0.03) and predicted["size"] < 1
    assert predicted["hops"] == pytest.approx(1, abs=0.03) and predicted["hops"] > 1
    assert predicted["two-way"] == pytest.approx(2, abs=0.01)
    assert predicted["raised"] == 1 and predicted["distilled"] == 3
    assert predicted["raised-small"] == pytest.approx((12 + 2 * 0.1) / (12 + 2 * 0.5))


def test_the_five_percent_hold_from_ten_states_on():
    """The factor falls with K and eps towards M / (M + eps_max)."""
    claim = dataclasses.replace(metastable_chain_claims.Raised(), finite=True)
    worst = {M: claim.predicted(MetastableChain(K=32, M=M, eps=1e-4, H=2048)) for M in (9, 10)}
    assert worst[9] < 0.95 < worst[10]


def test_walks_are_those_of_the_setting():
    lab = TrainingLab(ID, MetastableChain(K=3))
    walks = simulate(lab, 2000, 3)
    assert np.array_equal(walks.times, simulate(lab, 2000, 3).times)
    assert not np.array_equal(walks.times, simulate(lab, 2000, 4).times)
    assert walks.jumps.tolist() == [[0, 2000, 0], [0, 0, 2000], [0, 0, 0]]
    assert walks.times.min() >= 3


def test_walks_that_are_cut_fail_a_claim(monkeypatch):
    monkeypatch.setattr(metastable_chain_claims, "PATIENCE", 0.5)
    lab = TrainingLab(ID, MetastableChain(K=3))
    value, low, high = Slope("eps", (0.1, 0.2), episodes=50).measure(lab, 0)
    assert math.isnan(value) and math.isnan(low) and math.isnan(high)
