"""Experiments on memories of hidden order: attention that is built, attention that learns, kernels that are drawn."""

import dataclasses
import itertools
import math
from collections.abc import Callable

import numpy as np

from theorybench.envs.context.memory_order.attention import attended, counted, draw_chains, gap, spelt
from theorybench.envs.context.memory_order.coding import all_strings, mixture_chance
from theorybench.envs.context.memory_order.learning import Learning, Learnt, learn
from theorybench.envs.core.evidence.experiments import Sampled
from theorybench.envs.core.evidence.lab import Lab, run_seeds

#: Each kernel that is drawn for attention is uniform, as in the paper: Dirichlet(1, 1).
UNIFORM = 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Texts:
    """Texts of order k on which attention is compared with counting."""

    length: int = 200  # bits of a text
    chains: int = 50  # texts
    base: float = 3.0  # of the first layer's weights

    def errors(self, k: int, sharpness: float, seed: int) -> np.ndarray:
        """Return |attention - counting| on each text whose last k bits have occurred before: float64 (<= chains,)."""
        text = draw_chains(np.random.default_rng([seed, k, 250807208]), k, self.length, self.chains, UNIFORM)
        hits, seen = counted(text, k)
        text, share = text[seen > 0], hits[seen > 0] / seen[seen > 0]
        return np.abs(attended(text, spelt(text, k, self.base), k, sharpness) - share)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Construction(Texts):
    """The largest error of the construction."""

    orders: tuple[int, ...] = (1, 2, 3)
    sharpness: float | None = None  # a_2; None for 2 ln T / gap

    def __call__(self, lab: Lab, seed: int) -> float:
        """Build the attention for each order."""
        enough = {k: self.sharpness or 2 * math.log(self.length) / gap(k) for k in self.orders}
        return max(float(self.errors(k, sharpness, seed).max()) for k, sharpness in enough.items())


def built_gap(k: int, base: float = 3.0) -> float:
    """Return the smallest 1 - cos between what the first layer holds of two different contexts of k bits."""
    contexts = np.array(list(itertools.product((0, 1), repeat=k)))
    held = spelt(contexts, k, base)[:, k]
    products = held @ held.T
    return float(1 - products[~np.eye(len(held), dtype=bool)].max())


@dataclasses.dataclass(frozen=True, kw_only=True)
class NeededSharpness(Texts, Sampled):
    """How the sharpness at which the mean error is small grows with 1 / gap: the slope on logarithmic scales."""

    orders: tuple[int, ...] = (1, 2, 3, 4)
    error: float = 0.005  # the mean error that is allowed
    runs: int = 6

    def needed(self, k: int, seed: int) -> float:
        """Return the smallest sufficient sharpness for contexts of k bits, by bisection of its logarithm."""
        low, high = math.log(0.1), math.log(100 / gap(k))
        for _ in range(20):
            middle = (low + high) / 2
            enough = self.errors(k, math.exp(middle), seed).mean() <= self.error
            low, high = (low, middle) if enough else (middle, high)
        return math.exp(high)

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Return the slope of each run."""
        wide = [math.log(1 / gap(k)) for k in self.orders]
        return np.array(
            [
                np.polyfit(wide, [math.log(self.needed(k, run)) for k in self.orders], 1)[0]
                for run in run_seeds(seed, self.runs)
            ]
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Redundancy:
    """What not knowing the kernel costs on chains that are drawn, in bits per symbol."""

    order: int
    added: float | None = None  # what the predictor adds to each count; None for a
    chains: int = 2**16

    def __call__(self, lab: Lab, seed: int) -> np.ndarray:
        """Predict with the kernel, and with counts from the start: float64 (chains,)."""
        setting, rng, m = lab.setting, np.random.default_rng([seed, self.order, 7208]), self.order
        added = setting.concentration if self.added is None else self.added
        every = np.arange(self.chains)
        kernel = rng.beta(setting.concentration, setting.concentration, (self.chains, 2**m))
        context, counts = rng.integers(2**m, size=self.chains), np.full((self.chains, 2**m, 2), added)
        lost = np.zeros(self.chains)
        for _ in range(m, setting.T):
            one = kernel[every, context]
            bit = (rng.random(self.chains) < one).astype(np.int64)
            own = counts[every, context]
            lost += np.log2(np.where(bit == 1, one, 1 - one)) - np.log2(own[every, bit] / own.sum(axis=1))
            counts[every, context, bit] += 1
            context = (2 * context + bit) % 2**m
        return lost / setting.T


def recalled(bits: np.ndarray, since: np.ndarray, orders: np.ndarray, concentration: float) -> np.ndarray:
    """Predict from the pairs that open memories hold, place by place.

    Args:
        bits: int (n, t), what was read.
        since: int (n, K), 0 for a memory that is closed before the action, else 1 + the step at which it was opened.
        orders: int (n,), the action.
        concentration: a.

    Returns:
        P(next bit is 1), float64 (n,).
    """
    t = bits.shape[1]
    told = (bits.sum(axis=1) + concentration) / (t + 2 * concentration)
    for j in range(1, min(t, since.shape[1]) + 1):
        opened = np.where(since[:, j - 1] > 0, since[:, j - 1] - 1, t)
        ones = met = np.zeros(len(bits))
        for place in range(j, t):
            same = (bits[:, place - j : place] == bits[:, t - j :]).all(axis=1) & (place >= opened)
            ones, met = ones + same * bits[:, place], met + same
        told = np.where((orders >= j) & (met > 0), (ones + concentration) / (met + 2 * concentration), told)
    return np.asarray(told)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Divergence:
    """The divergence of the mixture from the predictions of the best policy, in bits per symbol, summed over a text."""

    episodes: int = 2**14

    def __call__(self, lab: Lab, seed: int) -> np.ndarray:
        """Play, and predict every bit again from what the boards show: float64 (episodes,)."""
        setting = lab.setting
        played = lab.simulate(lab.oracle.optimal_policy, self.episodes, seed)
        boards = played.observations.astype(np.int64) - setting.num_actions - 1
        lengths = range(setting.T + 1)
        chance = [mixture_chance(all_strings(t), setting.weights, setting.concentration) for t in lengths]
        found = np.zeros(self.episodes)
        for t in range(setting.T):
            bits, since = boards[:, t, :t] - 1, boards[:, t, setting.T :]
            one = recalled(bits, since, played.actions[:, t], setting.concentration)
            spelled = bits @ 2 ** np.arange(t)[::-1]
            for bit, told in ((0, 1 - one), (1, one)):
                true = chance[t + 1][2 * spelled + bit] / chance[t][spelled]
                found += true * np.log2(true / told)
        return found / setting.T


@dataclasses.dataclass(frozen=True, kw_only=True)
class Learned(Sampled):
    """Something of what runs of two-stage gradient descent end with."""

    value: Callable[[Learnt], float]
    learning: Learning = dataclasses.field(default_factory=Learning)
    runs: int = 4

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Learn; return the value of each run."""
        return np.array([self.value(learn(self.learning, run)) for run in run_seeds(seed, self.runs)])
