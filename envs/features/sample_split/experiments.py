"""Experiments on features and heads: labels are sampled, features learnt from them, and heads fitted.

Nothing here is shared with the formulas that these are compared with.

A quadratic feature is a symmetric matrix A (d, d) of Frobenius norm 1: p = <A, (x x^T - I)/sqrt 2> is A . H, with the
Hermite features H in place of the matrix, for either has the same inner products.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from theorybench.envs.core.evidence.experiments import Predicted, Sampled
from theorybench.envs.core.evidence.interval import Interval, mean_interval, slope_interval
from theorybench.envs.core.evidence.lab import Lab, seed_of
from theorybench.envs.core.numerics import standard_error

#: The upper quartile of a standard normal variable.
QUARTILE = 0.6744897501960817


class Task(NamedTuple):
    """How often a task's labels are of each feature: `features` numbers each; else they are fair coins."""

    alpha: tuple[float, ...]  # of its sign
    beta: tuple[float, ...]  # of the sign of its square less that of the quartile


#: A source whose labels are signs of its feature, and one that teaches it nothing by the gradient.
ODD, EVEN = Task((1.0,), (0.0,)), Task((0.0,), (0.75,))
#: A downstream task of two features.
DOWNSTREAM = Task((0.25, 0.25), (0.2, 0.2))


def hermite(inputs: np.ndarray) -> np.ndarray:
    """Return the normalised Hermite features of second degree of inputs (n, d): float64 (n, d (d + 1)/2)."""
    first, second = np.triu_indices(inputs.shape[1])
    products = inputs[:, first] * inputs[:, second]
    return np.where(first == second, (products - 1) / np.sqrt(2), products)


def labels(rng: np.random.Generator, features: np.ndarray, task: Task) -> np.ndarray:
    """Draw the labels of a task, +-1: float64 (n,), for the values of features, (n, features)."""
    chance, n = np.cumsum([*task.alpha, *task.beta]), len(features)
    coins = rng.choice([-1.0, 1.0], size=(n, 1))
    options = np.concatenate([np.sign(features), np.sign(features**2 - QUARTILE**2), coins], axis=1)
    return np.asarray(options[np.arange(n), np.searchsorted(chance, rng.random(n), side="right")])


def directions(
    rng: np.random.Generator, hidden: np.ndarray, task: Task, n: int, *, hessian: bool, normalised: bool
) -> list[np.ndarray]:
    """Learn from samples of one task: the gradient, and the eigenvectors outside of the bulk of the Hessian.

    The Hessian is the mean of labels times products of Hermite features, which are brought to one length, sqrt D:
    else a few long ones make outliers of their own. The bulk ends where that of shuffled labels does.

    Args:
        rng: draws.
        hidden: the features, orthonormal rows (features, D).
        task: the task.
        n: samples.
        hessian: whether to take it.
        normalised: whether Hermite features are brought to one length.
    """
    D = hidden.shape[1]
    seen = hermite(rng.standard_normal((n, round(np.sqrt(2 * D + 0.25) - 0.5))))
    own = labels(rng, seen @ hidden.T, task)
    found = [own @ seen / n]
    if hessian:
        if normalised:
            seen *= np.sqrt(D) / np.linalg.norm(seen, axis=1, keepdims=True)
        values, vectors = np.linalg.eigh((seen * own[:, None]).T @ seen / n)
        ends = np.linalg.eigvalsh((seen * rng.permutation(own)[:, None]).T @ seen / n)[-1]
        outside = [k for k in range(1, len(hidden) + 1) if values[-k] > ends]
        found += [vectors[:, -k] for k in outside]
    return found


def recover(
    d: int, tasks: Sequence[Task], samples: Sequence[int], seed: int, *, hessian: bool = True, normalised: bool = True
) -> np.ndarray:
    """Learn from several tasks; return how much of each feature lies in the span of all that was learnt: (features,).

    Args:
        d: of inputs.
        tasks: the sources.
        samples: of each.
        seed: of all draws; features are drawn, too.
        hessian: whether it is used beside the gradient.
        normalised: whether Hermite features are brought to one length for it.
    """
    rng, features = np.random.default_rng(seed), len(tasks[0].alpha)
    hidden = np.linalg.qr(rng.standard_normal((d * (d + 1) // 2, features)))[0].T
    columns = [
        column
        for task, n in zip(tasks, samples, strict=True)
        if n
        for column in directions(rng, hidden, task, n, hessian=hessian, normalised=normalised)
    ]
    span = np.linalg.qr(np.array(columns).T)[0]
    return np.asarray(((hidden @ span) ** 2).sum(axis=1))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recovered(Sampled):
    """Share of a feature that is recovered from some samples of tasks, in mode "multiple"."""

    tasks: tuple[Task, ...]  # the sources
    samples: tuple[float, ...]  # of each, in units of D
    feature: int | None = 0  # which one; None for the mean of all
    d: int = 24  # of inputs
    runs: int = 32  # repetitions
    hessian: bool = True  # whether it is used beside the gradient
    normalised: bool = True  # whether Hermite features are brought to one length for it

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Learn: float64 (runs,)."""
        samples = [round(n * self.d * (self.d + 1) / 2) for n in self.samples]
        kinds = {"hessian": self.hessian, "normalised": self.normalised}
        seeds = (seed_of(seed, 1, run) for run in range(self.runs))
        found = np.array([recover(self.d, self.tasks, samples, own, **kinds) for own in seeds])
        return np.asarray(found.mean(axis=1) if self.feature is None else found[:, self.feature])


def quadratics(rng: np.random.Generator, d: int, count: int) -> np.ndarray:
    """Draw orthonormal quadratic features: float64 (count, d, d)."""
    drawn = rng.standard_normal((count, d, d))
    flat = (drawn + drawn.swapaxes(1, 2)).reshape(count, -1)
    return np.linalg.qr(flat.T)[0].T.reshape(count, d, d)


def evaluated(features: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """Return the values of quadratic features (count, d, d) at inputs (n, d): float64 (n, count)."""
    squares = ((inputs @ features) * inputs).sum(axis=2).T
    return np.asarray((squares - np.trace(features, axis1=1, axis2=2)) / np.sqrt(2))


def gradients(d: int, task: Task, samples: Sequence[int], seed: int) -> np.ndarray:
    """Return the squared cosine of the gradient and a task's only feature after each number of samples, rising.

    The gradient is the mean of label times (x x^T - I)/sqrt 2.
    """
    rng, total, found = np.random.default_rng(seed), np.zeros((d, d)), []
    (feature,) = quadratics(rng, d, 1)
    for count in np.diff([0, *samples]).tolist():
        inputs = rng.standard_normal((count, d))
        own = labels(rng, evaluated(feature[None], inputs), task)
        total += (inputs * own[:, None]).T @ inputs - own.sum() * np.eye(d)
        found.append((feature * total).sum() ** 2 / (total**2).sum())
    return np.array(found)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exponent(Predicted):
    """Exponent of d in the samples from which half of a feature is recovered by the gradient."""

    task: Task = ODD
    dimensions: tuple[int, ...] = (12, 24, 48, 96)  # d
    runs: int = 24  # of each d
    points: int = 40  # numbers of samples that are tried, from D/4 to 16 D
    known: bool = False  # whether the feature depends on sqrt d inputs alone, and one knows which

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Learn; return the slope of the mean logarithm of these samples in that of d."""
        logs = np.array(
            [
                [self._half(d, seed_of(seed, 2, number, run)) for run in range(self.runs)]
                for number, d in enumerate(self.dimensions)
            ]
        )
        errors = [standard_error(row) for row in logs]
        return slope_interval(np.log(self.dimensions), logs.mean(axis=1).tolist(), errors, self.runs - 1)

    def _half(self, d: int, seed: int) -> float:
        """Return the logarithm of the number of samples at which the squared cosine passes 1/2."""
        inputs = round(math.sqrt(d)) if self.known else d
        D = inputs * (inputs + 1) / 2
        samples = np.unique(np.geomspace(D / 4, 16 * D, self.points).astype(int))
        found = gradients(inputs, self.task, samples.tolist(), seed)
        return float(np.interp(0.5, np.maximum.accumulate(found), np.log(samples)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chance(Sampled):
    """Squared cosine of a task's gradient and its feature, over that of a random direction, 1/D."""

    task: Task = EVEN
    samples: tuple[float, ...] = (2.0, 4.0, 8.0, 16.0)  # in units of D
    d: int = 24  # of inputs
    runs: int = 800  # repetitions

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Learn; return the mean over numbers of samples, for each run: float64 (runs,)."""
        D = self.d * (self.d + 1) // 2
        samples = [round(n * D) for n in self.samples]
        runs = [gradients(self.d, self.task, samples, seed_of(seed, 3, run)) for run in range(self.runs)]
        return D * np.array(runs).mean(axis=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Head(Sampled):
    """What heads explain that are fitted to features of which rho^2 is known, as a share of `whole`.

    A learnt feature is rho p + sqrt(1 - rho^2) p' with p' another feature that labels do not depend on.
    """

    task: Task = DOWNSTREAM
    recovery: float = 0.8  # rho^2 of each feature
    samples: int = 200  # labels that a head is fitted to
    whole: float = 1.0  # what is explained with rho = 1
    squares: bool = True  # whether heads have squares of features; else they have as many other features
    d: int = 0  # of inputs; 0 for features that are independent normal variables, the limit of large d
    runs: int = 60  # sets of features
    heads: int = 200  # fits for each
    tested: int = 10_000  # inputs that they are tested on

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Fit; return the mean over heads for each set of features: float64 (runs,)."""
        return np.array([self._fitted(np.random.default_rng(seed_of(seed, 4, run))) for run in range(self.runs)])

    def _fitted(self, rng: np.random.Generator) -> float:
        count, kept = len(self.task.alpha), math.sqrt(self.recovery)
        features = quadratics(rng, self.d, 3 * count) if self.d else None

        def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
            """Return regressors (n, 2 features + 1) and labels (n,)."""
            if features is None:
                values = rng.standard_normal((n, 3 * count))
            else:
                values = evaluated(features, rng.standard_normal((n, self.d)))
            true, other, spare = np.split(values, 3, axis=1)
            learnt = kept * true + math.sqrt(1 - self.recovery) * other
            more = learnt**2 - 1 if self.squares else spare
            return np.concatenate([np.ones((n, 1)), learnt, more], axis=1), labels(rng, true, self.task)

        tested, targets = draw(self.tested)
        shown, own = draw(self.heads * self.samples)
        shown, own = shown.reshape(self.heads, self.samples, -1), own.reshape(self.heads, self.samples, 1)
        turned = shown.swapaxes(1, 2)
        weights = np.linalg.solve(turned @ shown, turned @ own)[:, :, 0]
        # Squared errors on all that is tested, from its moments.
        moment, cross = tested.T @ tested / len(tested), targets @ tested / len(tested)
        errors = 1 - 2 * weights @ cross + ((weights @ moment) * weights).sum(axis=1)
        return float((1 - errors / targets.var()).mean() / self.whole)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitMoves:
    """How many more chunks the optimum spends on sources with the fewest downstream tasks than with the most."""

    rounds: int = 200  # episodes of each prompt

    def predicted(self, oracle: Any) -> float:
        """Return the difference of the exact expectations of the first and the last context."""
        told, last = oracle.evaluate(oracle.optimal_policy), len(oracle.setting.downstream) - 1
        return float(told["context_0/chunks"] - told[f"context_{last}/chunks"])

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Play; return the difference of means, for pairs of episodes with the same hidden sources."""
        setting, means = lab.setting, []
        for number, context in enumerate((0, len(setting.downstream) - 1)):
            prompts = np.tile(context * setting.types + np.arange(setting.types), self.rounds)
            played = lab.simulate(lab.oracle.optimal_policy, len(prompts), seed_of(seed, 5, number), prompts=prompts)
            spent = (played.actions > 0).sum(axis=1)  # padding is 0, as STOP
            means.append(spent[np.argsort(played.prompts, kind="stable")])
        return mean_interval((means[0] - means[1]).astype(float))
