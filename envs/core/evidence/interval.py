"""Measured numbers with their intervals."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from theorybench.envs.core.numerics import standard_error

#: Half-width of the intervals of claims, in standard errors.
WIDTH = 3.0


class Interval(NamedTuple):
    """A number with its interval."""

    value: float  # the number
    low: float  # lower end
    high: float  # upper end


def interval(value: float, error: float) -> Interval:
    """Return a value with an interval of three standard errors to each side."""
    return Interval(float(value), float(value - WIDTH * error), float(value + WIDTH * error))


def point(value: float) -> Interval:
    """Return a value that is known exactly, as an interval of length 0."""
    return Interval(float(value), float(value), float(value))


def mean_interval(values: np.ndarray) -> Interval:
    """Return the mean of independent values (n,) with its interval; all three are the mean where it is not finite."""
    return interval(values.mean(), standard_error(values)) if np.isfinite(values).all() else point(values.mean())


def share_interval(hits: np.ndarray) -> Interval:
    """Return the share of hits, bool (n,), with its Wilson interval, as wide as those of means."""
    share, z = float(np.mean(hits)), WIDTH / math.sqrt(len(hits))
    centre, spread = share + z**2 / 2, z * math.sqrt(share * (1 - share) + z**2 / 4)
    return Interval(share, (centre - spread) / (1 + z**2), (centre + spread) / (1 + z**2))


def ratio_of_means(first: np.ndarray, second: np.ndarray) -> Interval:
    """Return the ratio of the means of independent positive samples, its interval from standard errors of logarithms.

    All three are infinite where a sample is not finite.
    """
    if not np.isfinite([*first, *second]).all():
        return point(math.inf)
    variance = sum(values.var(ddof=1) / values.mean() ** 2 / len(values) for values in (first, second))
    ratio, factor = float(first.mean() / second.mean()), math.exp(WIDTH * math.sqrt(variance))
    return Interval(ratio, ratio / factor, ratio * factor)


def slope_interval(x: Sequence[float] | np.ndarray, y: Sequence[float], errors: Sequence[float]) -> Interval:
    """Return the slope of the least-squares line through points (x, y), y independent with these standard errors."""
    centred = np.asarray(x) - np.mean(x)
    weights = centred / (centred @ centred)
    return interval(float(weights @ np.asarray(y)), float(np.sqrt(np.square(weights * np.asarray(errors)).sum())))
