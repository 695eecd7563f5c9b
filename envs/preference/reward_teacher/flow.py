"""Exact gradient flow of a tabular softmax policy on a reward model, and lower bounds on its time from the variance.

With X contexts and logits theta (X, K), gradient ascent on phi = E_x E_{y ~ pi(.|x)} r(x, y) in continuous time is

    d theta(x, y) / dt = (1 / X) g(x, y),    g(x, y) = pi(y|x) (r(x, y) - rbar(x)).

Contexts are independent: each follows the flow of one context in time t / X. For that flow, with one context, variance
V = s^2 of r under pi and D = r - rbar:

1. |pi(y) D(y)| <= s / 2. Since pi(y) D(y) = -sum_{z != y} pi(z) D(z), Cauchy-Schwarz gives (pi(y) D(y))^2 <=
   (1 - pi(y)) (V - pi(y) D(y)^2), so (pi(y) D(y))^2 <= pi(y) (1 - pi(y)) V <= V / 4.
2. |grad phi|^2 = sum pi^2 D^2 <= (s / 2) sum pi |D| <= V / 2, with equality for two equally likely responses. (The
   weaker |grad| <= s follows directly from pi^2 <= pi.)
3. The mean of *any* rho in [-1, 1] moves at d rhobar / dt = Cov_pi(rho, g) <= sd(rho) sd(g) <= 1 * s / 2: by 1 the
   values of g lie in an interval of length s, and a standard deviation is at most half of the length.
4. dV / dt = Cov_pi(g, D^2) = sum pi D^2 (g - gbar) <= V s, so ds / dt <= s^2 / 2 and s(t) <= s_0 / (1 - s_0 t / 2).
5. By 3 and 4 a gain gamma of rhobar takes gamma <= int s / 2 dt <= -ln(1 - s_0 t / 2), that is

       t >= 2 (1 - e^-gamma) / s_0,

   for every rho: the ground truth, or r itself. Two equally likely responses with rho = r = +-1 come arbitrarily close
   for small gamma. In X contexts of equal variance t >= 2 X (1 - e^-gamma) / s_0, since the mean over contexts of
   -ln(1 - s_0 t / (2 X)) bounds the gain.

For variances below 1 this implies the bound of arXiv 2503.15477, Omega(V^(-1/3)), which holds for general policies;
and r -> c r only rescales time by 1 / c, so the exponent -1/2 is exact for tabular softmax.

Two responses with gap D have theta_1 - theta_0 = ln(p / (1 - p)), hence dp / dt = 2 D p^2 (1 - p)^2, and with
F' = 1 / (p (1 - p))^2 the time from p_0 to p_1 is (F(p_1) - F(p_0)) / (2 D), F = -1/p + 1/(1-p) + 2 ln(p / (1-p)).
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.numerics import softmax

#: Relative tolerance of the solver, and its absolute tolerance for logits, in nats.
TOLERANCE = 1e-10
#: The flow counts as converged when all responses but the reward model's favourite have this total probability.
SETTLED = 1e-4


def variance(probs: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the variance of values (X, K) under policies (..., X, K) in each context, (..., X)."""
    centred = values - (probs * values).sum(axis=-1, keepdims=True)
    return (probs * centred**2).sum(axis=-1)


def gradient(probs: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    """Return the gradient of E_x E_pi r by the logits of a tabular softmax policy, (..., X, K)."""
    return probs * (rewards - (probs * rewards).sum(axis=-1, keepdims=True)) / probs.shape[-2]


def time_bound(gain: float, variance: float, contexts: int = 1) -> float:
    """Return the time 2 X (1 - e^-gain) / sqrt(variance) that a gain takes at least.

    Args:
        gain: gain in the mean of any quantity in [-1, 1], above 0.
        variance: variance of the rewards under the initial policy, in every context.
        contexts: the number X of contexts.
    """
    return -2.0 * contexts * math.expm1(-gain) / math.sqrt(variance)


def two_response_time(start: float, end: float, gap: float) -> float:
    """Return the time in which the probability of the better of two responses rises from `start` to `end`.

    Args:
        start: probability in (0, 1).
        end: probability in [start, 1).
        gap: difference D > 0 of their rewards.
    """

    def primitive(p: float) -> float:
        return -1 / p + 1 / (1 - p) + 2 * math.log(p / (1 - p))

    return (primitive(end) - primitive(start)) / (2 * gap)


class TeacherFlow:
    """The gradient flow from one policy on one reward model, solved to a relative tolerance of 1e-10.

    Args:
        start: float64 (X, K), positive probabilities at time 0.
        rewards: float64 (X, K), with one best response in each context.
    """

    def __init__(self, start: np.ndarray, rewards: np.ndarray) -> None:
        self._start, self._rewards = start, rewards
        self._best = rewards == rewards.max(axis=1, keepdims=True)

    def policies(self, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the policies at increasing times >= 0, float64 (times, X, K).

        Raises:
            ParameterError: times that do not increase, or are negative.
        """
        moments = np.asarray(times, np.float64)
        if not len(moments) or moments[0] < 0 or (np.diff(moments) <= 0).any():
            raise ParameterError("times", times, "increasing numbers >= 0")
        if moments[-1] == 0:
            return self._start[None].copy()
        return self._probs(self._solve(float(moments[-1]), t_eval=moments).y.T)

    def time_to(self, values: np.ndarray, gain: float) -> float:
        """Return the time at which E_x E_pi of values has risen by `gain` over its start.

        Infinite if that does not happen before the flow has converged, with probability 1e-4 on responses other than
        the model's favourite: the remaining change in the mean of any quantity in [-1, 1] is below 2e-4.

        Args:
            values: float64 (X, K): the ground truth, the rewards, or any other quantity.
            gain: the gain, above 0.

        Raises:
            ParameterError: a gain that is not above 0.
        """
        if not gain > 0:
            raise ParameterError("gain", gain, "a number above 0")
        contexts, before = len(values), float((self._start * values).sum()) / len(values)

        def reached(_: float, state: np.ndarray) -> float:
            return float((self._probs(state) * values).sum()) / contexts - before - gain

        def settled(_: float, state: np.ndarray) -> float:
            return 1 - float((self._probs(state) * self._best).sum()) / contexts - SETTLED

        events: list[Any] = [reached, settled]
        for event in events:
            event.terminal = True
        times = self._solve(math.inf, events=events).t_events[0]
        return float(times[0]) if len(times) else math.inf

    def _solve(self, end: float, **options: Any) -> Any:
        from scipy.integrate import solve_ivp

        logits = np.log(self._start).ravel()
        return solve_ivp(self._slope, (0.0, end), logits, method="DOP853", rtol=TOLERANCE, atol=TOLERANCE, **options)

    def _slope(self, _: float, state: np.ndarray) -> np.ndarray:
        return gradient(self._probs(state), self._rewards).ravel()

    def _probs(self, state: np.ndarray) -> np.ndarray:
        """Policies (..., X, K) of logits (..., X * K)."""
        return softmax(state.reshape(*state.shape[:-1], *self._start.shape))
