"""Measured numbers with intervals that are right at small sample sizes.

Every interval has the level of three standard errors of a normal distribution, whatever the number of values behind it:
it misses the true value with probability at most `MISS`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from theorybench.envs.core.numerics import standard_error

#: Half-width of intervals in standard errors that are known; with estimated ones Student's quantile takes its place.
WIDTH = 3.0
#: Probability with which an interval misses the true value: that of WIDTH standard deviations.
MISS = math.erfc(WIDTH / math.sqrt(2))


class Interval(NamedTuple):
    """A number with its interval."""

    value: float  # the number
    low: float  # lower end
    high: float  # upper end

    @property
    def half_width(self) -> float:
        """Half the distance of the ends."""
        return (self.high - self.low) / 2 if self.high > self.low else 0.0


def width(freedom: float = math.inf) -> float:
    """Return how many standard errors an interval reaches to each side.

    Args:
        freedom: degrees of freedom of the estimated standard error; infinite where it is known.
    """
    from scipy.special import stdtrit

    return WIDTH if math.isinf(freedom) else float(stdtrit(freedom, 1 - MISS / 2))


def interval(value: float, error: float, freedom: float = math.inf) -> Interval:
    """Return a value with its interval.

    Args:
        value: the estimate.
        error: its standard error.
        freedom: degrees of freedom of the standard error; infinite where it is known, or estimated from thousands.
    """
    reach = width(freedom) * error
    return Interval(float(value), float(value - reach), float(value + reach))


def point(value: float) -> Interval:
    """Return a value that is known exactly, as an interval of length 0."""
    return Interval(float(value), float(value), float(value))


def mean_interval(values: np.ndarray) -> Interval:
    """Return the mean of independent values (n,) with Student's interval; all three are the mean if it is infinite."""
    if not np.isfinite(values).all():
        return point(values.mean())
    return interval(values.mean(), standard_error(values), len(values) - 1)


def share_interval(hits: np.ndarray, miss: float = MISS) -> Interval:
    """Return the share of hits, bool (n,), with its exact binomial interval (Clopper and Pearson 1934).

    It misses with probability `miss` at most.
    """
    from scipy.special import betaincinv

    n, k = len(hits), int(np.sum(hits))
    low = betaincinv(k, n - k + 1, miss / 2) if k else 0.0
    high = betaincinv(k + 1, n - k, 1 - miss / 2) if k < n else 1.0
    return Interval(k / n, float(low), float(high))


def share_difference(first: np.ndarray, second: np.ndarray) -> Interval:
    """Return the share of hits in one independent sample, bool (n,), less that in another, with its interval.

    It misses only where one of two exact intervals does, of half the level each. Intervals that add variances miss
    several times as often as they say where shares are near 0 or 1.
    """
    one, other = (share_interval(hits, MISS / 2) for hits in (first, second))
    return Interval(one.value - other.value, one.low - other.high, one.high - other.low)


def ratio_of_means(first: np.ndarray, second: np.ndarray) -> Interval:
    """Return the ratio of the means of independent positive samples; its interval is that of its logarithm.

    The degrees of freedom are those of the smaller sample: with few values Welch's own number of them misses too often
    this far out. All three are infinite where a sample is not finite.
    """
    if not np.isfinite([*first, *second]).all():
        return point(math.inf)
    errors = [standard_error(values) / values.mean() for values in (first, second)]  # of logarithms of means
    log = math.log(first.mean() / second.mean())
    ends = interval(log, math.hypot(*errors), min(len(first), len(second)) - 1)
    return Interval(*(math.exp(end) for end in ends))


def slope_interval(
    x: Sequence[float] | np.ndarray, y: Sequence[float], errors: Sequence[float], freedom: float = math.inf
) -> Interval:
    """Return the slope of the least-squares line through points (x, y), y independent with these standard errors.

    Args:
        x: where the points are.
        y: their values.
        errors: standard errors of the values.
        freedom: degrees of freedom of each error, such as runs - 1; infinite where errors are known.
    """
    centred = np.asarray(x) - np.mean(x)
    weights = centred / (centred @ centred)
    return interval(float(weights @ np.asarray(y)), float(np.linalg.norm(weights * np.asarray(errors))), freedom)
