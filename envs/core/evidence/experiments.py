"""Generic experiments, used by claims of many settings.

Each measures what theory says in a lab: by training registered agents, by simulation, or by a computation that shares
no code with the prediction.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import Interval, interval, mean_interval, point
from theorybench.envs.core.evidence.lab import Lab, run_seeds

Prediction = Callable[[Any], float]


def metric_of(oracle: Any, policy: Any, metric: str) -> float:
    """Return a metric of a policy by the oracle, or its "score"."""
    return float(oracle.score(policy) if metric == "score" else oracle.evaluate(policy, [metric])[metric])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Predicted:
    """An experiment whose prediction is given as a function."""

    prediction: Prediction  # what theory says, given the oracle

    def predicted(self, oracle: Any) -> float:
        """Return theory's value."""
        return float(self.prediction(oracle))


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedMetric(Predicted):
    """Mean over runs of a metric of the policy that an agent ends with."""

    agent: str  # its name
    metric: str  # of the oracle, or "score"
    budget: int  # episodes of a run
    seeds: int  # number of runs
    hyperparameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the agent

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Train; return the metric of each run, float64 (seeds,)."""
        policies = lab.train(self.agent, run_seeds(seed, self.seeds), self.budget, **self.hyperparameters)
        return np.array([metric_of(lab.oracle, policy, self.metric) for policy in policies])

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Return the mean over runs and its interval."""
        return mean_interval(self.values(lab, seed))


@dataclasses.dataclass(frozen=True, kw_only=True)
class SolvedShare(Predicted):
    """Share of runs that solve the task: of one agent, or of one less that of another with the same budget."""

    agents: Sequence[str]  # one name, or two
    #: (lab, policy, seed, run) -> whether the policy of the run solves the task
    solved: Callable[[Lab, Any, int, int], bool]
    budget: int  # episodes of a run
    seeds: int  # runs of each agent
    hyperparameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the agents

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Train and judge; where all runs are alike the interval is a point."""
        shares = []
        for agent in self.agents:
            policies = lab.train(agent, run_seeds(seed, self.seeds), self.budget, **self.hyperparameters)
            shares.append(float(np.mean([self.solved(lab, policy, seed, run) for run, policy in enumerate(policies)])))
        variance = sum(share * (1 - share) / self.seeds for share in shares)
        return interval(shares[0] - sum(shares[1:]), math.sqrt(variance))


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleMean(Predicted):
    """Mean of independent values: of runs, of groups of rollouts, or of parts of a simulation."""

    sample: Callable[[Lab, int], np.ndarray]  # (lab, seed) -> the values, float64 (n,)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Train or simulate; return the mean and its interval."""
        return mean_interval(self.sample(lab, seed))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Computed(Predicted):
    """A number that has no interval, such as an exact value, a slope of exact values or a share of settings."""

    value: Callable[[Lab, int], float]  # (lab, seed) -> the number

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Return the computed number."""
        return point(self.value(lab, seed))
