"""What arXiv 2511.07368 says of TreeMarkovChain, as tests that run.

Predictions follow the population flow (`theorybench.envs.tree.flow`): exact gradient ascent on E[reward] on the first
task alone, from the base chain's logits, learning rate .05, 1000 updates. Measurements train "rlvr" as the paper does:
plain REINFORCE, no baseline, stochastic gradient ascent, one CoT an update unless said otherwise. Intervals are three
standard errors wide on each side.
"""

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from theorybench.envs.core.claim import WIDTH, Claim, Lab, interval, mean_interval
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.tree.flow import flow_policies
from theorybench.envs.tree.markov_chain import TreeMarkovChain
from theorybench.envs.tree.markov_chain_oracle import MarkovChainOracle

#: The K up to which pass@K is compared with the reference's.
CROSSING_KS = tuple(range(1, 33))


@dataclasses.dataclass(frozen=True)
class Training:
    """REINFORCE on the training tasks.

    Attributes:
        learning_rate: of stochastic gradient ascent.
        updates: number of them.
        policy: "markov" or "prefix": what the policy sees.
        seeds: number of runs.
    """

    learning_rate: float = 0.05
    updates: int = 1000
    policy: str = "markov"
    seeds: int = 64

    def flow(self, setting: TreeMarkovChain, names: list[str]) -> np.ndarray:
        """Metrics of the population flow in the Markov class, float64 (names,)."""
        values = MarkovChainOracle(setting).evaluate(_cached_flow(setting, self.learning_rate, self.updates), names)
        return np.array([values[name] for name in names])

    def run(self, lab: Lab, seed: int, names: list[str], batch: int = 1) -> np.ndarray:
        """Metrics of each trained policy, float64 (seeds, names)."""
        policies = lab.train(
            "rlvr",
            range(seed * self.seeds, (seed + 1) * self.seeds),
            self.updates * batch,
            policy=self.policy,
            learning_rate=self.learning_rate,
            episodes_per_update=batch,
            optimizer="sgd",
            baseline="none",
            start="reference",
        )
        values = [lab.oracle.evaluate(policy, names) for policy in policies]
        return np.array([[value[name] for name in names] for value in values])


@functools.lru_cache(maxsize=16)
def _cached_flow(setting: TreeMarkovChain, learning_rate: float, updates: int) -> TablePolicy:
    return flow_policies(setting, learning_rate, [updates])[0]


@dataclasses.dataclass(frozen=True)
class Metric:
    """Mean of one metric after training, against the flow's.

    Attributes:
        name: the metric.
        training: how to train.
    """

    name: str
    training: Training = Training()

    def predicted(self, setting: TreeMarkovChain) -> float:
        """The flow's value; the reference's for a prefix policy on a task that is not trained."""
        if self.training.policy == "prefix":
            oracle = MarkovChainOracle(setting)
            return oracle.evaluate(oracle.reference_policy, [self.name])[self.name]
        return float(self.training.flow(setting, [self.name])[0])

    def measure(self, setting: TreeMarkovChain, lab: Lab, seed: int) -> tuple[float, float, float]:
        """Mean over runs, and its interval."""
        return mean_interval(self.training.run(lab, seed, [self.name])[:, 0])


@dataclasses.dataclass(frozen=True)
class NoiseExponent:
    """Slope of ln(root mean square distance of P(easy) to the flow) against ln(episodes an update).

    Attributes:
        batches: episodes an update.
        training: how to train.
    """

    batches: tuple[int, ...] = (1, 4, 16)
    training: Training = Training(seeds=128)

    def predicted(self, setting: TreeMarkovChain) -> float:
        """-1/2: the variance of a batch gradient falls as 1 / batch."""
        return -0.5

    def measure(self, setting: TreeMarkovChain, lab: Lab, seed: int) -> tuple[float, float, float]:
        """Least-squares slope; ln of a root mean square over n runs has standard error about 1 / sqrt(2 n)."""
        names = ["task_0/easy"]
        target = self.training.flow(setting, names)[0]
        distances = [self.training.run(lab, seed, names, batch)[:, 0] - target for batch in self.batches]
        logs = np.log([math.sqrt(np.mean(distance**2)) for distance in distances])
        x = np.log(self.batches) - np.mean(np.log(self.batches))
        return interval(x @ logs / (x @ x), 1 / math.sqrt(2 * self.training.seeds * (x @ x)))


@dataclasses.dataclass(frozen=True)
class Crossing:
    """The least K at which pass@K on the trained task is below the reference's.

    Attributes:
        training: how to train.
        limit: predict the limit of training (all mass on the easy CoT) instead of the flow at its last update.
    """

    training: Training = Training()
    limit: bool = False

    def predicted(self, setting: TreeMarkovChain) -> float:
        """The K at which the flow, or its limit, first falls below the reference; infinite beyond 32."""
        names = [f"task_0/pass@{k}" for k in CROSSING_KS]
        if not self.limit:
            return _first_below(self.training.flow(setting, names), setting)
        oracle = MarkovChainOracle(setting)
        squeezed = oracle.evaluate(oracle.squeezed_policy(), names)
        return _first_below(np.array([squeezed[name] for name in names]), setting)

    def measure(self, setting: TreeMarkovChain, lab: Lab, seed: int) -> tuple[float, float, float]:
        """The K at which the mean of pass@K over runs falls below the reference, and those of its interval's ends."""
        passes = self.training.run(lab, seed, [f"task_0/pass@{k}" for k in CROSSING_KS])
        mean, spread = passes.mean(axis=0), WIDTH * passes.std(axis=0, ddof=1) / math.sqrt(len(passes))
        value, low, high = (_first_below(curve, setting) for curve in (mean, mean - spread, mean + spread))
        return value, low, high


def _first_below(passes: np.ndarray, setting: TreeMarkovChain) -> float:
    names = [f"task_0/pass@{k}" for k in CROSSING_KS]
    oracle = MarkovChainOracle(setting)
    reference = oracle.evaluate(oracle.reference_policy, names)
    below = [k for k, x, name in zip(CROSSING_KS, passes, names, strict=True) if x < reference[name]]
    return float(min(below, default=math.inf))


def _claim(id: str, part: str, statement: str, falsified_by: str, study: Any, tolerance: float) -> Claim:
    return Claim(
        id=f"tree-{id}",
        source=f"arXiv 2511.07368, {part}",
        statement=statement,
        predicted=study.predicted,
        measure=study.measure,
        tolerance=tolerance,
        falsified_by=falsified_by,
        parameters={"train_tasks": [0]},
    )


CLAIMS: tuple[Claim, ...] = (
    _claim(
        "squeezing",
        "squeezing; tolerance: the mean of runs at a finite step size differs from the flow by less than .002",
        "REINFORCE on one task moves its mass to the easy CoT: P(easy) after 1000 updates is the population flow's",
        "an algorithm that does not ascend E[reward], such as one with a penalty to the reference",
        Metric("task_0/easy"),
        0.002,
    ),
    _claim(
        "squeezing-hard",
        "squeezing; tolerance: the mean of runs at a finite step size differs from the flow by less than .002",
        "It takes mass from the hard valid CoTs of that task, although they are rewarded",
        "exploration: rejecting the questions that the model already solves",
        Metric("task_0/hard"),
        0.002,
    ),
    _claim(
        "squeezing-noise",
        "squeezing; tolerance: next orders in the step size at one episode an update",
        "Single runs scatter about the flow by an amount that falls as episodes an update to the power -1/2",
        "a bias of the runs that more episodes do not remove",
        NoiseExponent(),
        0.02,
    ),
    _claim(
        "forgetting",
        "forgetting; tolerance: the mean of runs at a finite step size differs from the flow by less than .0005",
        "The shared rows of a Markov policy forget the task that is not trained: its P(easy) is the flow's",
        "a policy that tells the tasks apart",
        Metric("task_1/easy"),
        0.0005,
    ),
    _claim(
        "forgetting-prefix",
        "forgetting, our contrast; tolerance: rounding of probabilities",
        "A policy that sees the whole prefix keeps the task that is not trained exactly as it was",
        "a policy whose rows are shared between tasks",
        Metric("task_1/easy", Training(policy="prefix", seeds=5)),
        1e-6,
    ),
    _claim(
        "consistency",
        "consistency is not correctness; tolerance: none beyond the interval of the mean curve",
        "Training raises pass@1 and lowers pass@K from some K on: the least K below the reference's is the flow's",
        "an objective with an eye for coverage, such as pass@6",
        Crossing(),
        0.0,
    ),
    _claim(
        "consistency-many-tries",
        "consistency is not correctness; tolerance: the mean of runs at a finite step size, as for squeezing",
        "With 128 tries the trained policy falls short of the reference by what the flow says",
        "an objective with an eye for coverage, such as pass@6",
        Metric("task_0/pass@128"),
        0.002,
    ),
    _claim(
        "consistency-limit",
        "E[reward] is linear in the CoT distribution, so its maximum is a point; tolerance: none",
        "Trained for long, pass@K is that of the easy CoT alone for every K: the reference is ahead from the K at "
        "which it passes the easy CoT's correctness",
        "an objective with an eye for coverage, such as pass@6",
        Crossing(Training(learning_rate=0.5, updates=4000, seeds=16), limit=True),
        0.0,
    ),
)
