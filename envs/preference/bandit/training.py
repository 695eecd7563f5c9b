"""How claims and studies about PreferenceBandit train: exact learners in the linear softmax class, many runs at once.

What a trained policy is worth is exact; intervals are about the labels that the runs drew.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.preference.bandit.coverage import Transition

#: Hyper-parameters of exact learning in the linear softmax class.
EXACT: dict[str, Any] = {"solver": "newton", "policy": "linear"}
#: Chance of a separated coordinate in a run that is meant to be above the threshold.
SAFE = 1e-5
#: Labels of all runs that train together, which bounds memory.
LABELS_TOGETHER = 4_000_000


def groups(seed: int, seeds: int, labels: int) -> list[range]:
    """Cut the runs `seed * seeds` and following, of `labels` each, into groups that memory allows."""
    numbers, together = run_seeds(seed, seeds), max(1, LABELS_TOGETHER // labels)
    return [numbers[i : i + together] for i in range(0, seeds, together)]


def courses(
    lab: Lab,
    agent: str,
    seed: int,
    seeds: int,
    labels: int,
    names: Sequence[str],
    *,
    rounds: int = 1,
    **hyperparameters: Any,
) -> np.ndarray:
    """Train in rounds of `labels` pairs each; give metrics after every round, float64 (seeds, rounds, names)."""
    options = EXACT | {"rounds": rounds} | hyperparameters
    traces = [
        trace
        for group in groups(seed, seeds, labels * rounds)
        for trace in lab.trace(agent, group, labels * rounds, points=rounds, **options)
    ]
    values = [[lab.oracle.evaluate(policy, names) for _, policy in trace] for trace in traces]
    return np.array([[[point[name] for name in names] for point in run] for run in values])


def first_round_error(transition: Transition, n: int) -> float:
    """Give n times the mean error of the first round of n pairs on the hypercube, in runs without separation.

    The law is that of `Transition.improvement_probability`, coordinate by coordinate: k wins of the better sign among N
    informative pairs give the estimate ln(k / (N - k)) / (2 beta). Its variance tends to that of Fisher information, n
    over 2 cosh^2 theta_init pairs at a time; at some 40 pairs it is a tenth larger. Coordinates with k = 0 or k = N are
    left out.
    """
    from scipy.stats import binom

    share = transition.informative
    pairs = np.arange(2, min(n, math.ceil(n * share + 12 * math.sqrt(n * share) + 12)) + 1)[:, None]
    wins = np.arange(1, pairs[-1, 0])
    inside = wins < pairs
    estimate = np.log(wins / np.where(inside, pairs - wins, 1)) / (2 * transition.beta)
    squares = np.where(inside, (estimate - transition.theta_star) ** 2, 0.0)
    one = float((binom.pmf(pairs, n, share) * binom.pmf(wins, pairs, transition.win) * squares).sum())
    return n * transition.dimension * one / math.cosh(transition.theta_star) ** 2
