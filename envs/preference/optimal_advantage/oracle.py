"""Exact answers about OptimalAdvantage: every value is one sum over prompts and responses."""

import functools
import re
from typing import Any, ClassVar

import numpy as np

from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.preference.contextual import ContextualOracle
from theorybench.envs.preference.optimal_advantage.optimal_value import optimal_success, optimal_value
from theorybench.envs.preference.optimal_advantage.pass_at_k import pass_at
from theorybench.envs.preference.optimal_advantage.regression import path_probs
from theorybench.envs.preference.optimal_advantage.setting import OptimalAdvantage

#: The values of K that `evaluate` reports by default.
STANDARD_KS = (1, 2, 4, 8, 16, 32, 64, 128)


class OptimalAdvantageOracle(ContextualOracle[OptimalAdvantage]):
    """Exact answers by enumeration of the X prompts and m responses, in float64, for any policy.

    J(pi) = E_x sum_y pi (r - beta ln(pi / pi_ref)) is strictly concave; its maximum is pi* = pi_ref e^{(r - V*) / beta}
    with V* of `optimal_value`. Rewards are deterministic given prompt and response, so with s(x) the policy's success
    probability pass@K = E_x [1 - (1 - s)^K]; any K >= 1 can be requested.
    """

    metrics: ClassVar[dict[str, str]] = {
        "objective": "J = E r - beta KL(pi || pi_ref)",
        "kl": "KL divergence of the policy to the reference, in nats",
        "success": "probability of a right response, which is pass@1",
        **{f"pass@{k}": f"probability that one of {k} independent responses is right" for k in STANDARD_KS},
        "ceiling": "limit of pass@K as K grows: the share of prompts that the policy solves with positive probability",
        "kl_to_optimal": "KL(pi || pi*), in nats: (J* - J) / beta",
        "kl_from_optimal": "KL(pi* || pi), in nats; infinite where the policy misses a response",
    }

    @functools.cached_property
    def values(self) -> np.ndarray:
        """V* of each prompt, float64 (X,)."""
        return optimal_value(self.setting.chances, self.setting.beta)

    @functools.cached_property
    def optimal_chances(self) -> np.ndarray:
        """P* of each prompt, the optimum's success probability, float64 (X,)."""
        return optimal_success(self.setting.chances, self.setting.beta)

    @functools.cached_property
    def optimal_policy(self) -> TablePolicy:
        """The optimum pi* ~ pi_ref e^{r / beta}."""
        return self.policy(path_probs(self.setting.tables.rewards, self.setting.beta, tilt=1.0))

    @property
    def ceiling(self) -> float:
        """Share of prompts with p > 0, which bounds pass@K of every policy for every K."""
        return 1.0 - self.setting.num_zeros / self.setting.num_prompts

    def chances(self, policy: Any) -> np.ndarray:
        """Return s(x), the policy's chance of a right response to each prompt, float64 (X,)."""
        return np.minimum(np.sum(self.table(policy) * self.setting.tables.rewards, axis=1), 1.0)

    def reward_value(self, policy: Any) -> float:
        """Return a policy's mean reward, its success, also where it leaves the reference's support."""
        return self.evaluate(policy, ["success"])["success"]

    def measure(self, policy: Any, metrics: frozenset[str] | None) -> dict[str, float]:
        """Compute metrics of a policy, exactly; see `metrics` for their meaning."""
        probs, setting = self.table(policy), self.setting
        chances, kl = self.chances(policy), self.reference_kl(probs)
        success = float(np.mean(chances))
        values = {"objective": success - setting.beta * kl, "kl": kl, "success": success}
        if metrics is not None and metrics <= values.keys():
            return values
        passed = (re.fullmatch(r"pass@([1-9]\d*)", name) for name in metrics or ())
        for k in dict.fromkeys([*STANDARD_KS, *(int(name[1]) for name in passed if name)]):
            values[f"pass@{k}"] = float(np.mean(pass_at(chances, k)))
        values["ceiling"] = float(np.mean(chances > 0))
        # In logarithms, since for small beta the optimum's probabilities of wrong responses underflow.
        optimum = (setting.tables.rewards - self.values[:, None]) / setting.beta - np.log(setting.num_responses)
        with np.errstate(divide="ignore"):
            logs = np.log(probs)
        values["kl_to_optimal"] = _mean_gap(probs, logs, optimum)
        values["kl_from_optimal"] = _mean_gap(self.table(self.optimal_policy), optimum, logs)
        return values


def _mean_gap(probs: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Return E_x sum_y probs (first - second), a divergence, over responses that occur, all (X, m)."""
    held = probs > 0
    gaps = np.subtract(first, second, where=held, out=np.zeros_like(probs))
    return max(0.0, float(np.mean(np.sum(probs * gaps, axis=1))))  # rounding may give less
