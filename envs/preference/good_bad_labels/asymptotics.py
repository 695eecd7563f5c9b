"""How fast DDRO and its two-term variant learn: the limit of n E[TV^2] by the delta method.

Shapes and names are those of `limits`; the reference is the mixture of the share t.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Derivatives(NamedTuple):
    """Derivatives of a loss by the policy at pi = p+, each float64 (X, K)."""

    good: np.ndarray  # of the loss of one good response, by its probability
    bad: np.ndarray  # of one bad response
    curvature: np.ndarray  # second derivative of p+ loss(good) + p- loss(bad)
    share: np.ndarray  # derivative of its first derivative by t


def ddro_derivatives(good: np.ndarray, bad: np.ndarray, share: float) -> Derivatives:
    """Return the derivatives of DDRO's loss.

    It is logistic in s = ln rho = ln((1-t) u / (1 - t u)) and least at rho = p+/p-, where 1 - t u = (1-t) p-/r with r
    the mixture; ds/du = 1 / (u (1 - t u)) and ds/dt = (p+ - p-) / ((1-t) p-).
    """
    mixture, both = share * good + (1 - share) * bad, good + bad
    slope = mixture / ((1 - share) * both)
    return Derivatives(
        -slope / good,
        slope / bad,
        mixture * slope / ((1 - share) * good * bad),
        slope * (good - bad) / ((1 - share) * bad),
    )


def two_term_derivatives(good: np.ndarray, bad: np.ndarray, share: float) -> Derivatives:
    """Return the derivatives of the two-term loss, logistic in l = ln u and least at u = p+ / mixture."""
    mixture = share * good + (1 - share) * bad
    both = good + mixture
    return Derivatives((1 + share) / both - 1 / good, (1 - share) / both, mixture / (good * both), (good - bad) / both)


def error_covariance(
    good: np.ndarray,
    bad: np.ndarray,
    share: float,
    derivatives: Callable[[np.ndarray, np.ndarray, float], Derivatives],
    *,
    estimated: bool,
) -> np.ndarray:
    """Return the covariance of sqrt(n) (pi - p+) in the limit, float64 (X K, X K), contexts being uniform.

    The loss is the sum of the class-wise means of n labelled responses; pi minimises it over distributions. With D the
    diagonal of curvatures, restricted to changes that keep each row's sum, sqrt(n) (pi - p+) tends to -D^-1 times a
    normal vector, that of the mean over responses of

        g / t (a - E+ a) + (1 - g) / (1 - t) (b - E- b)   [ + (g - t) d ],

    g being 1 for good labels, a and b the derivatives at the response, and d the derivative by t, which enters where t
    is estimated as the share of good labels. The two expectations cancel.
    """
    contexts, size, by = len(good), good.size, derivatives(good, bad, share)
    mean = (good * by.good).ravel() / contexts
    shift = by.share.ravel() / contexts if estimated else np.zeros(size)
    covariance = np.zeros((size, size))
    for chance, law, slope, sign in ((share, good, by.good, 1), (1 - share, bad, by.bad, -1)):
        constant = -sign * mean / chance + sign * (1 - chance) * shift
        mass, own = (law / contexts).ravel(), slope.ravel() / chance
        cross = np.outer(mass * own, constant)
        covariance += chance * (np.diag(mass * own**2) + cross + cross.T + np.outer(constant, constant))
    inverse = np.zeros((size, size))
    for context, curvature in enumerate(by.curvature / contexts):
        free = 1 / curvature
        block = slice(context * len(free), (context + 1) * len(free))
        inverse[block, block] = np.diag(free) - np.outer(free, free) / free.sum()
    return inverse @ covariance @ inverse


def mean_variation(covariance: np.ndarray, contexts: int) -> float:
    """Return E[TV] of a normal error, TV = the sum of |error| / (2 X): E|Z| = sqrt(2/pi) s for a deviation s."""
    return float(np.sqrt(np.diag(covariance)).sum() / (np.sqrt(2 * np.pi) * contexts))


def squared_variation(covariance: np.ndarray, contexts: int) -> float:
    """Return E[TV^2] of a normal error, TV = the sum of |error| / (2 X).

    For normal Z, Z' of deviations s, s' and correlation r, E|Z Z'| = 2/pi s s' (sqrt(1 - r^2) + r arcsin r).
    """
    deviation = np.sqrt(np.diag(covariance))
    product = np.outer(deviation, deviation)
    correlation = np.clip(covariance / np.where(product > 0, product, 1.0), -1, 1)
    moments = product * (np.sqrt(1 - correlation**2) + correlation * np.arcsin(correlation))
    return float(moments.sum() / (2 * np.pi * contexts**2))
