"""What claims about RewardTeacher predict and measure.

Times are predicted by the exact gradient flow (`flow`) and measured by training on
sampled pay (`training`). Intervals are three standard errors wide on each side.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import Interval, interval, mean_interval, point, ratio_of_means
from theorybench.envs.core.evidence.lab import Lab
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.preference.reward_teacher.flow import time_bound, two_response_time
from theorybench.envs.preference.reward_teacher.oracle import RewardTeacherOracle
from theorybench.envs.preference.reward_teacher.setting import RewardTeacher
from theorybench.envs.preference.reward_teacher.training import (
    Lesson,
    exact_best_of_n,
    finite_mean,
    nearly_even_settings,
    random_settings,
    sampled_best_of_n,
    spread,
    squared_gradient,
    widest,
)

#: N of best-of-N, and groups of N that are rolled out.
SAMPLES, GROUPS = 8, 60_000


@dataclasses.dataclass(frozen=True)
class GainTime:
    """Mean time to a gain of E r_G.

    Attributes:
        lesson: how to train.
    """

    lesson: Lesson

    def predicted(self, oracle: RewardTeacherOracle) -> float:
        """Two responses: in closed form; else the flow's time."""
        setting = oracle.setting
        if setting.num_responses > 2 or setting.num_contexts > 1:
            return self.lesson.exact(setting)
        best = float(setting.start.max() if setting.tilt > 0 else setting.start.min())
        return two_response_time(best, best + self.lesson.gain / 2, float(np.ptp(setting.tables.model)))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over runs."""
        return finite_mean(self.lesson.times(lab, seed))


@dataclasses.dataclass(frozen=True)
class BoundRatio(GainTime):
    """Mean time to a gain over the least that its variance allows."""

    def predicted(self, oracle: RewardTeacherOracle) -> float:
        """The exact time over the bound."""
        return super().predicted(oracle) / oracle.time_bound(self.lesson.gain)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over runs."""
        return finite_mean(self.lesson.times(lab, seed) / lab.oracle.time_bound(self.lesson.gain))


@dataclasses.dataclass(frozen=True)
class BoundHolds:
    """Share of random settings in which no run has gained gamma at the time 2 (1 - e^-gamma) / sqrt(variance).

    Most teachers are slower by a factor of 2 and more; two nearly even responses all but reach the bound.

    Attributes:
        settings: number of random settings.
        even: further settings, of two nearly even responses.
        updates: of each run up to that time.
        episodes: of each update.
        seeds: runs in each setting.
    """

    settings: int = 24
    even: int = 6
    updates: int = 40
    episodes: int = 512
    seeds: int = 4

    def predicted(self, oracle: Oracle[RewardTeacher]) -> float:
        """All."""
        return 1.0

    def measure(self, lab: Lab, seed: int) -> Interval:
        """The share, without tolerance."""
        rng, held = np.random.default_rng([seed, self.settings]), []
        gains = [*rng.uniform(0.1, 0.5, self.settings), *rng.uniform(0.1, 0.2, self.even)]
        settings = [*random_settings(seed, self.settings), *nearly_even_settings(seed, self.even)]
        for drawn, gain in zip(settings, gains, strict=True):
            rate = time_bound(gain, drawn.variance) / self.updates
            lesson = Lesson(gain, rate, self.episodes, self.seeds, points=1)
            held.append(lesson.gains(lab.at(**drawn.parameters), seed, self.updates)[1].max() < gain)
        share = float(np.mean(held))
        return point(share)


@dataclasses.dataclass(frozen=True)
class Exponent:
    """Slope of ln(time to a gain) against ln(variance) of one reward model at several scales.

    Attributes:
        variances: at least three.
        lesson: how to train.
    """

    variances: tuple[float, ...]
    lesson: Lesson

    def predicted(self, oracle: Oracle[RewardTeacher]) -> float:
        """-1/2: r -> c r makes the clock c times as fast and the variance c^2 times as large."""
        return -0.5

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Least-squares slope."""
        labs = [lab.at(variance=variance) for variance in self.variances]
        times = np.array([self.lesson.times(other, seed) for other in labs])
        if not np.isfinite(times).all():
            return point(-math.inf)
        logs, x = np.log(times.mean(axis=1)), np.log(self.variances) - np.mean(np.log(self.variances))
        errors = times.std(axis=1, ddof=1) / times.mean(axis=1) / math.sqrt(times.shape[1])
        return interval(x @ logs / (x @ x), float(np.linalg.norm(x * errors) / (x @ x)))


@dataclasses.dataclass(frozen=True)
class Race:
    """Time to a gain with one reward model over that with another.

    Attributes:
        first: parameters of the one.
        second: of the other.
        lesson: how to train.
        full_range: give both models all of [-1, 1], instead of the variance that is set.
    """

    first: tuple[tuple[str, Any], ...]
    second: tuple[tuple[str, Any], ...]
    lesson: Lesson
    full_range: bool = False

    def settings(self, setting: RewardTeacher) -> list[RewardTeacher]:
        """Both settings."""
        both = [dataclasses.replace(setting, **dict(model)) for model in (self.first, self.second)]
        return [widest(one) for one in both] if self.full_range else both

    def predicted(self, oracle: Oracle[RewardTeacher]) -> float:
        """The ratio of the flows' times."""
        first, second = (self.lesson.exact(one) for one in self.settings(oracle.setting))
        return first / second

    def measure(self, lab: Lab, seed: int) -> Interval:
        """The ratio of mean times."""
        times = [self.lesson.times(lab.at(**one.parameters), seed) for one in self.settings(lab.setting)]
        return ratio_of_means(*times)


@dataclasses.dataclass(frozen=True)
class GradientShare:
    """|grad E r_M|^2 / variance of r_M at the initial policy.

    Attributes:
        episodes: of each of the parts.
    """

    episodes: int = 20_000

    def predicted(self, oracle: RewardTeacherOracle) -> float:
        """sum pi^2 (r - rbar)^2 / variance."""
        values = oracle.evaluate(oracle.initial_policy, ["gradient_norm", "variance"])
        return values["gradient_norm"] ** 2 / values["variance"]

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over parts of roll-outs."""
        return mean_interval(squared_gradient(lab, self.episodes, seed))


@dataclasses.dataclass(frozen=True)
class GradientHolds:
    """Share of random settings whose |grad E r_M|^2 / variance is not above 1/2.

    Attributes:
        settings: number of settings.
        episodes: of each of the parts.
    """

    settings: int = 40
    episodes: int = 1000

    def predicted(self, oracle: Oracle[RewardTeacher]) -> float:
        """All."""
        return 1.0

    def measure(self, lab: Lab, seed: int) -> Interval:
        """The share of settings whose interval reaches down to 1/2."""
        labs = [lab.at(**drawn.parameters) for drawn in random_settings(seed, self.settings)]
        lows = [mean_interval(squared_gradient(other, self.episodes, seed))[1] for other in labs]
        share = float(np.mean(np.array(lows) <= 0.5))
        return point(share)


@dataclasses.dataclass(frozen=True)
class BestOfN:
    """E r_G of the best of N responses by one reward model, less that by another if there is one.

    Attributes:
        first: parameters of the one.
        second: of the other, or None.
    """

    first: tuple[tuple[str, Any], ...] = ()
    second: tuple[tuple[str, Any], ...] | None = None

    @property
    def _models(self) -> list[dict[str, Any]]:
        return [dict(model) for model in (self.first, self.second) if model is not None]

    def predicted(self, oracle: Oracle[RewardTeacher]) -> float:
        """By the exact law, in which r_M is a ranking."""
        values = [exact_best_of_n(dataclasses.replace(oracle.setting, **model), SAMPLES) for model in self._models]
        return values[0] - sum(values[1:])

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Roll-outs in groups of N of which the best paid is kept."""
        kept = [
            sampled_best_of_n(lab.at(**model), SAMPLES, GROUPS, seed * len(self._models) + number)
            for number, model in enumerate(self._models)
        ]
        return interval(kept[0].mean() - sum(other.mean() for other in kept[1:]), spread(kept))
