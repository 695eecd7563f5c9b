"""Experiments on causal graphs: batches that are drawn, all sequences listed, and attention that is trained."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from theorybench.envs.context.causal_graph.attention import gradient, start, trained
from theorybench.envs.context.causal_graph.sequences import (
    Means,
    Sequences,
    counted,
    draw,
    listed,
    means,
    named,
    spanning_forest,
)
from theorybench.envs.context.causal_graph.trees import distances
from theorybench.envs.core.evidence.interval import Interval, mean_interval
from theorybench.envs.core.evidence.lab import Lab, seed_of


def named_parent(setting: Any, *, in_context: bool) -> float:
    """Return how often a test names the parent, by the setting's law: the mean over trees and positions."""
    own = setting.columns[: len(setting.targets)] if in_context else setting.columns[len(setting.targets) :]
    every = np.arange(len(setting.trees))
    found = [
        setting.answer_law[columns][setting.trees[:, target], every].mean()
        for target, columns in zip(setting.targets, own, strict=True)
    ]
    return float(np.mean(found))


@dataclasses.dataclass(frozen=True, kw_only=True)
class NamedParents:
    """Whether tests of drawn batches name the parent, over random trees and positions: bool (tests,)."""

    in_context: bool
    kept: float = 0.5  # the probability that a kernel keeps signs
    tests: int = 2**15

    def __call__(self, lab: Lab, seed: int) -> np.ndarray:
        """Draw; an equal share of the tests is of each position."""
        setting, rng = lab.setting, np.random.default_rng(seed)
        found = []
        for target in setting.targets:
            parents = setting.trees[rng.integers(len(setting.trees), size=self.tests // len(setting.targets))]
            of = np.repeat(parents, setting.batch, axis=0)
            batches = draw(rng, of, len(of), setting.rho, kept=self.kept)
            told = named(rng, batches, setting.batch, target, in_context=self.in_context)
            found.append(told == parents[:, target])
        return np.concatenate(found)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampledMeans:
    """Both statistics of drawn sequences of each tree: one `Means` for each."""

    kept: float = 0.5  # the probability that a kernel keeps signs
    count: int = 10**6  # sequences of each tree
    draw: Callable[..., Sequences] = draw

    def __call__(self, lab: Lab, seed: int) -> list[Means]:
        """Draw."""
        setting, rng = lab.setting, np.random.default_rng(seed)
        drawn = (self.draw(rng, tree, self.count, setting.rho, kept=self.kept) for tree in setting.trees)
        return [means(*counted(sequences)) for sequences in drawn]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LargestDeviation:
    """The largest deviation of a statistic from its formula, over all pairs of positions of all trees."""

    in_context: bool
    sample: Callable[[Lab, int], list[Means]] = SampledMeans()

    def __call__(self, lab: Lab, seed: int) -> float:
        """Draw and compare."""
        rho, apart = lab.setting.rho, distances(lab.setting.trees)
        found = np.stack([part.context if self.in_context else part.pooled for part in self.sample(lab, seed)])
        odd = apart % 2 == 1
        formula = np.where(odd, rho ** (apart + 1), 0.0) if self.in_context else np.where(odd, 0.0, rho**apart)
        return float(np.abs(found - formula)[:, ~np.eye(found.shape[1], dtype=bool)].max())


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowMaxima:
    """Which rows of the statistic in context are largest at the parent: bool (trees times positions,)."""

    sample: Callable[[Lab, int], list[Means]] = SampledMeans(count=10**5)

    def __call__(self, lab: Lab, seed: int) -> np.ndarray:
        """Draw and compare."""
        setting = lab.setting
        pairs = zip(self.sample(lab, seed), setting.trees, strict=True)
        return np.array([part.context[i, :i].argmax() == tree[i] for part, tree in pairs for i in setting.targets])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Forests:
    """Mean over trees of a number that the maximum spanning forest of a statistic and the tree's own edges give."""

    number: Callable[[set[tuple[int, int]], set[tuple[int, int]]], float]  # of the forest and the tree, (child, parent)
    in_context: bool
    kept: float = 0.5  # the probability that a kernel keeps signs

    def __call__(self, lab: Lab, seed: int) -> float:
        """List all sequences of each tree."""
        found = []
        for tree in lab.setting.trees:
            whole = means(*listed(tree, lab.setting.rho, kept=self.kept))
            forest = spanning_forest(whole.context**2 if self.in_context else whole.pooled)
            found.append(self.number(set(forest), set(enumerate(tree[1:].tolist(), 1))))
        return float(np.mean(found))


def without_answers(rng: np.random.Generator, *args: Any, **options: Any) -> Sequences:
    """Draw sequences whose answers have nothing to do with their kernels."""
    sequences = draw(rng, *args, **options)
    return sequences._replace(answer=rng.permutation(sequences.answer))


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearntTrees:
    """Of which trees the attention model finds every parent: bool (trees,)."""

    steps: int = 0  # of gradient descent; without any, each row of the first gradient must be largest at the parent
    least: float = 0.9  # after these, the attention that each parent must get
    count: int = 10**5  # sequences of each tree
    draw: Callable[..., Sequences] = draw

    def __call__(self, lab: Lab, seed: int) -> np.ndarray:
        """Draw and descend."""
        setting, rng, found = lab.setting, np.random.default_rng(seed), []
        for tree in setting.trees:
            data = counted(self.draw(rng, tree, self.count, setting.rho))
            if self.steps:
                attention = trained(*data, self.steps, 0)[-1][0].attention
                found.append(all(attention[i, tree[i]] >= self.least for i in setting.targets))
            else:
                rows = gradient(start(setting.nodes), *data).scores
                found.append(all(rows[i, :i].argmax() == tree[i] for i in setting.targets))
        return np.array(found)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adaptive:
    """What choosing tests by what was named earns beyond the best plan that is fixed in advance."""

    plan: tuple[int, ...] | None = None  # how often each test is made; None for the best plan of the setting
    episodes: int = 2**16
    tries: int = 2**14  # tests from which the plan learns the law of answers, for each tree and position

    def predicted(self, oracle: Any) -> float:
        """Return J* less the value of the best fixed plan."""
        return float(oracle.optimal_value - oracle.best_plan[1])

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Play the optimal policy, and the plan in sequences that are drawn."""
        played = lab.simulate(lab.oracle.optimal_policy, self.episodes, seed).rewards
        plan = lab.oracle.best_plan[0] if self.plan is None else np.array(self.plan)
        return mean_interval(np.asarray(played) - self.planned(lab.setting, plan, seed))

    def planned(self, setting: Any, plan: np.ndarray, seed: int) -> np.ndarray:
        """Return what a plan, int (2 targets,), earns in each episode, float64 (episodes,)."""
        rng = np.random.default_rng(seed_of(seed, 1))
        trees, size = setting.trees, setting.batch

        def asked(of: np.ndarray, test: int) -> np.ndarray:
            """Return what a test names in each of some trees, int (n,)."""
            kind, number = divmod(test, len(setting.targets))
            of = np.repeat(trees[of], size, axis=0)
            drawn = draw(rng, of, len(of), setting.rho)
            return named(rng, drawn, size, setting.targets[number], in_context=kind == 0)

        hidden = rng.choice(len(trees), p=setting.prior, size=self.episodes)
        likely, every = np.log(setting.prior)[None], np.repeat(np.arange(len(trees)), self.tries)
        for test in np.flatnonzero(plan).tolist():
            candidates = len(setting.columns[test])
            # One more of each, so that what was never named is not impossible.
            seen = np.bincount(every * candidates + asked(every, test), minlength=len(trees) * candidates) + 1
            law = np.log(seen.reshape(len(trees), candidates) / (self.tries + candidates))
            for _ in range(plan[test]):
                likely = likely + law.T[asked(hidden, test)]
        prices = np.repeat([setting.price, setting.pooled_price], len(setting.targets))
        return (likely.argmax(axis=1) == hidden) - plan @ prices
