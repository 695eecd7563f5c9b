"""How claims and studies about PreferenceBandit train: exact learners in the linear softmax class, many runs at once.

What a trained policy is worth is exact; intervals are about the labels that the runs drew.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.claim import Lab

#: Hyper-parameters of exact learning in the linear softmax class.
EXACT: dict[str, Any] = {"solver": "newton", "policy": "linear"}
#: Chance of a separated coordinate in a run that is meant to be above the threshold.
SAFE = 1e-5
#: Labels of all runs that train together, which bounds memory.
LABELS_TOGETHER = 4_000_000


def groups(seed: int, seeds: int, labels: int) -> list[range]:
    """Cut the runs `seed * seeds` and following, of `labels` each, into groups that memory allows."""
    numbers, together = range(seed * seeds, (seed + 1) * seeds), max(1, LABELS_TOGETHER // labels)
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
