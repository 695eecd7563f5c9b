"""Experiments on moments of sampled data, and roll-outs of the episode.

Estimates are those of `estimator.py`; nothing is shared with the law that they are compared with.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import Predicted, Sampled
from theorybench.envs.core.evidence.interval import Interval, mean_interval, point, slope_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds, seed_of
from theorybench.envs.core.numerics import standard_error
from theorybench.envs.features.generative_leap.estimator import Part, recovered


@dataclasses.dataclass(frozen=True, kw_only=True)
class Data:
    """Data whose labels are made of some parts, and which degree of them is looked at."""

    parts: tuple[Part, ...]  # of labels
    targets: tuple[int, ...]  # directions that show at this degree
    degree: int  # k
    known: Mapping[int, float] = dataclasses.field(default_factory=dict)  # overlaps of accepted directions

    def look(self, dimension: int, samples: int, seed: int, **options: Any) -> np.ndarray:
        """Return the mean overlap^2 of one draw, float64 (answers,)."""
        rng = np.random.default_rng(seed)
        return recovered(
            self.parts, self.targets, dimension, self.degree, samples, rng, known=self.known, **options
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recovered(Sampled):
    """Mean overlap^2 of eigenvectors with the directions that show at a degree."""

    data: Data
    dimension: int  # d
    samples: int  # n
    draws: int = 16  # of the data
    diagonal: tuple[bool, ...] = (False,)  # whether pairs i = j stay; of two answers the difference is taken
    residue: bool = True  # whether an eigenvector more is taken for each accepted direction

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Draw and estimate: float64 (draws,)."""
        options = {"diagonal": self.diagonal, "residue": self.residue}
        own = [self.data.look(self.dimension, self.samples, seed_of(one, 1), **options) for one in self.seeds(seed)]
        found = np.array(own)
        return found[:, 0] - found[:, 1] if found.shape[1] > 1 else found[:, 0]

    def seeds(self, seed: int) -> range:
        """Return the seeds of the draws."""
        return run_seeds(seed, self.draws)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exponent(Predicted):
    """Slope of the logarithm of the samples that are needed for overlap^2 = 1/2, in that of the dimension.

    Of each batch of draws the mean overlap^2 is found at a few sample sizes, and between two of these the one at which
    it passes 1/2.
    """

    data: Data
    dimensions: tuple[int, ...]
    samples: tuple[int, ...]  # about as many are needed in each dimension
    factors: tuple[float, ...] = (0.5, 0.71, 1.0, 1.41, 2.0)  # of these
    batches: int = 8
    draws: int = 4  # in a batch

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Return the slope of the line through mean logarithms."""
        found = np.array([self.needed(place, seed) for place in range(len(self.dimensions))])  # (dimensions, batches)
        errors = [standard_error(logs) for logs in found]
        return slope_interval(np.log(self.dimensions), found.mean(axis=1), errors, self.batches - 1)

    def needed(self, place: int, seed: int) -> list[float]:
        """Return the logarithm of the samples that each batch needs in one of the dimensions."""
        dimension, logs = self.dimensions[place], np.log(np.array(self.factors) * self.samples[place])
        found = []
        for batch in run_seeds(seed, self.batches):
            means = [
                np.mean(
                    [
                        self.data.look(dimension, round(math.exp(log)), seed_of(batch, place, number, draw, 2))
                        for draw in range(self.draws)
                    ]
                )
                for number, log in enumerate(logs.tolist())
            ]
            found.append(float(np.interp(0.5, np.maximum.accumulate(means), logs)))
        return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class Best(Predicted):
    """The largest reward of many random episodes in one world, less what a policy earns there if one is given.

    An episode has no chance in it beside the world: of 6^5 = 7,776 sequences of actions each is played.
    """

    world: int  # its number
    dimensions: tuple[int, ...]  # the mean over these
    episodes: int = 2**17  # in each

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Play."""
        return point(float(np.mean([self.best(lab.at(dims=(own,)), seed) for own in self.dimensions])))

    def best(self, lab: Lab, seed: int) -> float:
        """Return the largest reward in one dimension."""
        prompts = np.full(self.episodes, self.world)
        return float(lab.simulate(lab.oracle.initial_policy, self.episodes, seed_of(seed, 3), prompts=prompts).rewards.max())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Earned(Predicted):
    """Mean reward of a policy over some prompts, each once: episodes have no chance in them if the policy has none."""

    policy: Callable[[Any], Any]  # of the oracle
    prompts: Callable[[Any], np.ndarray]  # of the setting
    number: Callable[[Any, float], float] = lambda setting, reward: reward  # of setting and reward

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Play."""
        prompts = self.prompts(lab.setting)
        rewards = lab.simulate(self.policy(lab.oracle), len(prompts), seed_of(seed, 4), prompts=prompts).rewards
        return point(self.number(lab.setting, float(rewards.mean())))


def _unused() -> None:
    mean_interval(np.zeros(2))
