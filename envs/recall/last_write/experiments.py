"""Experiments on the last write: trained networks by length and delay, what moves their answers, and what they keep."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import (
    Computed,
    Number,
    Prediction,
    SampleMean,
    TrainedMetric,
    certain,
)
from theorybench.envs.core.evidence.lab import Lab, seed_of
from theorybench.envs.recall.experiments import SEEDS, networks
from theorybench.envs.recall.last_write.law import optimal_influence

#: Episodes of each run.
BUDGET = 65_536
#: The networks that are compared.
NETWORKS: dict[str, dict[str, Any]] = {
    "window": {"policy": "phalanx", "layers": 1, "block": 8, "carry": "window"},
    "full": {"policy": "phalanx", "layers": 1, "carry": "full"},
    "transformer": {"policy": "transformer"},
}
#: Tolerances of the ranks that are counted, and beginnings of prompts that are told apart.
COARSE, FINE, PASTS = 0.1, 0.01, 64


def runs_of(
    network: str, number: str | Number, prediction: Prediction = certain, *, seeds: int = SEEDS, **changes: Any
) -> TrainedMetric:
    """Return the experiment on a number of the policies that some runs of a network end with.

    Args:
        network: one of `NETWORKS`, trained on the prompts that training may see.
        number: a metric of the oracle, or what gives another number.
        prediction: of its mean.
        seeds: number of runs.
        changes: of the network's hyper-parameters.
    """
    options = {**NETWORKS[network], **changes}
    return networks("grpo", BUDGET, number, seeds=seeds, prediction=prediction, **options)


def value_by_delay(lab: Lab, policy: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of the right answer to each prompt of the pool, float64, and its delay D, int64 (pool,).

    D is how many tokens follow the last write.
    """
    pool = lab.oracle.pool()
    right = (lab.oracle.pool_probs(policy) * pool.targets).sum(axis=1)
    return right, lab.setting.T - 1 - lab.setting.parents(pool.observations).argmax(axis=1)


def value_between(low: int, high: int) -> Number:
    """Return what gives the mean probability of the right answer where low <= D < high."""

    def found(lab: Lab, policy: Any, seed: int) -> float:
        right, delay = value_by_delay(lab, policy)
        return float(right[(low <= delay) & (delay < high)].mean())

    return found


def state_size(lab: Lab, policy: Any, seed: int, tolerance: float) -> float:
    """Return the rank of what a policy remembers over the middle of the prompt."""
    return float(lab.memory(policy, seed, pasts=PASTS).rank(tolerance))


def share_needed(lab: Lab, policy: Any, seed: int) -> float:
    """Return the share of what it remembers there that as many numbers hold as the right answers need.

    It is the share of the largest singular values in the sum of all squares; 0 where nothing is remembered.
    """
    squares = np.square(lab.memory(policy, seed, pasts=PASTS).singular)
    return float(squares[: lab.setting.minimal_rank].sum() / squares.sum()) if squares.any() else 0.0


def influences(lab: Lab, policy: Any, seed: int, distances: Sequence[int], prompts: int) -> np.ndarray:
    """Return how far the tokens at some distances from the end move answers: float64 (prompts, distances)."""
    found = lab.influence(policy, seed_of(seed, 3), prompts=prompts, distances=list(distances))
    return np.asarray(found.moved[:, lab.setting.T - 1 - np.asarray(distances)])


def influence_of_optimum(distance: int) -> SampleMean:
    """Return the experiment on how often the token so far from the end moves the right answer."""
    return SampleMean(
        sample=lambda lab, seed: influences(lab, lab.oracle.optimal_policy, seed, [distance], 40_000)[:, 0],
        prediction=lambda oracle: float(
            optimal_influence(oracle.setting.V, oracle.setting.F, oracle.setting.p, distance)
        ),
    )


def share_of_runs(network: str, holds: Callable[[Lab, Any, int], bool]) -> Computed:
    """Return the experiment on the share of the runs of a network of which something holds: all, says theory."""
    runs = runs_of(network, lambda lab, policy, seed: float(holds(lab, policy, seed)))
    return Computed(value=lambda lab, seed: float(runs.values(lab, seed).mean()), prediction=certain)


def in_one_run(network: str, number: Number) -> Computed:
    """Return the experiment on a number of one run of a network, which theory says is 0."""
    runs = runs_of(network, number, seeds=1)
    return Computed(value=lambda lab, seed: float(runs.values(lab, seed)[0]), prediction=lambda oracle: 0.0)
