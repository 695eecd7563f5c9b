"""What claims about GoodBadLabels predict and measure.

Limits and rates are those of the oracle; learners are trained on labels. Intervals are three standard errors wide on
each side.
"""

import dataclasses
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import Interval, mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.preference.good_bad_labels.oracle import GoodBadLabelsOracle
from theorybench.envs.preference.good_bad_labels.setting import GoodBadLabels


@dataclasses.dataclass(frozen=True)
class Learner:
    """An agent that learns from labels, and what the oracle knows of it.

    Attributes:
        agent: its name.
        limit: its name at the oracle.
        hyperparameters: of the agent.
        known: of the limit, by name.
    """

    agent: str
    limit: str
    hyperparameters: tuple[tuple[str, Any], ...] = ()
    known: tuple[tuple[str, Any], ...] = ()

    def end(self, setting: GoodBadLabels) -> np.ndarray:
        """Give the policy at which it ends, float64 (X, K)."""
        return GoodBadLabelsOracle(setting).limit(self.limit, **dict(self.known))

    def policies(self, lab: Lab, labels: int, seed: int, runs: int) -> np.ndarray:
        """Train; give probabilities, float64 (runs, X, K)."""
        numbers = run_seeds(seed, runs)
        trained = lab.train(self.agent, numbers, labels, **dict(self.hyperparameters))
        return np.array([lab.oracle.table(policy) for policy in trained])

    def distances(self, lab: Lab, labels: int, seed: int, runs: int) -> np.ndarray:
        """Train; give TV(p+, pi) of each run, float64 (runs,)."""
        return np.array([lab.oracle.distance(table) for table in self.policies(lab, labels, seed, runs)])


def ddro(variant: str, share: float | None = None) -> Learner:
    """Give DDRO ("ratio") or its variant ("two-term"); the share t is estimated, or the one that is given."""
    options: tuple[tuple[str, Any], ...] = (("variant", variant),)
    options += () if share is None else (("good_share", share),)
    return Learner("ddro", "ddro" if variant == "ratio" else variant, options, (("share", share),))


#: With beta = 1: KTO, and DPO on pairs of a good and a bad response to one context. Its minimiser is far from where it
#: begins and its loss flat on the way, so that it takes larger steps.
KTO = Learner("kto", "kto", (("beta", 1.0),), (("beta", 1.0),))
_STEPS = (("learning_rate", 0.3), ("gradient_steps", 400), ("episodes_per_update", 1024))
DPO = Learner("online-dpo", "dpo", (("sampler", "offline"), ("beta", 1.0), *_STEPS), (("beta", 1.0),))


@dataclasses.dataclass(frozen=True)
class Plateau:
    """Mean TV(p+, pi) of a learner that had many labels.

    Attributes:
        learner: who is trained.
        labels: of each run.
        runs: number of runs.
    """

    learner: Learner
    labels: int = 40_000
    runs: int = 8

    def predicted(self, oracle: GoodBadLabelsOracle) -> float:
        """TV(p+, limit)."""
        return oracle.distance(self.learner.end(oracle.setting))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over runs."""
        return mean_interval(self.learner.distances(lab, self.labels, seed, self.runs))


@dataclasses.dataclass(frozen=True)
class Rate(Plateau):
    """n times the mean of TV^2 after n labels."""

    labels: int = 8192
    runs: int = 192

    def predicted(self, oracle: GoodBadLabelsOracle) -> float:
        """The limit by the delta method, for a share t that is estimated or known."""
        estimated = dict(self.learner.known)["share"] is None
        return oracle.rate(self.learner.limit, estimated=estimated)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over runs."""
        return mean_interval(self.labels * self.learner.distances(lab, self.labels, seed, self.runs) ** 2)


@dataclasses.dataclass(frozen=True)
class Emptied(Plateau):
    """Probability that a learner leaves to the responses that are bad more often than good, mean over contexts."""

    def predicted(self, oracle: Oracle[GoodBadLabels]) -> float:
        """That of its limit."""
        setting = oracle.setting
        return float(self.rejected(setting, self.learner.end(setting)[None])[0])

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over runs."""
        return mean_interval(self.rejected(lab.setting, self.learner.policies(lab, self.labels, seed, self.runs)))

    @staticmethod
    def rejected(setting: GoodBadLabels, policies: np.ndarray) -> np.ndarray:
        """Sum probabilities (n, X, K) over the responses that are bad more often than good: (n,)."""
        share: np.ndarray = (policies * (setting.tables.chance < 0.5)).sum(axis=2).mean(axis=1)
        return share


@dataclasses.dataclass(frozen=True)
class AverageLimit:
    """TV(p+, limit of a learner), mean over instances; computed, nothing is trained.

    Attributes:
        learner: whose limit.
        instances: number of instances.
        draws: of laws, for the prediction.
    """

    learner: Learner
    instances: int = 300
    draws: int = 10_000

    def predicted(self, oracle: Oracle[GoodBadLabels]) -> float:
        """Mean over laws drawn from Dirichlet(1), with DPO's beta of 1 and even shares."""
        laws = np.random.default_rng(0).dirichlet(np.ones(oracle.setting.num_responses), (2, self.draws))
        good, bad = np.maximum(laws, 1e-300)
        tilted = (good + bad) * good / bad
        tilted /= tilted.sum(axis=1, keepdims=True)
        return float(np.abs(tilted - good).sum(axis=1).mean() / 2)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over instances."""
        found = []
        for number in run_seeds(seed, self.instances):
            other = lab.at(instance=number)
            found.append(other.oracle.distance(self.learner.end(other.setting)))
        return mean_interval(np.array(found))
