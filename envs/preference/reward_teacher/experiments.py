"""Experiments of the claims about RewardTeacher: what they predict and what they measure.

Times are predicted by the exact gradient flow (`flow`) and measured by training on sampled rewards (`training`), one
value for each run.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import Computed, Sampled, SampleMean
from theorybench.envs.core.evidence.interval import (
    Interval,
    interval,
    mean_interval,
    point,
    ratio_of_means,
    slope_interval,
)
from theorybench.envs.core.evidence.lab import Lab, seed_of
from theorybench.envs.core.numerics import standard_error
from theorybench.envs.preference.reward_teacher.flow import time_bound, two_response_time
from theorybench.envs.preference.reward_teacher.oracle import RewardTeacherOracle
from theorybench.envs.preference.reward_teacher.setting import RewardTeacher
from theorybench.envs.preference.reward_teacher.training import Training

#: A variance that every setting can have, used to query its largest.
TINY = 1e-12
#: Keys of the random streams of random settings, and of those with two nearly equally likely responses.
RANDOM, EVEN = 2503, 2504
#: Number of parts of the rollouts for a gradient; their spread gives the interval.
PARTS = 32
#: Number of updates up to the time of a bound.
UPDATES = 40


def widest(setting: RewardTeacher) -> RewardTeacher:
    """Return the setting whose reward model uses all of [-1, 1] in the context that allows the least variance."""
    narrow = dataclasses.replace(setting, variance=TINY)
    return dataclasses.replace(narrow, variance=narrow.largest_variance)


def random_settings(seed: int, count: int) -> list[RewardTeacher]:
    """Draw settings with one context: responses, tilt, accuracy, variance and instance."""
    rng, drawn = np.random.default_rng([RANDOM, seed]), []
    for _ in range(count):
        responses = int(rng.choice([2, 3, 4, 8]))
        pairs = responses * (responses - 1) // 2
        setting = RewardTeacher(
            num_responses=responses,
            num_contexts=1,
            accuracy=rng.integers(pairs // 2, pairs + 1) / pairs,
            variance=TINY,
            tilt=rng.uniform(-1.5, 1.0),
            instance=int(rng.integers(10_000)),
        )
        drawn.append(dataclasses.replace(setting, variance=setting.largest_variance * rng.uniform(0.01, 1.0)))
    return drawn


def nearly_even_settings(seed: int, count: int) -> list[RewardTeacher]:
    """Draw settings of two nearly equally likely responses: gains of .1 to .2 take 1.05 to 1.16 times their bound."""
    tilts = np.random.default_rng([EVEN, seed]).uniform(-0.05, 0.05, count)
    return [
        widest(RewardTeacher(num_responses=2, num_contexts=1, accuracy=1.0, variance=TINY, tilt=tilt)) for tilt in tilts
    ]


# Times of training.


def gain_time(training: Training) -> SampleMean:
    """Mean time to a gain of E r_G: the closed form for two responses, otherwise the flow's time."""

    def prediction(oracle: RewardTeacherOracle) -> float:
        setting = oracle.setting
        if setting.num_responses > 2 or setting.num_contexts > 1:
            return oracle.gain_time(training.gain)
        best = float(setting.reference.max() if setting.tilt > 0 else setting.reference.min())
        return two_response_time(best, best + training.gain / 2, float(np.ptp(setting.tables.model)))

    return SampleMean(prediction=prediction, sample=training.times)


def bound_ratio(training: Training) -> SampleMean:
    """Mean time to a gain divided by the lower bound for its variance."""
    time = gain_time(training)
    return SampleMean(
        prediction=lambda oracle: time.predicted(oracle) / oracle.time_bound(training.gain),
        sample=lambda lab, seed: training.times(lab, seed) / lab.oracle.time_bound(training.gain),
    )


def bound_holds(settings: int = 24, even: int = 6) -> Computed:
    """Share of random settings in which no run has gained gamma at the time 2 (1 - e^-gamma) / sqrt(variance): 1.

    Most teachers are slower by a factor of 2 or more; two nearly equally likely responses almost attain the bound.

    Args:
        settings: number of random settings.
        even: number of further settings, of two nearly equally likely responses.
    """

    def value(lab: Lab, seed: int) -> float:
        rng, held = np.random.default_rng([seed, settings]), []
        gains = [*rng.uniform(0.1, 0.5, settings), *rng.uniform(0.1, 0.2, even)]
        drawn = [*random_settings(seed, settings), *nearly_even_settings(seed, even)]
        for one, gain in zip(drawn, gains, strict=True):
            rate = time_bound(gain, one.variance) / UPDATES
            training = Training(gain, rate, seeds=4, points=1)
            held.append(training.gains(lab.at(**one.parameters), seed, UPDATES)[1].max() < gain)
        return float(np.mean(held))

    return Computed(prediction=lambda oracle: 1.0, value=value)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exponent(Sampled):
    """Slope of ln(time to a gain) against ln(variance) of one reward model at several scales."""

    variances: tuple[float, ...]  # at least three variances
    training: Training  # how to train

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Train; return the time of each run at each variance, float64 (variances, seeds)."""
        labs = [lab.at(variance=variance) for variance in self.variances]
        return np.array([self.training.times(one, seed_of(seed, number)) for number, one in enumerate(labs)])

    def summary(self, found: np.ndarray) -> Interval:
        """Return the least-squares slope through the logarithms of mean times."""
        if not np.isfinite(found).all():
            return point(-math.inf)
        means = found.mean(axis=1)
        errors = [standard_error(times) / mean for times, mean in zip(found, means, strict=True)]
        return slope_interval(np.log(self.variances), np.log(means).tolist(), errors, found.shape[1] - 1)


def exponent(variances: tuple[float, ...], training: Training) -> Exponent:
    """The slope is -1/2: r -> c r makes the flow c times as fast and the variance c^2 times as large."""
    return Exponent(prediction=lambda oracle: -0.5, variances=variances, training=training)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Race(Sampled):
    """Time to a gain with one reward model divided by that with another."""

    settings: Callable[[RewardTeacher], Sequence[RewardTeacher]]  # those of both models, given the claim's
    training: Training  # how to train

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Train; return the time of each run with each model, float64 (2, seeds)."""
        labs = [lab.at(**one.parameters) for one in self.settings(lab.setting)]
        return np.array([self.training.times(one, seed_of(seed, number)) for number, one in enumerate(labs)])

    def summary(self, found: np.ndarray) -> Interval:
        """Return the ratio of mean times."""
        return ratio_of_means(*found)


def race(first: Mapping[str, Any], second: Mapping[str, Any], training: Training, *, full_range: bool = False) -> Race:
    """The ratio is that of the flows' times.

    Args:
        first: parameters of the first model.
        second: parameters of the second.
        training: how to train.
        full_range: scale both models to [-1, 1] instead of the given variance.
    """

    def settings(setting: RewardTeacher) -> list[RewardTeacher]:
        both = [dataclasses.replace(setting, **model) for model in (first, second)]
        return [widest(one) for one in both] if full_range else both

    def prediction(oracle: RewardTeacherOracle) -> float:
        times = [training.exact(one) for one in settings(oracle.setting)]
        return times[0] / times[1]

    return Race(prediction=prediction, settings=settings, training=training)


# Rollouts of the initial policy.


def gradient_share(episodes: int = 20_000) -> SampleMean:
    """|grad E r_M|^2 / variance of r_M at the initial policy, in one context: sum pi^2 (r - rbar)^2 / variance.

    Two halves of a part of `episodes` episodes give independent estimates of the gradient, mean r (e_y - pi), so their
    inner product is an unbiased estimate of its squared norm. The variance is that of all rewards.
    """

    def prediction(oracle: RewardTeacherOracle) -> float:
        values = oracle.evaluate(oracle.initial_policy, ["gradient_norm", "variance"])
        return values["gradient_norm"] ** 2 / values["variance"]

    def sample(lab: Lab, seed: int) -> np.ndarray:
        played = lab.simulate(lab.oracle.initial_policy, episodes * PARTS, seed)
        chosen = np.eye(lab.setting.num_responses)[played.actions[:, 0]] - lab.setting.reference
        halves = (played.rewards[:, None] * chosen).reshape(PARTS, 2, episodes // 2, -1).mean(axis=2)
        return np.asarray((halves[:, 0] * halves[:, 1]).sum(axis=1) / played.rewards.var())

    return SampleMean(prediction=prediction, sample=sample)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BestOfN(Sampled):
    """E r_G of the best of N responses by one reward model, or the difference between two reward models."""

    models: tuple[Mapping[str, Any], ...]  # parameters of each model
    samples: int  # the number N of responses
    groups: int = 60_000  # number of groups of N responses

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Return r_G of the response with the largest r_M in each group of rollouts, float64 (models, groups)."""
        labs = [lab.at(**model) for model in self.models]
        return np.array([self._kept(one, seed * len(labs) + number) for number, one in enumerate(labs)])

    def summary(self, found: np.ndarray) -> Interval:
        """Return the mean, or the difference of the means."""
        if len(found) == 1:
            return mean_interval(found[0])
        error = math.hypot(*map(standard_error, found))
        return interval(float(found[0].mean() - found[1].mean()), error, found.shape[1] - 1)

    def _kept(self, lab: Lab, seed: int) -> np.ndarray:
        played = lab.simulate(lab.oracle.initial_policy, self.groups * self.samples, seed, group_size=self.samples)
        truth = lab.setting.tables.truth[played.prompts, played.actions[:, 0]].reshape(self.groups, self.samples)
        best = played.rewards.reshape(self.groups, self.samples).argmax(axis=1)
        return truth[np.arange(self.groups), best]


def best_of_n(*models: Mapping[str, Any], samples: int = 8) -> BestOfN:
    """The exact value depends on r_M through its ranking only; `models` are one or two, by default the claim's own."""
    asked = models or ({},)

    def prediction(oracle: RewardTeacherOracle) -> float:
        settings = [dataclasses.replace(oracle.setting, **model) for model in asked]
        values = [RewardTeacherOracle(setting).best_of_n(samples) for setting in settings]
        return values[0] - sum(values[1:])

    return BestOfN(prediction=prediction, models=asked, samples=samples)
