"""Experiments on mixture recall: attention over tagged sources, readings drawn from it, and a key-query matrix learnt.

Nothing here uses the tables of the setting: sources, signs and readings are drawn one by one.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from theorybench.envs.context.mixture_recall.mixture import SOURCES
from theorybench.envs.context.mixture_recall.setting import MixtureRecall
from theorybench.envs.core.evidence.experiments import Sampled
from theorybench.envs.core.evidence.interval import Interval, share_interval
from theorybench.envs.core.evidence.lab import Lab

#: Values 0..3 stand for -3, -1, 1, 3: whether each is positive, and whether it is large.
POSITIVE, LARGE = np.array([False, False, True, True]), np.array([True, False, False, True])
#: Dimensions of tags.
DIMENSIONS = 8

#: Draws tags of contexts: (generator, contexts, sources) to float64 (contexts, sources, DIMENSIONS).
Tags = Callable[[np.random.Generator, int, int], np.ndarray]


def orthonormal(rng: np.random.Generator, contexts: int, sources: int) -> np.ndarray:
    """Draw orthonormal tags for each context."""
    drawn = rng.standard_normal((contexts, DIMENSIONS, sources))
    return np.asarray(np.linalg.qr(drawn).Q.swapaxes(1, 2))


def signs(rng: np.random.Generator, contexts: int, sources: int, plus: np.ndarray) -> np.ndarray:
    """Draw signs of both modes, +1 or -1: float64 (contexts, sources, 2); source 0 is fair, the others lean."""
    chance = np.broadcast_to(plus, (sources, 2)).copy()
    chance[0] = 0.5
    return np.where(rng.random((contexts, sources, 2)) < chance, 1.0, -1.0)


def laws(setting: MixtureRecall, sign: np.ndarray) -> np.ndarray:
    """Return the law of a value of each source: float64 (..., 4), for signs (..., 2)."""
    first, second = setting.amplitude, setting.amplitude * np.exp(-setting.decay)
    mean, spread = first * sign[..., :1], second * sign[..., 1:]
    return np.asarray((1 + mean * np.where(POSITIVE, 1, -1) + spread * np.where(LARGE, 1, -1)) / 4)


def attention(scores: np.ndarray) -> np.ndarray:
    """Return softmax weights, float64 (..., sources)."""
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def read(
    setting: MixtureRecall, rng: np.random.Generator, sources: int, sharpness: int, readings: int, contexts: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw contexts and readings of them: a source by attention for each reading, then its value.

    Returns:
        Whether the queried source is spread, bool (contexts,), and how often each value was read, int64 (contexts, 4).
    """
    tags, sign = orthonormal(rng, contexts, sources), signs(rng, contexts, sources, setting.plus)
    scores = setting.step * sharpness * np.einsum("csd,cd->cs", tags, tags[:, 0])
    own = rng.multinomial(readings, attention(scores))
    return sign[:, 0, 1] > 0, rng.multinomial(own, laws(setting, sign)).sum(axis=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecallError(Sampled):
    """The squared error of the coefficient that attention recalls, of contexts whose signs are all fair."""

    sources: int  # I
    sharpness: int  # g
    contexts: int = 40_000  # drawn
    tags: Tags = orthonormal  # draws tags

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Attend, and compare the mean of coefficients with the queried one: float64 (contexts,)."""
        setting, rng = lab.setting, np.random.default_rng([seed, self.sources, 260201863])
        tags = self.tags(rng, self.contexts, self.sources)
        sign = signs(rng, self.contexts, self.sources, np.full(2, 0.5))[:, :, 1]
        weight = attention(setting.step * self.sharpness * np.einsum("csd,cd->cs", tags, tags[:, 0]))
        size = setting.amplitude * np.exp(-setting.decay)
        return np.asarray(np.square(size * ((weight * sign).sum(axis=1) - sign[:, 0])))


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnedRecall(Sampled):
    """A key-query matrix is learnt by gradient descent; its leak, of that of a softmax whose beta is its own."""

    sources: int = 4  # I
    batch: int = 256  # contexts of a step
    rate: float = 20.0  # of gradient descent
    steps: int = 400  # of gradient descent
    runs: int = 4  # from other seeds
    ratio: bool = True  # whether the leak is divided by its formula
    tags: Tags = orthonormal  # draws tags

    def run(self, setting: MixtureRecall, rng: np.random.Generator) -> tuple[np.ndarray, list[float], list[float]]:
        """Learn from zero; return the matrix, and leak and beta (match less mismatch) at each step."""
        matrix, leaks, betas = np.zeros((DIMENSIONS, DIMENSIONS)), list[float](), list[float]()
        names, order = self.tags(rng, 1, self.sources)[0], np.tile(np.arange(self.sources), (self.batch, 1))
        size = setting.amplitude * np.exp(-setting.decay * np.arange(2))
        for step in range(self.steps + 1):
            tags = names[rng.permuted(order, axis=1)]
            coefficient = size * signs(rng, self.batch, self.sources, np.full(2, 0.5))
            scores = np.einsum("ce,cse->cs", tags[:, 0] @ matrix, tags)
            weight = attention(scores)
            leaks.append(float(1 - weight[:, 0].mean()))
            betas.append(float(scores[:, 0].mean() - scores[:, 1:].mean()))
            if step == self.steps:
                break
            off = np.einsum("cs,csj->cj", weight, coefficient) - coefficient[:, 0]  # what is recalled, less the truth
            slope = 2 * np.einsum("cj,csj->cs", off, coefficient)
            back = weight * (slope - (weight * slope).sum(axis=1, keepdims=True))
            matrix = matrix - self.rate / self.batch * tags[:, 0].T @ np.einsum("cs,cse->ce", back, tags)
        return matrix, leaks, betas

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Learn; return the ratio, or the leak, of each run at the end: float64 (runs,)."""
        found = []
        for run in range(self.runs):
            _, leaks, betas = self.run(lab.setting, np.random.default_rng([seed, run, 260201863]))
            told = (self.sources - 1) / (np.exp(betas[-1]) + self.sources - 1)
            found.append(leaks[-1] / told if self.ratio else leaks[-1])
        return np.array(found)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ManyReadings(Sampled):
    """The share of right answers after many readings, by the best guess from their spread."""

    sources: int  # I
    sharpness: int  # g
    readings: int = 2_000  # of a context
    contexts: int = 16_000  # drawn

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Read, learn the best guess for each number of large values from half of the contexts, and guess the rest.

        Returns:
            Whether a guess is right, bool (contexts / 2,).
        """
        rng = np.random.default_rng([seed, self.sources, self.sharpness])
        spread, counts = read(lab.setting, rng, self.sources, self.sharpness, self.readings, self.contexts)
        seen = counts @ LARGE
        return learnt_guess(np.round(seen / self.readings * 100).astype(np.int64), spread)

    def summary(self, found: np.ndarray) -> Interval:
        """Return the share."""
        return share_interval(found)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SeenThrough(Sampled):
    """The share of right answers of one who sees only a feature of each value that is read."""

    feature: np.ndarray  # bool (4,), what is seen of each value
    readings: int = 7  # of a context
    contexts: int = 40_000  # drawn

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Read two sources at the largest sharpness and learn the best guess: bool (contexts / 2,)."""
        rng = np.random.default_rng([seed, 4, 260201863])
        spread, counts = read(lab.setting, rng, 2, lab.setting.levels, self.readings, self.contexts)
        return learnt_guess(counts @ self.feature, spread)

    def summary(self, found: np.ndarray) -> Interval:
        """Return the share."""
        return share_interval(found)


def learnt_guess(seen: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Guess by the majority of the first half of the cases that look alike; return which guesses of the rest are right.

    Args:
        seen: int (n,), how each case looks, 0 or more.
        truth: bool (n,).
    """
    half = len(seen) // 2
    balance = np.bincount(seen[:half], np.where(truth[:half], 1, -1), seen.max() + 1)
    return np.asarray((balance[seen[half:]] >= 0) == truth[half:])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Played(Sampled):
    """What an agent that learns nothing earns in play, or how often it takes an action in an episode."""

    agent: str  # its name
    sources: int | None = None  # I; None for all
    action: int | None = None  # that is counted; None for rewards
    episodes: int = 60_000  # played

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Play: float64 (episodes,)."""
        (policy,) = lab.train(self.agent, [seed], 1)
        prompts = np.arange(self.episodes) % (2 * len(SOURCES))
        if self.sources is not None:
            prompts = 2 * SOURCES.index(self.sources) + prompts % 2
        played = lab.simulate(policy, self.episodes, seed, prompts=prompts)
        if self.action is None:
            return np.asarray(played.rewards)
        return ((played.actions == self.action) & played.taken).sum(axis=1).astype(np.float64)
