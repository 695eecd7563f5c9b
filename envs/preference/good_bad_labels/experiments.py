"""What claims about GoodBadLabels predict and measure: limits and rates of the oracle, learners trained on labels."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import Interval, mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.preference.good_bad_labels.oracle import GoodBadLabelsOracle
from theorybench.envs.preference.good_bad_labels.setting import GoodBadLabels


@dataclasses.dataclass(frozen=True, kw_only=True)
class Learner:
    """An agent that learns from labels, and what the oracle knows of it."""

    agent: str  # its name
    hyperparameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the agent
    limit: str  # its name at the oracle
    known: Mapping[str, Any]  # of the limit: the share that is believed, or beta

    def end(self, oracle: GoodBadLabelsOracle) -> np.ndarray:
        """Return the policy at which it ends, float64 (X, K)."""
        return oracle.limit(self.limit, **self.known)

    def tables(self, lab: Lab, labels: int, seed: int, runs: int) -> list[np.ndarray]:
        """Train; give the probabilities of each run, float64 (X, K)."""
        trained = lab.train(self.agent, run_seeds(seed, runs), labels, **self.hyperparameters)
        return [lab.oracle.table(policy) for policy in trained]

    def distances(self, lab: Lab, labels: int, seed: int, runs: int) -> np.ndarray:
        """Train; give TV(p+, pi) of each run, float64 (runs,)."""
        return np.array([lab.oracle.distance(table) for table in self.tables(lab, labels, seed, runs)])


def ddro(variant: str, share: float | None = None) -> Learner:
    """Return DDRO ("ratio") or its variant ("two-term"); the share t is estimated, or the one that is given."""
    told = {} if share is None else {"good_share": share}
    limit = "ddro" if variant == "ratio" else variant
    return Learner(agent="ddro", hyperparameters={"variant": variant, **told}, limit=limit, known={"share": share})


#: With beta = 1: KTO, and DPO on pairs of a good and a bad response to one context. Its minimiser is far from where it
#: begins and its loss flat on the way, so that it takes larger steps.
KTO = Learner(agent="kto", hyperparameters={"beta": 1.0}, limit="kto", known={"beta": 1.0})
_STEPS = {"learning_rate": 0.3, "gradient_steps": 400, "episodes_per_update": 1024}
DPO = Learner(
    agent="online-dpo", hyperparameters={"sampler": "offline", "beta": 1.0, **_STEPS}, limit="dpo", known={"beta": 1.0}
)


def rejected(oracle: Oracle[GoodBadLabels], table: np.ndarray) -> float:
    """Return the probability (X, K) of the responses that are bad more often than good, mean over contexts."""
    return float((table * (oracle.setting.tables.chance < 0.5)).sum(axis=1).mean())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plateau:
    """What a learner that had many labels ends at, mean over runs."""

    learner: Learner  # who is trained
    #: what is said of its probabilities (X, K), given the oracle: TV(p+, pi), or `rejected`
    reading: Callable[[GoodBadLabelsOracle, np.ndarray], float] = GoodBadLabelsOracle.distance
    labels: int = 40_000  # of each run
    runs: int = 8  # number of runs

    def predicted(self, oracle: GoodBadLabelsOracle) -> float:
        """That of its limit."""
        return self.reading(oracle, self.learner.end(oracle))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over runs."""
        tables = self.learner.tables(lab, self.labels, seed, self.runs)
        return mean_interval(np.array([self.reading(lab.oracle, table) for table in tables]))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rate:
    """n times the mean of TV(p+, pi)^2 after n labels."""

    learner: Learner  # DDRO or its variant
    labels: int = 8192  # n
    runs: int = 192  # number of runs

    def predicted(self, oracle: GoodBadLabelsOracle) -> float:
        """The limit by the delta method, for a share t that is estimated or known."""
        return oracle.rate(self.learner.limit, estimated=self.learner.known["share"] is None)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over runs."""
        return mean_interval(self.labels * self.learner.distances(lab, self.labels, seed, self.runs) ** 2)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AverageLimit:
    """TV(p+, limit of a learner), mean over instances; computed, nothing is trained."""

    learner: Learner  # whose limit
    instances: int = 300  # number of instances
    draws: int = 10_000  # of laws, for the prediction

    def predicted(self, oracle: Oracle[GoodBadLabels]) -> float:
        """Mean over laws drawn from Dirichlet(1), with DPO's beta of 1 and even shares."""
        laws = np.random.default_rng(0).dirichlet(np.ones(oracle.setting.num_responses), (2, self.draws))
        good, bad = np.maximum(laws, 1e-300)
        tilted = (good + bad) * good / bad
        tilted /= tilted.sum(axis=1, keepdims=True)
        return float(np.abs(tilted - good).sum(axis=1).mean() / 2)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over instances."""
        oracles = [lab.at(instance=number).oracle for number in run_seeds(seed, self.instances)]
        return mean_interval(np.array([oracle.distance(self.learner.end(oracle)) for oracle in oracles]))
