"""What claims about InferenceAlignment predict and measure.

Predictions are closed forms and sums; they are measured by sampling best-of-N in rollouts, by training and by exact
prox steps.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.evidence.experiments import metric_of
from theorybench.envs.core.evidence.interval import Interval, interval, mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.preference.inference_alignment.law import balanced_probs, exponent
from theorybench.envs.preference.inference_alignment.oracle import InferenceAlignmentOracle
from theorybench.envs.preference.inference_alignment.setting import InferenceAlignment

#: Of random settings.
KEY = 2602
#: What rounding may add to a distance from the optimum.
ROUNDING = 1e-13


# What policies are worth.


def sampled_value(lab: Lab, policy: Any, groups: int, seed: int) -> tuple[float, float]:
    """Sample best-of-N: mean and standard error of the weighted sum of the criteria's best values in groups of N."""
    setting: InferenceAlignment = lab.setting
    episodes = lab.simulate(policy, groups * setting.samples, seed)
    values = setting.criteria(np.zeros((len(episodes.rewards), 2)), np.asarray(episodes.actions)[:, 0])
    best = values.reshape(groups, setting.samples, -1).max(axis=1) @ setting.inference.weights
    return float(best.mean()), float(best.std(ddof=1) / math.sqrt(groups))


@dataclasses.dataclass(frozen=True)
class SampledGain:
    """What the aligned optimum is worth more than another policy, by sampling best-of-N."""

    other: str  # "reference", or "plain": the optimum for N = 1
    groups: int = 100_000  # of N responses of each policy
    exponent: Callable[[int], float] = exponent  # of the closed form, a function of N

    def rival(self, oracle: InferenceAlignmentOracle) -> Any:
        """Return the other policy."""
        return oracle.reference_policy if self.other == "reference" else oracle.plain_optimum

    def predicted(self, oracle: InferenceAlignmentOracle) -> float:
        """The difference of exact values, that of the optimum in closed form."""
        policies = oracle.policy(balanced_probs(oracle.setting, self.exponent)), self.rival(oracle)
        best, rest = (metric_of(oracle, policy, "aligned_value") for policy in policies)
        return best - rest

    def measure(self, lab: Lab, seed: int) -> Interval:
        """The difference of means over groups."""
        best, error = sampled_value(lab, lab.oracle.optimal_policy, self.groups, seed)
        rest, other = sampled_value(lab, self.rival(lab.oracle), self.groups, seed + 1_000_003)
        return interval(best - rest, math.hypot(error, other))


def difference_of_learners(
    lab: Lab, seed: int, learners: tuple[tuple[str, Mapping[str, Any]], ...], budget: int = 4096, seeds: int = 4
) -> float:
    """Train two agents with the same seeds; return the largest difference of their probabilities.

    Args:
        lab: of the setting.
        seed: of the experiment.
        learners: names and hyper-parameters of the two.
        budget: episodes of each run.
        seeds: number of runs.
    """
    first, second = (
        np.array([lab.oracle.table(policy) for policy in lab.train(name, run_seeds(seed, seeds), budget, **options)])
        for name, options in learners
    )
    return float(np.abs(first - second).max())


# Prox steps and the derivative.


def left_after_one_step(lab: Lab, seed: int) -> float:
    """Return the share of J* - J_ref that is left after one prox step without proximity, L = 0."""
    oracle: InferenceAlignmentOracle = lab.oracle
    *_, probs = oracle.prox_path(1, smoothness=0.0)
    return 1 - oracle.score(oracle.policy(probs))


def sharpest_bend(lab: Lab, seed: int) -> float:
    """Return the largest -G''(d) / sum d^2 / pi between two responses, by second differences at 999 policies."""
    step, first = 1e-4, np.arange(1, 1000) / 1000
    shifts = first[:, None] + step * np.array([-1, 0, 1])
    values = np.array(
        [
            [metric_of(lab.oracle, lab.oracle.policy(np.array([p, 1 - p])), "aligned_value") for p in row]
            for row in shifts
        ]
    )
    bends = -(values[:, 0] - 2 * values[:, 1] + values[:, 2]) / step**2 * first * (1 - first)
    return float(bends.max())


def random_settings(seed: int, count: int) -> list[InferenceAlignment]:
    """Draw settings with weighted sums of random criteria, a third of them with two responses."""
    rng = np.random.default_rng([KEY, seed])
    drawn: list[InferenceAlignment] = []
    while len(drawn) < count:
        parameters: dict[str, Any] = {
            "num_points": int(rng.choice([2, 2, 3, 5, 21, 41])),
            "num_criteria": int(rng.integers(1, 4)),
            "samples": int(rng.choice([2, 3, 4, 8, 16])),
            "beta": float(10 ** rng.uniform(-3, 0)),
            "tilt": float(rng.uniform(-4, 4)),
            "first_weight": float(10 ** rng.uniform(-1, 1)),
            "instance": int(rng.integers(10_000)),
        }
        try:
            drawn.append(InferenceAlignment(family="random", **parameters))
        except ParameterError:  # nothing to learn
            continue
    return drawn


def share_below_bound(lab: Lab, seed: int, settings: int = 60, steps: int = 60, factor: float = 1.0) -> float:
    """Return the share of random settings in which exact prox steps stay below the bound at every step.

    `steps` and `factor` are those of `prox_curve`; the lab's setting plays no role.
    """
    curves = [prox_curve(InferenceAlignmentOracle(drawn), steps, factor) for drawn in random_settings(seed, settings)]
    return float(np.mean([(left <= bound + ROUNDING).all() for left, bound in curves]))


def prox_curve(oracle: InferenceAlignmentOracle, steps: int, factor: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return J* - J after 1, ..., T exact prox steps and the bound on it, float64 (T,) each.

    Args:
        oracle: of a weighted sum.
        steps: T.
        factor: of L, in steps and bound.
    """
    weight = factor * oracle.smoothness
    path = list(oracle.prox_path(steps, weight))[1:]
    values = [metric_of(oracle, oracle.policy(probs), "objective") for probs in path]
    bounds = [oracle.prox_bound(step, weight) for step in range(1, steps + 1)]
    return oracle.optimal_value - np.array(values), np.array(bounds)


def squared_spans(lab: Lab, size: int, episodes: int, seed: int) -> np.ndarray:
    """Estimate the first variation at the reference from M rollouts, many times; return squared errors in the span.

    Args:
        lab: of the setting.
        size: M.
        episodes: of all estimates together.
        seed: of the rollouts.

    Returns:
        float64 (episodes // M,), (max - min over responses of the error)^2.
    """
    oracle: InferenceAlignmentOracle = lab.oracle
    count, points = episodes // size, lab.setting.num_points
    actions = np.asarray(lab.simulate(oracle.reference_policy, count * size, seed).actions)[:, 0]
    rows = np.repeat(np.arange(count), size) * points + actions
    law = np.bincount(rows, minlength=count * points).reshape(count, points) / size
    errors = lab.setting.aligned.variation(law) - oracle.first_variation(oracle.reference_policy)
    return np.ptp(errors, axis=1) ** 2


@dataclasses.dataclass(frozen=True)
class ErrorRate:
    """Slope of ln (mean squared error of the derivative in the span) against ln M."""

    sizes: tuple[int, ...] = (64, 256, 1024, 4096)  # the M
    episodes: int = 2**19  # for each of them
    parts: int = 8  # independent slopes, whose spread gives the interval
    power: float = 2.0  # of the error: 2

    def predicted(self, oracle: Oracle[InferenceAlignment]) -> float:
        """-1."""
        return -1.0

    def measure(self, lab: Lab, seed: int) -> Interval:
        """The mean of the slopes of parts."""
        means = []
        for number, size in enumerate(self.sizes):
            errors = squared_spans(lab, size, self.episodes, 16 * seed + number) ** (self.power / 2)
            means.append(errors.reshape(self.parts, -1).mean(axis=1))
        slopes = np.polyfit(np.log(self.sizes), np.log(np.array(means)), 1)[0]
        return mean_interval(slopes)
