"""Training on the reward model until the ground truth has gained a given amount, in units of gradient-flow time.

Training is plain REINFORCE without a baseline ("rlvr", stochastic gradient ascent): with large batches and small steps
it follows the gradient flow, one update of learning rate eta taking a time eta. Trained policies are evaluated exactly.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import metric_of
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
    """Training until E r_G has gained `gain`."""

    gain: float  # the gain gamma of E r_G
    learning_rate: float  # the learning rate eta
    episodes: int = 512  # episodes per update
    seeds: int = 8  # number of runs
    patience: float = 1.3  # length of a run, in multiples of the exact gain time
    points: int = 100  # number of policies evaluated during a run

    def exact(self, setting: RewardTeacher) -> float:
        """Return the time of the gradient flow."""
        return RewardTeacherOracle(setting).gain_time(self.gain)

    def times(self, lab: Lab, seed: int) -> np.ndarray:
        """Train; return the time of each run, float64 (seeds,), infinite if it did not reach the gain."""
        updates = math.ceil(self.patience * self.exact(lab.setting) / self.learning_rate)
        moments, gains = self.gains(lab, seed, updates)
        return np.array([_crossing(moments, run, self.gain) for run in gains])

    def gains(self, lab: Lab, seed: int, updates: int) -> tuple[np.ndarray, np.ndarray]:
        """Train; return times (points,) and gains of E r_G (seeds, points), including the start."""
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
    """Return the time at which the interpolated gains first reach a gain; infinite if they do not."""
    reached = np.flatnonzero(gains >= gain)
    if not len(reached):
        return math.inf
    after = reached[0]
    share = (gain - gains[after - 1]) / (gains[after] - gains[after - 1])
    return float(times[after - 1] + share * (times[after] - times[after - 1]))
