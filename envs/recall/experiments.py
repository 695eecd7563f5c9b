"""Experiments of claims about what is recalled: trained policies on prompts longer than those of training."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import Predicted, Sampled, metric_of
from theorybench.envs.core.evidence.interval import Interval, mean_interval, point
from theorybench.envs.core.evidence.lab import Lab, run_seeds, seed_of

#: How networks are trained in claims and studies of this family, unless they say otherwise.
NETWORK = {"learning_rate": 0.03, "max_gradient_norm": 1.0, "episodes_per_update": 64}
#: Independent runs of each trained network.
SEEDS = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedValue(Sampled):
    """The objective, at one length, of the policies that some runs of an agent end with: their mean."""

    agent: str
    budget: int  # episodes of a run
    length: int | None = None  # of the prompts that policies are judged on; None for the full length
    metric: str = "objective"
    seeds: int = SEEDS
    hyperparameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Train; return the value of each run, float64 (seeds,)."""
        options = {**NETWORK, **self.hyperparameters}
        name = self.metric if self.length is None else f"length_{self.length}/{self.metric}"
        policies = lab.train(self.agent, run_seeds(seed, self.seeds), self.budget, **options)
        return np.array([metric_of(lab.oracle, policy, name) for policy in policies])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reaches(TrainedValue):
    """Whether the mean over runs, with its interval, lies on one side of a bound: 1 if it does, else 0."""

    bound: float
    above: bool = True  # whether it has to lie above

    def summary(self, found: np.ndarray) -> Interval:
        """Return whether it does."""
        ends = mean_interval(found)
        return point(float(ends.low >= self.bound if self.above else ends.high <= self.bound))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Played(Sampled):
    """What a rule earns when it is played on fresh prompts of the full length."""

    rule: str  # or "optimal"
    episodes: int = 40_000

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Play; return the rewards, float64 (episodes,)."""
        fresh = lab.at(trained=0)
        optimal = self.rule == "optimal"
        policy = fresh.oracle.optimal_policy if optimal else fresh.setting.rule_policy(self.rule)
        return np.asarray(fresh.simulate(policy, self.episodes, seed_of(seed, 7)).rewards)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StateSize(Predicted):
    """How many independent numbers of what stands before a cut a policy's answers depend on; see `Lab.memory`."""

    policy: Callable[[Any], Any]  # of the oracle
    pasts: int = 256
    least: float = 0.01  # singular values count from this share of the largest

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Return the number of singular values that count."""
        return point(float(lab.memory(self.policy(lab.oracle), seed, pasts=self.pasts).rank(self.least)))
