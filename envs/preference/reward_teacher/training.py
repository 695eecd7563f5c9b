"""Training from pay until the ground truth has gained something, in the time of the gradient flow.

Training is plain REINFORCE without a baseline ("rlvr", stochastic gradient ascent): with large batches and small steps
it follows the gradient flow, an update of learning rate eta taking a time eta. What a trained policy is worth is exact.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import metric_of
from theorybench.envs.core.evidence.interval import Interval, mean_interval, point
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.preference.reward_teacher.oracle import RewardTeacherOracle
from theorybench.envs.preference.reward_teacher.setting import RewardTeacher

#: Plain stochastic gradient ascent from the initial policy.
PLAIN: dict[str, Any] = {
    "policy": "prompt",
    "start": "initial",
    "optimizer": "sgd",
    "baseline": "none",
}


@dataclasses.dataclass(frozen=True)
class Training:
    """Training until E r_G has gained something.

    Attributes:
        gain: gamma, of E r_G.
        learning_rate: eta.
        episodes: of each update.
        seeds: number of runs.
        patience: how long runs are watched, in exact gain times.
        points: policies that are looked at.
    """

    gain: float
    learning_rate: float
    episodes: int = 512
    seeds: int = 16
    patience: float = 1.3
    points: int = 100

    def exact(self, setting: RewardTeacher) -> float:
        """Time of the gradient flow."""
        return RewardTeacherOracle(setting).gain_time(self.gain)

    def times(self, lab: Lab, seed: int) -> np.ndarray:
        """Train; give the time of each run, float64 (seeds,), infinite where it did not get there."""
        updates = math.ceil(self.patience * self.exact(lab.setting) / self.learning_rate)
        moments, gains = self.gains(lab, seed, updates)
        return np.array([_crossing(moments, run, self.gain) for run in gains])

    def gains(self, lab: Lab, seed: int, updates: int) -> tuple[np.ndarray, np.ndarray]:
        """Train; give times (points,) and gains of E r_G (seeds, points), the start included."""
        runs = lab.trace(
            "rlvr",
            run_seeds(seed, self.seeds),
            updates * self.episodes,
            points=min(self.points, updates),
            learning_rate=self.learning_rate,
            episodes_per_update=self.episodes,
            **PLAIN,
        )
        oracle, before = lab.oracle, lab.oracle.reference_value
        gains = [[0.0, *(metric_of(oracle, policy, "objective") - before for _, policy in run)] for run in runs]
        moments = [0.0, *(self.learning_rate * episodes / self.episodes for episodes, _ in runs[0])]
        return np.array(moments), np.array(gains)


def _crossing(times: np.ndarray, gains: np.ndarray, gain: float) -> float:
    """Give the time at which a line through points first reaches a gain; infinite where it does not."""
    reached = np.flatnonzero(gains >= gain)
    if not len(reached):
        return math.inf
    after = reached[0]
    share = (gain - gains[after - 1]) / (gains[after] - gains[after - 1])
    return float(times[after - 1] + share * (times[after] - times[after - 1]))


def finite_mean(times: np.ndarray) -> Interval:
    """Give the mean of times (n,) and its interval; infinite throughout where some run did not get there."""
    return mean_interval(times) if np.isfinite(times).all() else point(math.inf)
