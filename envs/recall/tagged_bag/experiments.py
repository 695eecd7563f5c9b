"""Experiments on bags of readings: soft recall by tags, and what changes where readings are rearranged."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import Sampled
from theorybench.envs.core.evidence.interval import Interval, point
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.recall.experiments import NETWORK

#: Turns readings, int (n, t), into others that mean the same.
Rearrange = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def soft_recall(tags: np.ndarray, asked: np.ndarray, sharpness: float) -> np.ndarray:
    """Return the weights of a softmax over the overlaps of unit tags with the one asked about.

    Args:
        tags: of readings, float64 (readings, d).
        asked: the tag of the question, float64 (d,).
        sharpness: beta, the inverse temperature.

    Returns:
        float64 (readings,).
    """
    overlaps = sharpness * (tags @ asked)
    weights = np.exp(overlaps - overlaps.max())
    return np.asarray(weights / weights.sum())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Leak(Sampled):
    """How much of what a softmax recalls is of other sources, on random orthonormal tags."""

    sharpness: float  # beta
    own: int = 16  # readings of the source that is asked about
    others: int = 16  # readings of each other source
    overlap: float = 0.0  # of any two tags
    of_values: bool = False  # the error of the recalled mean, over the distance of the others' mean; not the weight
    dimension: int = 24  # of tags
    runs: int = 8  # random bags

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Recall from random bags; return the share of each, float64 (runs,)."""
        return np.array([self._share(lab.setting.I, run) for run in run_seeds(seed, self.runs)])

    def _share(self, sources: int, run: int) -> float:
        rng = np.random.default_rng([260201863, run])
        basis = np.linalg.qr(rng.standard_normal((self.dimension, sources + 1)))[0].T
        # A part that all tags share makes any two overlap.
        tags = math.sqrt(1 - self.overlap) * basis[:sources] + math.sqrt(self.overlap) * basis[sources]
        asked = int(rng.integers(sources))
        owner = np.repeat(np.arange(sources), np.where(np.arange(sources) == asked, self.own, self.others))
        weights = soft_recall(tags[owner], tags[asked], self.sharpness)
        if not self.of_values:
            return float(weights[owner != asked].sum())
        readings = rng.standard_normal((len(owner), 8))
        own, others = (readings[chosen].mean(axis=0) for chosen in (owner == asked, owner != asked))
        return float(np.linalg.norm(weights @ readings - own) / np.linalg.norm(others - own))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rearranged(Sampled):
    """The largest change of a probability where the readings of prompts are rearranged."""

    policy: str  # the class of network
    rearrange: Rearrange
    budget: int = 2_560  # episodes of training
    seeds: int = 2

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Train, then compare answers to prompts before and after; return the change in each run, float64 (seeds,)."""
        seeds = run_seeds(seed, self.seeds)
        policies = lab.train("rlvr", seeds, self.budget, policy=self.policy, **NETWORK)
        found = [
            rearranged_change(lab, policy, self.rearrange, run) for run, policy in zip(seeds, policies, strict=True)
        ]
        return np.array(found)

    def summary(self, found: np.ndarray) -> Interval:
        """Return the largest change in any run."""
        return point(found.max())


def rearranged_change(lab: Lab, policy: Any, rearrange: Rearrange, run: int, prompts: int = 256) -> float:
    """Return the largest change of a probability where the readings of prompts are rearranged.

    Half as many readings as the full length has, so that there is room for each to occur twice.
    """
    setting = lab.setting
    seen = lab.oracle.pool().observations[:prompts, : setting.n + 1]
    question, before = seen[:, setting.n :], seen[:, setting.n - setting.n // 2 : setting.n]
    after = rearrange(np.random.default_rng([run, 9]), before)
    first, second = (
        lab.oracle.probs(policy, setting.observations(np.column_stack([part, question]))) for part in (before, after)
    )
    return float(np.abs(first - second).max())


def permuted(rng: np.random.Generator, readings: np.ndarray) -> np.ndarray:
    """Return readings in another order, the same for all prompts: int (n, t)."""
    return readings[:, rng.permutation(readings.shape[1])]


def doubled(rng: np.random.Generator, readings: np.ndarray) -> np.ndarray:
    """Return each reading twice: int (n, 2 t)."""
    return np.repeat(readings, 2, axis=1)
