"""Experiments of claims about what is recalled: trained policies on prompts longer than those of training."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import Sampled, metric_of
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
class Played(Sampled):
    """What a rule earns when it is played on fresh prompts of the full length."""

    rule: str
    episodes: int = 40_000

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Play; return the rewards, float64 (episodes,)."""
        fresh = lab.at(trained=0)
        policy = fresh.setting.rule_policy(self.rule)
        return np.asarray(fresh.simulate(policy, self.episodes, seed_of(seed, 7)).rewards)
