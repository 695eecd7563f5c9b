"""Experiments of the claims and studies of TreeMarkovChain: what they predict and what they measure.

Predictions about training follow the population flow (`flow`), exact gradient ascent on the training tasks from the
base chain's logits, or closed forms of its limit. Measurements train "rlvr" as the paper does: plain REINFORCE, no
baseline, stochastic gradient ascent. Intervals are three standard errors wide on each side.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import SampleMean, TrainedMetric
from theorybench.envs.core.evidence.interval import WIDTH, Interval, mean_interval, slope_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.selection import Candidates, best_of_n, tilt
from theorybench.envs.tree.markov_chain.flow import PopulationFlow
from theorybench.envs.tree.markov_chain.metrics.inference_time import outcome_shares
from theorybench.envs.tree.markov_chain.oracle import MarkovChainOracle
from theorybench.envs.tree.markov_chain.questions import EqualMass
from theorybench.envs.tree.markov_chain.setting import TreeMarkovChain


def measure(oracle: Any, policy: Any, names: Sequence[str]) -> np.ndarray:
    """Return metrics of a policy in the order of `names`, float64 (names,)."""
    values = oracle.evaluate(policy, names)
    return np.array([values[name] for name in names])


def passes(oracle: Any, policy: Any, ks: Sequence[int]) -> np.ndarray:
    """Return pass@K of a policy on the first task, float64 (ks,)."""
    return measure(oracle, policy, [f"task_0/pass@{k}" for k in ks])


def reference_passes(oracle: Any, ks: Sequence[int]) -> np.ndarray:
    """Return pass@K of the reference on the first task, float64 (ks,)."""
    return passes(oracle, oracle.reference_policy, ks)


def missed_shares(rewards: np.ndarray) -> np.ndarray:
    """Return the share of the K-subsets of tries that hold no reward, for K = 1, 2, ...: float64 (groups, tries).

    With f of G tries failed it is C(f, K) / C(G, K). One minus its mean over questions is pass@K without bias.

    Args:
        rewards: (groups, tries); all tries of a group answer the same question.
    """
    tries = rewards.shape[1]
    drawn, failed = np.arange(tries), (rewards <= 0).sum(axis=1, keepdims=True)
    return np.cumprod(np.maximum(failed - drawn, 0) / (tries - drawn), axis=1)


@dataclasses.dataclass(frozen=True)
class Training:
    """REINFORCE on the training tasks, from the reference."""

    learning_rate: float = 0.05  # of stochastic gradient ascent
    updates: int = 1000  # number of updates
    questions: int = 1  # number of questions per update, with one CoT each (and `reject_easy` more)
    policy: str = "markov"  # "markov" or "prefix": what the policy sees
    kl: float = 0.0  # weight of KL(pi || pi_ref)
    reject_easy: int = 0  # number of samples that must all fail for a question to count
    seeds: int = 64  # number of runs

    @property
    def episodes(self) -> int:
        """Episodes of one update."""
        return self.questions * (1 + self.reject_easy)

    @property
    def budget(self) -> int:
        """Episodes of a run."""
        return self.updates * self.episodes

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Hyper-parameters of the agent "rlvr"."""
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

    def flows(self, setting: TreeMarkovChain, updates: Sequence[int]) -> list[TablePolicy]:
        """Return the policies of the population flow after each of these numbers of updates."""
        flow = PopulationFlow(setting, self.learning_rate, kl=self.kl, reject_easy=self.reject_easy, policy=self.policy)
        return flow.policies(updates)

    def flow(self, setting: TreeMarkovChain) -> TablePolicy:
        """Return the policy of the population flow after the last update."""
        return _flow(setting, self)

    def expected(self, oracle: MarkovChainOracle, names: Sequence[str]) -> np.ndarray:
        """Metrics of the population flow after the last update, float64 (names,)."""
        return measure(oracle, self.flow(oracle.setting), names)

    def metric(self, name: str) -> TrainedMetric:
        """Mean of one metric over runs, compared with that of the flow."""
        return TrainedMetric(
            agent="rlvr",
            metric=name,
            prediction=lambda oracle: self.expected(oracle, [name])[0],
            budget=self.budget,
            seeds=self.seeds,
            hyperparameters=self.hyperparameters,
        )

    def policies(self, lab: Lab, seed: int) -> list[Any]:
        """Train; return the policy of each run."""
        return lab.train("rlvr", run_seeds(seed, self.seeds), self.budget, **self.hyperparameters)

    def run(self, lab: Lab, seed: int, names: Sequence[str]) -> np.ndarray:
        """Train; return metrics of each run, float64 (seeds, names)."""
        return np.array([measure(lab.oracle, policy, names) for policy in self.policies(lab, seed)])

    def limit(self, oracle: MarkovChainOracle, ks: Sequence[int]) -> np.ndarray:
        """pass@K on the first task of the policy on prefixes that the flow tends to, float64 (ks,).

        KL: the maximiser of E[acc] - kl KL(p || pi) is pi(o) exp(acc(o) / kl) / Z. Reject-easy with n samples: the
        optimum of pass@(n+1), unique for n >= 1; with n = 0 it is the most common CoT (any, if several are).
        """
        classes, valid = oracle.setting.classes[0], oracle.setting.valid_mass[0]
        masses = oracle.optimal_masses(self.reject_easy + 1)[0]
        if self.kl:
            base = np.append(classes.levels * classes.counts, 1 / valid - 1) * valid
            answers = Candidates(base, np.append(classes.levels, 0.0), np.zeros(len(base), np.int64))
            masses = (base * tilt(answers, 1 / self.kl))[:-1]
        solver = EqualMass(classes.levels, classes.counts)
        return np.array([solver.value(k, masses) for k in ks])


@functools.lru_cache(maxsize=32)
def _flow(setting: TreeMarkovChain, training: Training) -> TablePolicy:
    return training.flows(setting, [training.updates])[0]


def gain(name: str, training: Training, other: Training) -> SampleMean:
    """Mean of one metric after one training minus that after another with as many runs, compared with the flows'."""
    both = training, other
    return SampleMean(
        prediction=lambda oracle: np.subtract(*(t.expected(oracle, [name])[0] for t in both)),
        sample=lambda lab, seed: np.subtract(*(t.run(lab, seed, [name])[:, 0] for t in both)),
    )


def limit_lead(k: int, training: Training) -> SampleMean:
    """pass@K on the first task after long training minus the reference's, compared with the closed-form limit."""

    def lead(lab: Lab, seed: int) -> np.ndarray:
        return training.run(lab, seed, [f"task_0/pass@{k}"])[:, 0] - reference_passes(lab.oracle, [k])

    return SampleMean(
        prediction=lambda oracle: (training.limit(oracle, [k]) - reference_passes(oracle, [k]))[0], sample=lead
    )


@dataclasses.dataclass(frozen=True)
class NoiseExponent:
    """Slope of ln(root mean square distance of P(easy) to the flow) against ln(episodes per update)."""

    batches: tuple[int, ...] = (1, 4, 16)  # episodes per update
    training: Training = Training(seeds=128)  # how to train

    def predicted(self, oracle: MarkovChainOracle) -> float:
        """-1/2: the variance of a batch gradient falls as 1 / batch."""
        return -0.5

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Least-squares slope; ln of a root mean square over n runs has standard error about 1 / sqrt(2 n)."""
        names = ["task_0/easy"]
        target = self.training.expected(lab.oracle, names)[0]
        runs = [dataclasses.replace(self.training, questions=batch).run(lab, seed, names) for batch in self.batches]
        logs = [math.log(math.sqrt(np.mean((run[:, 0] - target) ** 2))) for run in runs]
        error = 1 / math.sqrt(2 * self.training.seeds)
        return slope_interval(np.log(self.batches), logs, [error] * len(logs))


@dataclasses.dataclass(frozen=True)
class Crossing:
    """The smallest K at which pass@K on the trained task is below the reference's; infinite if there is none."""

    training: Training = Training()  # how to train
    limit: bool = False  # predict the limit of training instead of the flow at its last update
    ks: tuple[int, ...] = tuple(range(1, 33))  # the values of K to compare, ascending

    @property
    def names(self) -> list[str]:
        """The names of the metrics that are compared."""
        return [f"task_0/pass@{k}" for k in self.ks]

    def predicted(self, oracle: MarkovChainOracle) -> float:
        """The K at which the flow, or its limit, first falls below the reference."""
        curve = self.training.limit(oracle, self.ks) if self.limit else self.training.expected(oracle, self.names)
        return self._first_below(curve, oracle)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """The K at which mean pass@K over runs falls below the reference, and the same for its interval's ends."""
        passes = self.training.run(lab, seed, self.names)
        mean, spread = passes.mean(axis=0), WIDTH * passes.std(axis=0, ddof=1) / math.sqrt(len(passes))
        return Interval(*(self._first_below(curve, lab.oracle) for curve in (mean, mean - spread, mean + spread)))

    def _first_below(self, passes: np.ndarray, oracle: Any) -> float:
        below = passes < reference_passes(oracle, self.ks)
        return float(min(np.array(self.ks)[below], default=math.inf))


@dataclasses.dataclass(frozen=True)
class HardShare:
    """The largest ratio by which the share of hard CoTs among the valid ones changes when best-of-N doubles N."""

    sizes: tuple[int, ...] = (1, 2, 4, 8)  # the values of N, each twice the one before
    scored: int = 2**18  # number of rollouts from which the score of each CoT is learned
    questions: int = 2**17  # number of groups, each of as many answers as the largest N
    batches: int = 16  # number of batches of groups, for the interval

    def predicted(self, oracle: MarkovChainOracle) -> float:
        """The largest ratio of the share at N to that at N / 2; below 1 if the share falls with every doubling."""
        shares = [outcome_shares(oracle.setting, 0, partial(best_of_n, samples=n)).hard_of_valid for n in self.sizes]
        return max(after / before for before, after in itertools.pairwise(shares))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Score the base chain's CoTs by mean reward, keep the best of N answers, and count the hard ones."""
        setting = lab.setting
        reference, numbers = lab.oracle.reference_policy, setting.M ** np.arange(setting.L - 1)
        scored = lab.simulate(reference, self.scored, 2 * seed)
        paths = scored.actions @ numbers
        visits = np.bincount(paths, minlength=setting.M ** (setting.L - 1))
        scores = np.bincount(paths, scored.rewards, len(visits)) / np.maximum(visits, 1)
        answers = lab.simulate(reference, self.questions * self.sizes[-1], 2 * seed + 1)
        nodes = setting.nodes(answers.observations.reshape(-1, setting.L)).reshape(answers.actions.shape)
        easy = setting.tree.high[nodes, answers.actions].all(axis=1).reshape(self.questions, -1)
        valid = (answers.actions[:, -1] == setting.tree.targets[0]).reshape(self.questions, -1)
        each, score = np.arange(self.questions), scores[answers.actions @ numbers].reshape(self.questions, -1)
        shares = []
        for size in self.sizes:
            kept = each, score[:, :size].argmax(axis=1)
            hard, right = (x[kept].reshape(self.batches, -1).sum(axis=1) for x in (valid & ~easy, valid))
            shares.append(hard / right)
        ratios = np.stack([after / before for before, after in itertools.pairwise(shares)])
        return mean_interval(ratios[ratios.mean(axis=1).argmax()])
