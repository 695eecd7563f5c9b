"""Experiments on training lengths: the nearest-share learner, trained on sampled strings, and episodes."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from theorybench.envs.context.training_length.attention import Task
from theorybench.envs.context.training_length.learner import NearestShare, Scale, Source, log_scale, means, train
from theorybench.envs.context.training_length.setting import TASKS, TrainingLength
from theorybench.envs.core.evidence.experiments import Sampled
from theorybench.envs.core.evidence.lab import Lab, run_seeds, seed_of
from theorybench.envs.core.finite.oracle import PointPolicy

#: The length of the strings on which models are deployed: attention is hard there at 4 bits and all margins.
LONG = 2048

Answers = Callable[[NearestShare], Callable[[np.ndarray], np.ndarray]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trainer:
    """How models are trained and judged."""

    strings: int = 20_000  # of a run
    deployed: int = 8_192  # strings of length `LONG`
    bits: int | None = None  # of attention; None for the setting's
    scale: Scale = log_scale  # of attention scores
    answers: Answers = lambda model: model  # a model to what answers in its place

    def source(self, lab: Lab, task: Task) -> Source:
        """Return strings of a task."""
        return Source(task=task, bits=self.bits or lab.setting.bits, scale=self.scale)

    def errors(self, lab: Lab, task: Task, lengths: Sequence[int], rng: np.random.Generator) -> list[float]:
        """Train at each of some lengths; return the largest error of each model on the same long strings."""
        source = self.source(lab, task)
        asked = source.draw(LONG, self.deployed, rng)
        share = asked.ones / (LONG // task.period)
        models = (self.answers(train(source, length, self.strings, rng)) for length in lengths)
        return [float(np.abs(asked.label - model(share)).max()) for model in models]

    def jump(self, lab: Lab, task: Task, length: int, longer: int, rng: np.random.Generator) -> float:
        """Train at a length; return the mean distance of the answers from the labels at a longer one."""
        source, n = self.source(lab, task), longer // task.period
        model = self.answers(train(source, length, self.strings, rng))
        labels = means(source.draw(longer, self.strings, rng), n)
        return float(np.abs(labels - model(np.arange(n + 1) / n)).mean())

    def losses(self, lab: Lab, task: Task, length: int, rng: np.random.Generator) -> tuple[float, float]:
        """Train at a length; return the squared loss on fresh strings of it, and how much of it no model can avoid.

        That is the spread of labels at equal shares of ones, without bias.
        """
        source, n = self.source(lab, task), length // task.period
        model = self.answers(train(source, length, self.strings, rng))
        fresh = source.draw(length, self.strings, rng)
        met = np.bincount(fresh.ones, minlength=n + 1)[fresh.ones]
        again = met > 1
        off = ((fresh.label - means(fresh, n)[fresh.ones]) ** 2)[again]
        spread = off * (met / (met - 1))[again]
        return float(((fresh.label - model(fresh.ones / n)) ** 2).mean()), float(spread.mean())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Runs(Sampled):
    """Mean over runs of a number that training gives."""

    number: Callable[[Trainer, Lab, np.random.Generator], float]  # of a run
    trainer: Trainer = Trainer()
    runs: int = 6  # with strings of their own

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Train: float64 (runs,)."""
        seeds = run_seeds(seed, self.runs)
        return np.array([self.number(self.trainer, lab, np.random.default_rng([251027015, run])) for run in seeds])


def plateau_ratio(cases: Sequence[tuple[Task, int]]) -> Callable[[Trainer, Lab, np.random.Generator], float]:
    """Return how to measure the mean of E_N 2 N / (frequency period) over tasks and lengths."""

    def number(trainer: Trainer, lab: Lab, rng: np.random.Generator) -> float:
        ratios = [
            trainer.errors(lab, task, [length], rng)[0] * 2 * length / (task.frequency * task.period)
            for task, length in cases
        ]
        return float(np.mean(ratios))

    return number


def escape(tasks: Sequence[Task]) -> Callable[[Trainer, Lab, np.random.Generator], float]:
    """Return how to measure log2 of the first length that ends on the plateau, the mean over tasks."""

    def number(trainer: Trainer, lab: Lab, rng: np.random.Generator) -> float:
        found = []
        for task in tasks:
            plateau = task.frequency * task.period / 2
            lengths = lab.setting.lengths
            errors = trainer.errors(lab, task, lengths, rng)
            out = (n for n, error in zip(lengths, errors, strict=True) if error <= 1.05 * plateau / n)
            found.append(np.log2(next(out, 2 * lengths[-1])))
        return float(np.mean(found))

    return number


def fixed_run(setting: TrainingLength, run: int) -> PointPolicy:
    """Return the policy that makes one run, if none longer has been made, and deploys."""
    last = setting.last_run(setting.boards)
    return PointPolicy(setting, "nodes", np.where(last < run, run, setting.num_lengths))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Played(Sampled):
    """What one policy earns more than another in episodes that are played, the mean over settings."""

    policies: Callable[[Any], tuple[Any, Any]]  # of an oracle
    settings: tuple[dict[str, Any], ...] = ({},)  # parameters
    episodes: int = 2**14  # of each policy on each setting
    parts: int = 16  # of these, as runs

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Play; return the difference of the means of each part: float64 (parts,)."""
        found = []
        for place, parameters in enumerate(self.settings):
            own = lab.at(**parameters)
            earned = [
                own.simulate(policy, self.episodes, seed_of(seed, place, number, 1)).rewards
                for number, policy in enumerate(self.policies(own.oracle))
            ]
            found.append([part.mean() for part in np.split(earned[0] - earned[1], self.parts)])
        return np.mean(found, axis=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Regret(Sampled):
    """What one who is shown the task earns more than the optimum: errors from training, the optimum played."""

    trainer: Trainer = Trainer(strings=4_096, deployed=4_096)
    episodes: int = 2**15  # of the optimum
    parts: int = 16  # of these, as runs

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Train at every length in every task, and play: float64 (parts,)."""
        setting, rng, shown = lab.setting, np.random.default_rng([251027015, seed]), 0.0
        for task, weight in zip(TASKS, setting.task_weights.tolist(), strict=True):
            right = np.array(self.trainer.errors(lab, task, setting.lengths, rng)) <= setting.tolerance
            earned = right - setting.price * setting.compute
            shown += weight * max(0.0, float(earned.max()))
        rewards = lab.simulate(lab.oracle.optimal_policy, self.episodes, seed_of(seed, 2)).rewards
        return np.array([shown - part.mean() for part in np.split(rewards, self.parts)])
