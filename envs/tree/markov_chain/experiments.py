"""What claims about training on TreeMarkovChain predict and measure.

Predictions follow the population flow (`flow`): exact gradient ascent on the training tasks from
the base chain's logits; or closed forms of its limit. Measurements train "rlvr" as the paper does: plain REINFORCE, no
baseline, stochastic gradient ascent. Intervals are three standard errors wide on each side.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.claim import ClaimMaker
from theorybench.envs.core.evidence.interval import WIDTH, Interval, interval, mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.selection import Candidates, tilt
from theorybench.envs.tree.markov_chain.flow import flow_policies
from theorybench.envs.tree.markov_chain.oracle import MarkovChainOracle
from theorybench.envs.tree.markov_chain.questions import EqualMass
from theorybench.envs.tree.markov_chain.setting import TreeMarkovChain

#: The K up to which pass@K is compared with the reference's.
CROSSING_KS = tuple(range(1, 33))


@dataclasses.dataclass(frozen=True)
class Training:
    """REINFORCE on the training tasks, from the reference.

    Attributes:
        learning_rate: of stochastic gradient ascent.
        updates: number of them.
        questions: of each update, each for one CoT (and `reject_easy` more).
        policy: "markov" or "prefix": what the policy sees.
        kl: weight of KL(pi || pi_ref).
        reject_easy: number of samples that must all fail for a question to count.
        seeds: number of runs.
    """

    learning_rate: float = 0.05
    updates: int = 1000
    questions: int = 1
    policy: str = "markov"
    kl: float = 0.0
    reject_easy: int = 0
    seeds: int = 64

    def flow(self, setting: TreeMarkovChain) -> TablePolicy:
        """Give the policy of the population flow after the last update."""
        return _flow(setting, self)

    def flows(self, setting: TreeMarkovChain, updates: Sequence[int]) -> list[TablePolicy]:
        """Give the policies of the population flow after so many updates."""
        return flow_policies(
            setting, self.learning_rate, updates, kl=self.kl, reject_easy=self.reject_easy, policy=self.policy
        )

    def expected(self, setting: TreeMarkovChain, names: list[str]) -> np.ndarray:
        """Metrics of the population flow after the last update, float64 (names,)."""
        return measure(MarkovChainOracle(setting), self.flow(setting), names)

    @property
    def episodes(self) -> int:
        """Episodes of one update."""
        return self.questions * (1 + self.reject_easy)

    def policies(self, lab: Lab, seed: int) -> list[Any]:
        """Train; give the policy of each run."""
        return lab.train("rlvr", self._seeds(seed), self.updates * self.episodes, **self._hyperparameters)

    def courses(self, lab: Lab, seed: int, points: int) -> list[list[tuple[int, Any]]]:
        """Train; give (episodes, policy) of each run after each of `points` equal parts of its episodes."""
        budget = self.updates * self.episodes
        return lab.trace("rlvr", self._seeds(seed), budget, points=points, **self._hyperparameters)

    def _seeds(self, seed: int) -> range:
        return run_seeds(seed, self.seeds)

    @property
    def _hyperparameters(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "learning_rate": self.learning_rate,
            "episodes_per_update": self.episodes,
            "kl": self.kl,
            "reject_easy": self.reject_easy,
            "optimizer": "sgd",
            "baseline": "none",
            "start": "reference",
        }

    def run(self, lab: Lab, seed: int, names: list[str]) -> np.ndarray:
        """Train; give metrics of each run, float64 (seeds, names)."""
        return np.array([measure(lab.oracle, policy, names) for policy in self.policies(lab, seed)])

    def limit(self, setting: TreeMarkovChain, ks: list[int]) -> np.ndarray:
        """pass@K on the first task of the policy on prefixes that the flow tends to, float64 (ks,).

        KL: the maximiser of E[acc] - kl KL(p || pi) is pi(o) exp(acc(o) / kl) / Z. Reject-easy with n samples: the
        optimum of pass@(n+1), unique for n >= 1; with n = 0 it is the most common CoT (any, if several are).
        """
        oracle = MarkovChainOracle(setting)
        classes, masses = oracle.classes[0], oracle.optimal_masses(self.reject_easy + 1)[0]
        if self.kl:
            base = np.append(classes.levels * classes.counts, 1 / setting.valid_mass[0] - 1) * setting.valid_mass[0]
            answers = Candidates(base, np.append(classes.levels, 0.0), np.zeros(len(base), np.int64))
            masses = (base * tilt(answers, 1 / self.kl))[:-1]
        solver = EqualMass(classes.levels, classes.counts)
        return np.array([solver.value(k, masses) for k in ks])


def measure(oracle: Any, policy: Any, names: Sequence[str]) -> np.ndarray:
    """Return metrics of a policy in the order in which they are named, float64 (names,)."""
    values = oracle.evaluate(policy, names)
    return np.array([values[name] for name in names])


@functools.lru_cache(maxsize=32)
def _flow(setting: TreeMarkovChain, training: Training) -> TablePolicy:
    return training.flows(setting, [training.updates])[0]


def reference_passes(setting: TreeMarkovChain, ks: list[int]) -> np.ndarray:
    """pass@K of the reference on the first task, float64 (ks,)."""
    oracle = MarkovChainOracle(setting)
    return measure(oracle, oracle.reference_policy, [f"task_0/pass@{k}" for k in ks])


@dataclasses.dataclass(frozen=True)
class Metric:
    """Mean of one metric after training, against the flow's.

    Attributes:
        name: the metric.
        training: how to train.
    """

    name: str
    training: Training = Training()

    def predicted(self, oracle: Oracle[TreeMarkovChain]) -> float:
        """The flow's value."""
        return float(self.training.expected(oracle.setting, [self.name])[0])

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over runs, and its interval."""
        return mean_interval(self.training.run(lab, seed, [self.name])[:, 0])


@dataclasses.dataclass(frozen=True)
class Gain:
    """Mean of one metric after training less that after other training, against the flows'.

    Attributes:
        name: the metric.
        training: how to train.
        other: what to compare with, by as many runs.
    """

    name: str
    training: Training
    other: Training

    def predicted(self, oracle: Oracle[TreeMarkovChain]) -> float:
        """The difference of the flows."""
        return float(np.subtract(*(t.expected(oracle.setting, [self.name])[0] for t in (self.training, self.other))))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over pairs of runs, and its interval."""
        return mean_interval(np.subtract(*(t.run(lab, seed, [self.name])[:, 0] for t in (self.training, self.other))))


@dataclasses.dataclass(frozen=True)
class LimitLead:
    """pass@K on the first task after long training less the reference's, against the limit's closed form.

    Attributes:
        k: the K.
        training: how to train.
    """

    k: int
    training: Training

    def predicted(self, oracle: Oracle[TreeMarkovChain]) -> float:
        """The limit's lead."""
        setting = oracle.setting
        return float((self.training.limit(setting, [self.k]) - reference_passes(setting, [self.k]))[0])

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over runs, and its interval."""
        passes = self.training.run(lab, seed, [f"task_0/pass@{self.k}"])[:, 0]
        return mean_interval(passes - reference_passes(lab.setting, [self.k]))


@dataclasses.dataclass(frozen=True)
class NoiseExponent:
    """Slope of ln(root mean square distance of P(easy) to the flow) against ln(episodes an update).

    Attributes:
        batches: episodes an update.
        training: how to train.
    """

    batches: tuple[int, ...] = (1, 4, 16)
    training: Training = Training(seeds=128)

    def predicted(self, oracle: Oracle[TreeMarkovChain]) -> float:
        """-1/2: the variance of a batch gradient falls as 1 / batch."""
        return -0.5

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Least-squares slope; ln of a root mean square over n runs has standard error about 1 / sqrt(2 n)."""
        names = ["task_0/easy"]
        target = self.training.expected(lab.setting, names)[0]
        runs = [dataclasses.replace(self.training, questions=batch).run(lab, seed, names) for batch in self.batches]
        logs = np.log([math.sqrt(np.mean((run[:, 0] - target) ** 2)) for run in runs])
        x = np.log(self.batches) - np.mean(np.log(self.batches))
        return interval(x @ logs / (x @ x), 1 / math.sqrt(2 * self.training.seeds * (x @ x)))


@dataclasses.dataclass(frozen=True)
class Crossing:
    """The least K at which pass@K on the trained task is below the reference's; infinite beyond 32.

    Attributes:
        training: how to train.
        limit: predict the limit of training instead of the flow at its last update.
    """

    training: Training = Training()
    limit: bool = False

    def predicted(self, oracle: Oracle[TreeMarkovChain]) -> float:
        """The K at which the flow, or its limit, first falls below the reference."""
        setting = oracle.setting
        if self.limit:
            return _first_below(self.training.limit(setting, list(CROSSING_KS)), setting)
        return _first_below(self.training.expected(setting, [f"task_0/pass@{k}" for k in CROSSING_KS]), setting)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """The K at which the mean of pass@K over runs falls below the reference, and those of its interval's ends."""
        passes = self.training.run(lab, seed, [f"task_0/pass@{k}" for k in CROSSING_KS])
        mean, spread = passes.mean(axis=0), WIDTH * passes.std(axis=0, ddof=1) / math.sqrt(len(passes))
        value, low, high = (_first_below(curve, lab.setting) for curve in (mean, mean - spread, mean + spread))
        return Interval(value, low, high)


def _first_below(passes: np.ndarray, setting: TreeMarkovChain) -> float:
    below = passes < reference_passes(setting, list(CROSSING_KS))
    return float(min(np.array(CROSSING_KS)[below], default=math.inf))


#: Claims of arXiv 2511.07368 about training on the first task.
first_task_claim = ClaimMaker("tree", "arXiv 2511.07368", parameters={"train_tasks": [0]})
