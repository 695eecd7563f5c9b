"""Exact answers about PreferenceBandit: every value is one sum over contexts and responses."""

import functools
from typing import Any, ClassVar

import numpy as np

from theorybench.envs.core.errors import ParameterError, PolicyError
from theorybench.envs.core.numerics import divergence
from theorybench.envs.core.policy import LinearPolicy
from theorybench.envs.preference.bandit import coverage
from theorybench.envs.preference.bandit.setting import PreferenceBandit
from theorybench.envs.preference.bandit.transition import Transition
from theorybench.envs.preference.contextual import ContextualOracle
from theorybench.envs.preference.design import preferential_design

#: Largest residual, in nats, at which a policy counts as a member of the linear softmax class.
CLASS_TOLERANCE = 1e-8


class PreferenceBanditOracle(ContextualOracle[PreferenceBandit]):
    """Exact answers by enumeration of the X contexts and K responses, in float64, for any policy.

    J(pi) = E_x sum_y pi (r - beta ln(pi / pi_ref)) is strictly concave; its maximum is pi* ~ pi_ref e^{r / beta}.
    Expectations over pairs (Fisher information, win rate) are sums over the distinct rewards of a context: d + 1 of
    them on the hypercube. `error` exists only for policies of the linear softmax class; requesting it by name for
    another policy raises PolicyError.
    """

    metrics: ClassVar[dict[str, str]] = {
        "objective": "J = E r - beta KL(pi || pi_ref), in nats",
        "kl": "KL divergence of the policy to the reference, in nats",
        "reward": "E r, in nats",
        "kl_to_optimal": "KL(pi || pi*), in nats",
        "kl_from_optimal": "KL(pi* || pi), in nats; infinite where the policy misses a response",
        "coverage": "relative coverage C(pi), 1 for the optimum; infinite where a feature does not vary",
        "win_rate": "probability that a response of the policy is labelled better than one of the reference",
        "error": "||theta - theta*||^2 in the Sigma_pi* norm; present if log-ratios fit the features to 1e-8 nats",
    }

    @functools.cached_property
    def optimal_policy(self) -> LinearPolicy:
        """The optimum pi* = pi_{theta*}."""
        return LinearPolicy(self.setting, self.setting.tables.theta)

    @functools.cached_property
    def optimal_covariance(self) -> np.ndarray:
        """Sigma_pi* = E_x Cov_pi* phi, (d, d)."""
        return coverage.feature_covariance(self.setting.tables.features, self.table(self.optimal_policy))

    @functools.cached_property
    def _rewards(self) -> np.ndarray:
        return self.setting.rewards

    def measure(self, policy: Any, metrics: frozenset[str] | None) -> dict[str, float]:
        """Compute metrics of a policy, exactly; see `metrics` for their meaning.

        Raises:
            PolicyError: "error" is named and the policy is not in the linear softmax class.
        """
        probs, setting = self.table(policy), self.setting
        reference = np.full_like(probs, 1 / setting.num_actions)
        reward, kl = float(np.mean(np.sum(probs * self._rewards, axis=1))), float(divergence(probs, reference).mean())
        values = {"objective": reward - setting.beta * kl, "kl": kl, "reward": reward}
        if metrics is not None and metrics <= values.keys():
            return values
        optimum = self.table(self.optimal_policy)
        covariance = coverage.feature_covariance(setting.tables.features, probs)
        values |= {
            "kl_to_optimal": float(divergence(probs, optimum).mean()),
            "kl_from_optimal": float(divergence(optimum, probs).mean()),
            "coverage": coverage.relative_coverage(covariance, self.optimal_covariance),
            "win_rate": coverage.win_rate(self._rewards, probs, reference),
        }
        error = self._error(probs, reference)
        if error is not None:
            values["error"] = error
        elif metrics is not None and "error" in metrics:
            raise PolicyError(
                f"{type(policy).__name__} has no theta: its log-ratios miss the features by over {CLASS_TOLERANCE} "
                "nats, so the metric 'error' does not exist; ask for 'kl_from_optimal' instead"
            )
        return values

    def _error(self, probs: np.ndarray, reference: np.ndarray) -> float | None:
        """Compute ||theta - theta*||^2 in the Sigma_pi* norm, or None for a policy outside the class."""
        if not probs.all():
            return None
        theta, residual = coverage.log_ratio_parameters(self.setting.tables.features, np.log(probs / reference))
        if residual > CLASS_TOLERANCE:
            return None
        gap = theta - self.setting.tables.theta
        return float(gap @ self.optimal_covariance @ gap)

    # Information in n labels.

    def fisher_information(self, policy: Any, other: Any = None) -> np.ndarray:
        """Fisher information I(mu) of the label of one pair about theta, at theta*, (d, d).

        Args:
            policy: draws the first response of a pair.
            other: draws the second; the same policy by default.
        """
        second = None if other is None else self.table(other)
        features = self.setting.tables.features
        return coverage.fisher_information(features, self._rewards, self.setting.beta, self.table(policy), second)

    def floor(self, n: float) -> float:
        """Return the asymptotic error tr(Sigma* I(pi*)^-1) / n of n labels of pairs from pi*: the on-policy floor."""
        return coverage.error_floor(self.fisher_information(self.optimal_policy), self.optimal_covariance) / n

    def offline_variance(self, n: float) -> float:
        """Return the asymptotic error tr(Sigma* I(pi_init)^-1) / n of n labels of pairs from the initial policy."""
        return coverage.error_floor(self.fisher_information(self.initial_policy), self.optimal_covariance) / n

    def hybrid_floor(self, n: float, policy: Any = None) -> float:
        """Return the asymptotic error tr(Sigma* I^-1) / n of n labels of responses paired with designed ones.

        Args:
            n: number of labels.
            policy: draws the first response of a pair; its preferential G-optimal design p(x, y) draws the context
                and the second; pi* by default.
        """
        setting, probs = self.setting, self.table(self.optimal_policy if policy is None else policy)
        design = preferential_design(setting.tables.features, probs[None])[0][0]
        # This weights contexts as drawn: information is linear in the second policy, whose rows here sum to X p(x).
        information = coverage.fisher_information(
            setting.tables.features, self._rewards, setting.beta, probs, len(probs) * design
        )
        return coverage.error_floor(information, self.optimal_covariance) / n

    # The phase transition of the hypercube.

    @functools.cached_property
    def transition(self) -> Transition:
        """The phase transition of the first round of on-policy learning.

        Raises:
            ParameterError: the geometry is not the hypercube.
        """
        setting = self.setting
        if setting.geometry != "hypercube":
            raise ParameterError("geometry", setting.geometry, "'hypercube', whose coordinates are independent")
        return Transition(setting.dimension, setting.beta, setting.theta_star, setting.theta_init)
