"""Experiments with the estimators that ship (`theorybench ope`) on logs of a corridor, without reward noise."""

import dataclasses
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import Sampled
from theorybench.envs.core.evidence.interval import Interval, share_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.supervision.off_policy_value.experiments import draw, true_values


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tool(Sampled):
    """Mean over logs of the estimate of an estimator that ships."""

    estimator: str
    slip: float = 0.4
    n: int = 64  # transitions from every cell
    logs: int = 40

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Return the estimate of each log, float64 (logs,)."""
        return np.array([self.estimate(lab, own).value for own in run_seeds(seed, self.logs)])

    def estimate(self, lab: Lab, seed: int) -> Any:
        """Return the Estimate of the log of one seed."""
        length, discount = lab.setting.length, lab.setting.discount
        drawn = draw(length, self.slip, discount, 0.0, self.n, 1, np.random.default_rng([seed, 7]))
        after, (state, action) = drawn.after[0].ravel(), np.divmod(np.repeat(np.arange(2 * length), self.n), 2)
        log = {
            "rows": state,
            "actions": action,
            "rewards": drawn.reward[0].ravel(),
            "next_rows": np.where(after == length, -1, after),
            "starts": np.zeros(1, np.int64),
            "discount": discount,
        }
        return lab.estimate(np.tile([0.0, 1.0], (length, 1)), log, self.estimator, seed=seed)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Coverage(Tool):
    """Share of the 90 % intervals of an estimator that hold the candidate's true value."""

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Return whether each log's interval does, bool (logs,)."""
        truth = true_values(lab.setting.length, self.slip, lab.setting.discount)[1]
        found = [self.estimate(lab, own) for own in run_seeds(seed, self.logs)]
        return np.array([one.low <= truth <= one.high for one in found])

    def summary(self, found: np.ndarray) -> Interval:
        """Return the share, with its exact interval."""
        return share_interval(found)
