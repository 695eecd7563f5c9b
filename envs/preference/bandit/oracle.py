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

    def measure(self, policy: Any, metrics: frozenset[str] | None) -> dict[str, float]:
        """Compute metrics of a policy, exactly; see `metrics` for their meaning.

        Raises:
            PolicyError: "error" is named and the policy is not in the linear softmax class.
        """
        probs, setting = self.table(policy), self.setting
        reward, kl = float(np.mean(np.sum(probs * setting.rewards, axis=1))), self.reference_kl(probs)
        values = {"objective": reward - setting.beta * kl, "kl": kl, "reward": reward}
        if metrics is not None and metrics <= values.keys():
            return values
        optimum = self.table(self.optimal_policy)
        covariance = coverage.feature_covariance(setting.tables.features, probs)
        values |= {
            "kl_to_optimal": float(divergence(probs, optimum).mean()),
            "kl_from_optimal": float(divergence(optimum, probs).mean()),
            "coverage": coverage.relative_coverage(covariance, self.optimal_covariance),
            "win_rate": coverage.win_rate(setting.rewards, probs, setting.reference),
        }
        error = self._error(probs)
        if error is not None:
            values["error"] = error
        elif metrics is not None and "error" in metrics:
            raise PolicyError(
                f"{type(policy).__name__} has no theta: its log-ratios miss the features by over {CLASS_TOLERANCE} "
                "nats, so the metric 'error' does not exist; ask for 'kl_from_optimal' instead"
            )
        return values

    def _error(self, probs: np.ndarray) -> float | None:
        """Compute ||theta - theta*||^2 in the Sigma_pi* norm, or None for a policy outside the class."""
        if not probs.all():
            return None
        log_ratios = np.log(probs / self.setting.reference)
        theta, residual = coverage.log_ratio_parameters(self.setting.tables.features, log_ratios)
        if residual > CLASS_TOLERANCE:
            return None
        gap = theta - self.setting.tables.theta
        return float(gap @ self.optimal_covariance @ gap)

    # Information in n labels.

    def label_error(self, n: float, policy: Any, second: np.ndarray | None = None) -> float:
        """Return tr(Sigma* I^-1) / n, the asymptotic error of n labels, I the Fisher information of one at theta*.

        Args:
            n: number of labels.
            policy: draws the first response of a pair.
            second: draws the second, (X, K); rows that sum to w(x) weight the contexts; the policy by default.
        """
        setting, first = self.setting, self.table(policy)
        features = setting.tables.features
        information = coverage.fisher_information(features, setting.rewards, setting.beta, first, second)
        return coverage.error_floor(information, self.optimal_covariance) / n

    def floor(self, n: float) -> float:
        """Return the asymptotic error of n labels of pairs from pi*: the on-policy floor."""
        return self.label_error(n, self.optimal_policy)

    def offline_variance(self, n: float) -> float:
        """Return the asymptotic error of n labels of pairs from the initial policy."""
        return self.label_error(n, self.initial_policy)

    def hybrid_floor(self, n: float, policy: Any = None) -> float:
        """Return the asymptotic error of n labels of responses of a policy, by default pi*, paired with designed ones.

        The preferential G-optimal design p(x, y) of the policy draws the context and the second response.
        """
        policy = self.optimal_policy if policy is None else policy
        design = preferential_design(self.setting.tables.features, self.table(policy)[None])[0][0]
        return self.label_error(n, policy, len(design) * design)

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
