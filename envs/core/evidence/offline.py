"""Experiments on estimates of a policy's value from logs of another one, used by claims of several settings.

The lab rolls out the logs and estimates (`Lab.estimate`); the predictions are the settings'.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import Sampled
from theorybench.envs.core.evidence.interval import MISS, Interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.policy import SettingPolicy


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoggedValue(Sampled):
    """Mean over logs of an estimate of a policy's value, or of what it differs by from that of another estimator."""

    target: Callable[[Any], Any]  # oracle -> the policy whose value is asked for
    estimator: str
    less: str = ""  # the other estimator, on the same log; "" for none
    view: str | None = None  # what both see
    behaviour: str = "reference"  # who is logged: "reference", "initial" or "uniform"
    episodes: int = 2000  # of a log
    logs: int = 10

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Return the estimate of each log, float64 (logs,)."""
        return np.array([self.estimate(lab, one, self.estimator) for one in run_seeds(seed, self.logs)])

    def estimate(self, lab: Lab, seed: int, estimator: str) -> float:
        """Return the estimate of the log of one seed."""
        policy, log = self.target(lab.oracle), self.log(lab, seed)
        value = lab.estimate(policy, log, estimator, view=self.view).value
        return float(value - lab.estimate(policy, log, self.less, view=self.view).value if self.less else value)

    def log(self, lab: Lab, seed: int) -> Any:
        """Roll out the log of one seed."""
        return lab.simulate(SettingPolicy(lab.setting, self.behaviour), self.episodes, seed)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scatter(LoggedValue):
    """By how much the estimates of one estimator scatter less than `least` times those of a second one; 0 for no less.

    Both read the same logs. The interval is that of the F distribution for the ratio of deviations.
    """

    second: str
    least: float

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Return the shortfall, 0 or more."""
        from scipy.special import fdtri

        pairs = [
            [self.estimate(lab, s, name) for name in (self.estimator, self.second)] for s in run_seeds(seed, self.logs)
        ]
        first, second = np.std(np.array(pairs), axis=0, ddof=1)
        freedom = self.logs - 1
        low, high = (np.sqrt(1.0 / fdtri(freedom, freedom, share)) for share in (1 - MISS / 2, MISS / 2))
        ratio = first / second
        value, most, least = (max(0.0, self.least - ratio * factor) for factor in (1.0, low, high))
        return Interval(value, least, most)
