"""What happens to a policy at inference time: operators, aggregates, and their derivatives.

A policy pi over K responses is used through an operator T_i that knows criterion r_i; R_i(T_i pi) is the criterion's
mean afterwards, and G(pi) = g(R_1(T_1 pi), ..., R_m(T_m pi)) is what alignment is about (arXiv 2602.01603). The *first
variation* phi is the derivative of G by the probability of each response, whose mean under pi is of no account.

- Best of N: with the levels u_1 < ... < u_J of the criterion and F_j the mass up to level j, the best of N independent
  responses is at most u_j with probability F_j^N. So R(T pi) = u_J - sum_j (u_{j+1} - u_j) F_j^N, and phi at a response
  of level l is -N sum_{j >= l} (u_{j+1} - u_j) F_j^(N-1). Each F_j is linear in pi and F^N convex: R(T pi) is concave.
- The tilt pi e^{r / tau} / Z: R(T pi) = E r e^{r / tau} / Z and phi = e^{r / tau} (r - R(T pi)) / Z. It is a ratio of
  linear functions, not concave.

Aggregates g are concave and increasing: a weighted sum, the soft-min -T ln sum_i w_i e^{-R_i / T}, or the minimum.
"""

from typing import NamedTuple

import numpy as np

from theorybench.envs.core.errors import ParameterError


class Inference(NamedTuple):
    """What is done with a policy at inference time."""

    operator: str  # "best-of-n" or "soft-best-of-n", the tilt
    samples: int  # N of best-of-N
    temperature: float  # tau of the tilt
    aggregate: str  # "sum", "soft-min" or "min"
    weights: np.ndarray  # float64 (m,), of the criteria, summing to 1
    softness: float  # T of the soft-min


class Levels(NamedTuple):
    """Values of one criterion on K responses, equal ones taken together: J levels."""

    below: np.ndarray  # float64 (J - 1, K), 1 where a response is of level j or lower
    steps: np.ndarray  # float64 (J - 1,), u_{j+1} - u_j > 0
    top: float  # u_J

    @classmethod
    def of(cls, values: np.ndarray) -> "Levels":
        """Make the levels of values (K,)."""
        heights = np.unique(values)
        return cls((values <= heights[:-1, None]).astype(np.float64), np.diff(heights), float(heights[-1]))

    def cumulative(self, probs: np.ndarray) -> np.ndarray:
        """Return F_1, ..., F_{J-1} of policies (..., K): float64 (..., J - 1), at most 1."""
        return np.minimum(probs @ self.below.T, 1.0)


def best_of_n_value(probs: np.ndarray, levels: Levels, samples: int) -> np.ndarray:
    """Return R(T pi) of the best of N for policies (..., K): float64 (...)."""
    return np.asarray(levels.top - levels.cumulative(probs) ** samples @ levels.steps)


def best_of_n_variation(probs: np.ndarray, levels: Levels, samples: int) -> np.ndarray:
    """Return the first variation of the best of N for policies (..., K): float64 (..., K), 0 at the best responses."""
    slopes = samples * levels.cumulative(probs) ** (samples - 1) * levels.steps
    return -slopes @ levels.below


def best_of_n_curvature(probs: np.ndarray, levels: Levels, samples: int) -> np.ndarray:
    """Return the second derivative of the best of N at a policy (K,): float64 (K, K), negative semidefinite."""
    if samples == 1:
        return np.zeros((len(probs), len(probs)))
    bends = samples * (samples - 1) * levels.cumulative(probs) ** (samples - 2) * levels.steps
    return -(levels.below.T * bends) @ levels.below


def tilt_value(probs: np.ndarray, values: np.ndarray, temperature: float) -> np.ndarray:
    """Return E r e^{r / tau} / E e^{r / tau} for policies (..., K) and a criterion (K,): float64 (...)."""
    weights = tilt_weights(values, temperature)
    return np.asarray((probs @ (weights * values)) / (probs @ weights))


def tilt_variation(probs: np.ndarray, values: np.ndarray, temperature: float) -> np.ndarray:
    """Return e^{r / tau} (r - R(T pi)) / Z for policies (..., K): float64 (..., K)."""
    weights = tilt_weights(values, temperature)
    mean = tilt_value(probs, values, temperature)[..., None]
    return weights * (values - mean) / (probs @ weights)[..., None]


def tilt_weights(values: np.ndarray, temperature: float) -> np.ndarray:
    """Return e^{(r - max r) / tau} of a criterion (K,)."""
    return np.exp((values - values.max()) / temperature)


def combine(values: np.ndarray, inference: Inference) -> np.ndarray:
    """Return g of the criteria's values (..., m): float64 (...)."""
    if inference.aggregate == "sum":
        return np.asarray(values @ inference.weights)
    low = values.min(axis=-1)
    if inference.aggregate == "min":
        return np.asarray(low)
    away = np.exp(-(values - low[..., None]) / inference.softness)
    return np.asarray(low - inference.softness * np.log(away @ inference.weights))


def sensitivities(values: np.ndarray, inference: Inference) -> np.ndarray:
    """Return the derivative of g by each criterion's value, (..., m) to float64 (..., m), summing to 1.

    For "min" it is 1 at the first of the smallest values: a supergradient.
    """
    if inference.aggregate == "sum":
        return np.broadcast_to(inference.weights, values.shape)
    if inference.aggregate == "min":
        return (np.arange(values.shape[-1]) == values.argmin(axis=-1)[..., None]).astype(np.float64)
    away = inference.weights * np.exp(-(values - values.min(axis=-1, keepdims=True)) / inference.softness)
    return np.asarray(away / away.sum(axis=-1, keepdims=True))


class Aligned:
    """G and its derivatives, for criteria on K responses.

    Args:
        criteria: float64 (m, K).
        inference: what is done at inference time.
    """

    def __init__(self, criteria: np.ndarray, inference: Inference) -> None:
        self.criteria, self.inference = criteria, inference
        self._levels = [Levels.of(values) for values in criteria]

    def values(self, probs: np.ndarray) -> np.ndarray:
        """Return R_i(T_i pi) of policies (..., K): float64 (..., m)."""
        how = self.inference
        if how.operator == "best-of-n":
            parts = [best_of_n_value(probs, levels, how.samples) for levels in self._levels]
        else:
            parts = [tilt_value(probs, values, how.temperature) for values in self.criteria]
        return np.stack(parts, axis=-1)

    def value(self, probs: np.ndarray) -> np.ndarray:
        """Return G of policies (..., K): float64 (...)."""
        return combine(self.values(probs), self.inference)

    def slopes(self, probs: np.ndarray) -> np.ndarray:
        """Return the first variation of each criterion, policies (..., K) to float64 (..., m, K)."""
        how = self.inference
        if how.operator == "best-of-n":
            parts = [best_of_n_variation(probs, levels, how.samples) for levels in self._levels]
        else:
            parts = [tilt_variation(probs, values, how.temperature) for values in self.criteria]
        return np.stack(parts, axis=-2)

    def variation(self, probs: np.ndarray) -> np.ndarray:
        """Return the first variation of G, policies (..., K) to float64 (..., K); for "min" one of several."""
        shares = sensitivities(self.values(probs), self.inference)
        return np.asarray((shares[..., None] * self.slopes(probs)).sum(axis=-2))

    def curvature(self, probs: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return sum_i shares_i times the second derivative of R_i(T_i pi) at a policy (K,): float64 (K, K).

        Best-of-N alone.
        """
        samples = self.inference.samples
        parts = (best_of_n_curvature(probs, levels, samples) for levels in self._levels)
        return np.asarray(sum(share * part for share, part in zip(shares, parts, strict=True)))

    @property
    def smoothness(self) -> float:
        """L = (N - 1) (1 - 1/N)^(N-1) sum_i w_i (max r_i - min r_i): G of best-of-N is L-smooth relative to KL.

        That is, the second derivative of G along d is at least -L sum_y d(y)^2 / pi(y).

        Raises:
            ParameterError: another operator than best-of-N, or another aggregate than the sum.
        """
        for name, value, known in (
            ("operator", self.inference.operator, "best-of-n"),
            ("aggregate", self.inference.aggregate, "sum"),
        ):
            if value != known:
                fix = "The constant L, prox steps of size 1 / L and their bound are known there alone."
                raise ParameterError(name, value, repr(known), fix)
        samples = self.inference.samples
        return (
            (samples - 1)
            * (1 - 1 / samples) ** (samples - 1)
            * float(self.inference.weights @ np.ptp(self.criteria, 1))
        )
