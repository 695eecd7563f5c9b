"""Statistics of few runs: interquartile mean, optimality gap, probability of improvement, profiles, intervals.

Definitions are those of Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice"
(arXiv 2108.13264) and of its library rliable; environments take the place of tasks. Scores of an agent are a sequence
with one array (..., runs) for each environment, whose leading axes are kept: bootstrap draws are computed all at once.
Environments may have different numbers of runs: each environment then weighs the same, and with equal numbers the
values are those of rliable.

Each statistic returns float64 (...). Each raises ParameterError where there is no environment, an environment without
runs, or a score that is NaN.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.evidence.interval import Interval

#: One array (..., runs) for each environment.
Scores = Sequence[np.ndarray]
#: Aggregates clip scores to this range: one diverged run must not decide a mean.
CLIP = (-1.0, 1.0)


def clip_scores(scores: Any) -> np.ndarray:
    """Return scores as float64, each clipped to [-1, 1]."""
    return np.clip(_checked(scores), *CLIP)


def interquartile_mean(scores: Scores) -> Any:
    """Mean of the middle half of all runs of all environments.

    As in rliable (`scipy.stats.trim_mean(scores, 0.25)` of all runs pooled) floor(N/4) of N runs are left out at each
    end, none in part. With different numbers n_e of runs, the value is that of the runs repeated until all
    environments have lcm(n_e): a run weighs 1/n_e.
    """
    arrays = _checked_all(scores)
    counts = [array.shape[-1] for array in arrays]
    total, multiple = len(arrays), math.lcm(*counts)
    cut = (total * multiple // 4) / multiple
    pooled = np.concatenate(arrays, axis=-1)
    order = np.argsort(pooled, axis=-1, kind="stable")
    weights = np.concatenate([np.full(n, 1 / n) for n in counts])[order]
    upper = np.cumsum(weights, axis=-1)
    kept = np.clip(np.minimum(upper, total - cut) - np.maximum(upper - weights, cut), 0, None)
    return (kept * np.take_along_axis(pooled, order, axis=-1)).sum(axis=-1) / kept.sum(axis=-1)


def optimality_gap(scores: Scores, target: float = 1.0) -> Any:
    """Mean of what runs lack to `target`, the score that is good enough: target - E[min(score, target)]."""
    return target - _mean_of_environments([np.minimum(array, target) for array in _checked_all(scores)])


def probability_of_improvement(scores: Scores, others: Scores) -> Any:
    """Probability that a run of one agent beats a run of another on an environment drawn at random; ties count half.

    The mean over environments of P(X > Y) + P(X = Y)/2, the Mann-Whitney statistic U / (n_e m_e), for X of `scores`
    and Y of `others`, arrays (..., m_e) of the same environments in the same order.

    Raises:
        ParameterError: different numbers of environments.
    """
    arrays, rivals = _checked_all(scores), _checked_all(others)
    if len(arrays) != len(rivals):
        raise ParameterError("others", len(rivals), f"scores of the same {len(arrays)} environments")
    return _mean_of_environments(
        [
            (1 + np.stack([np.sign(x[..., i : i + 1] - y).mean(axis=-1) for i in range(x.shape[-1])], axis=-1)) / 2
            for x, y in zip(arrays, rivals, strict=True)
        ]
    )


def performance_profile(scores: Scores, thresholds: Sequence[float] | np.ndarray) -> np.ndarray:
    """Share of runs with a score above each of T thresholds (run-score distribution), averaged over environments.

    Returns:
        float64 (T, ...).
    """
    arrays = _checked_all(scores)
    return np.stack([_mean_of_environments([array > threshold for array in arrays]) for threshold in thresholds])


def bootstrap_interval(
    statistic: Callable[..., Any],
    *samples: Scores,
    draws: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Stratified percentile bootstrap: runs are drawn with replacement within each environment, for each agent apart.

    Args:
        statistic: a function of one sample or more, such as those of this module; leading axes must be kept.
        samples: for each agent one array (..., n_e) for each environment.
        draws: number of bootstrap draws.
        confidence: of the interval.
        seed: of the draws; the same seed gives the same interval.

    Returns:
        The statistic of the samples and the ends of its interval, which are NaN where an environment has one run only:
        one run says nothing about the spread.

    Raises:
        ParameterError: draws below 1, or a confidence outside of (0, 1).
    """
    if draws < 1:
        raise ParameterError("draws", draws, "an integer >= 1")
    if not 0 < confidence < 1:
        raise ParameterError("confidence", confidence, "a number in (0, 1)")
    checked = [_checked_all(sample) for sample in samples]
    value: Any = np.asarray(statistic(*checked))[()]
    if min(array.shape[-1] for sample in checked for array in sample) < 2:
        unknown: Any = np.full(np.shape(value), np.nan)[()]
        return Interval(value, unknown, unknown)
    rng = np.random.default_rng(seed)
    drawn = [
        [array[..., rng.integers(0, array.shape[-1], (draws, array.shape[-1]))] for array in sample]
        for sample in checked
    ]
    tail = (1 - confidence) / 2
    low: Any
    high: Any
    low, high = np.quantile(statistic(*drawn), [tail, 1 - tail], axis=-1)
    return Interval(value, low, high)


def _mean_of_environments(arrays: Scores) -> Any:
    return np.mean([array.mean(axis=-1) for array in arrays], axis=0)


def _checked_all(scores: Scores) -> list[np.ndarray]:
    """Return one float64 array for each environment; there is one at least."""
    arrays = [_checked(array) for array in scores]
    if not arrays:
        raise ParameterError("scores", [], "scores of one environment at least")
    return arrays


def _checked(scores: Any) -> np.ndarray:
    """Return scores as float64 (..., runs >= 1) without NaN."""
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim < 1 or array.shape[-1] < 1:
        raise ParameterError("scores", scores, "an array (..., runs) with one run at least for each environment")
    if np.isnan(array).any():
        raise ParameterError("scores", "nan", "numbers", "A failed run counts as -1.")
    return array
