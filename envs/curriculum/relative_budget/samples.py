"""Statements on relative budgets that samples of the base model measure: sample sizes, tilts, the best small step."""

import dataclasses
import math

import numpy as np

from theorybench.envs.core.evidence.interval import Interval, mean_interval, point
from theorybench.envs.core.evidence.lab import Lab
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.curriculum.relative_budget.law import TokenLaw
from theorybench.envs.curriculum.relative_budget.oracle import KAPPA
from theorybench.envs.curriculum.relative_budget.setting import RelativeBudget

#: Episodes that are held at a time.
TOGETHER = 4096


def base_law(setting: RelativeBudget, xi: float) -> TokenLaw:
    """Give the law of T under the base model at another relative budget."""
    return TokenLaw.negative_binomial(setting.K, setting.p, dataclasses.replace(setting, xi=xi).horizon)


def base_rewards(lab: Lab, blocks: int, parts: int, seed: int) -> np.ndarray:
    """Simulate the base model: rewards, float64 (blocks, parts * TOGETHER)."""
    policy, first = lab.oracle.reference_policy, seed * blocks * parts
    drawn = [lab.simulate(policy, TOGETHER, first + part).rewards for part in range(blocks * parts)]
    return np.reshape(drawn, (blocks, -1))


def sample_sizes(rewards: np.ndarray) -> np.ndarray:
    """Return the theorem's n by the moments and the tail of samples: rewards (blocks, m) -> float64 (blocks,).

    It is infinite where no reward reaches the tail.
    """
    width = math.sqrt(KAPPA) * rewards.std(axis=1)
    density = width * (rewards >= (rewards.mean(axis=1) + width)[:, None]).mean(axis=1)
    return np.where(density > 0, 1 / np.maximum(density, np.finfo(np.float64).tiny), np.inf)


def vertex(xi: tuple[float, ...], logs: np.ndarray) -> np.ndarray:
    """Return where parabolas in ln xi turn that are fitted to rows of logarithms, (n, len(xi)) -> (n,)."""
    square, line, _ = np.polyfit(np.log(xi), np.transpose(logs), 2)
    return np.asarray(np.exp(-line / (2 * square)))


@dataclasses.dataclass(frozen=True)
class SizeRatio:
    """How many times as many samples the theorem asks for at one relative budget as at another.

    Attributes:
        there: a relative budget.
        here: the other.
        parts: samples of a block at each, in thousands of four.
        blocks: independent estimates.
    """

    there: float
    here: float
    parts: tuple[int, int] = (1, 1)
    blocks: int = 8

    def predicted(self, oracle: Oracle[RelativeBudget]) -> float:
        """n(there) / n(here)."""
        there, here = (base_law(oracle.setting, xi).sample_size(KAPPA) for xi in (self.there, self.here))
        return there / here

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Count rewards of the base model; the interval is that of the logarithm."""
        budgets = enumerate(zip((self.there, self.here), self.parts, strict=True))
        sizes = [
            sample_sizes(base_rewards(lab.at(xi=xi), self.blocks, part, 2 * seed + i)) for i, (xi, part) in budgets
        ]
        if not np.isfinite(sizes).all():
            return point(math.inf)
        value, low, high = np.exp(mean_interval(np.log(sizes[0] / sizes[1])))
        return Interval(value, low, high)


@dataclasses.dataclass(frozen=True)
class LeastSize:
    """Relative budget at which n is least: where a parabola through ln n over ln xi turns.

    Attributes:
        budgets: places.
        parts: samples of a block at each place, in thousands of four.
        blocks: independent estimates.
    """

    budgets: tuple[float, ...] = (0.8, 1.1, 1.5, 2.0, 2.8)
    parts: int = 1
    blocks: int = 10

    def predicted(self, oracle: Oracle[RelativeBudget]) -> float:
        """The same of exact sample sizes."""
        sizes = [base_law(oracle.setting, xi).sample_size(KAPPA) for xi in self.budgets]
        return float(vertex(self.budgets, np.log(sizes)[None])[0])

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Count rewards of the base model."""
        sizes = [sample_sizes(base_rewards(lab.at(xi=xi), self.blocks, self.parts, seed)) for xi in self.budgets]
        if not np.isfinite(sizes).all():
            return point(math.inf)
        return mean_interval(vertex(self.budgets, np.log(sizes).T))


@dataclasses.dataclass(frozen=True)
class Tilted:
    """What weights exp(-i eta T), eta = 1/(2H), make of the base model's solutions: i tilts.

    Attributes:
        tilts: i.
        stationary: whether to compare early with late tokens; else the relative budget before and after.
        ample: the horizon in units of the setting's, so that no solution is cut off.
        parts: simulations of 4,096 episodes, each an estimate.
    """

    tilts: int = 4
    stationary: bool = False
    ample: float = 5.0
    parts: int = 24

    def predicted(self, oracle: Oracle[RelativeBudget]) -> float:
        """Gain of xi for each tilt, in units of 1/(2K): below 1 - p. Stationary: 0."""
        setting = oracle.setting
        if self.stationary:
            return 0.0
        gained = setting.horizon * (1 - setting.p) * -math.expm1(-self.tilts / (2 * setting.horizon)) / setting.K
        return 2 * setting.K * gained / self.tilts

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Weigh solutions of the base model."""
        setting = lab.setting
        ample, values = lab.at(xi=self.ample * setting.xi), np.empty(self.parts)
        for part in range(self.parts):
            played = ample.simulate(ample.oracle.reference_policy, TOGETHER, seed * self.parts + part)
            weights = np.exp(-self.tilts * played.lengths / (2 * setting.horizon))
            if self.stationary:
                taken = played.taken
                progress, used = ample.setting.read(played.observations.reshape(-1, 2))
                right = (played.actions.ravel() == setting.tables.right[progress]) & taken.ravel()
                each = np.repeat(weights, taken.shape[1]) * taken.ravel()
                late = used >= setting.horizon // 2
                shares = [each[where & right].sum() / each[where].sum() for where in (~late, late)]
                values[part] = shares[1] / shares[0] - 1
            else:
                after = weights.sum() / (weights @ played.lengths)
                gained = setting.horizon * (after - 1 / played.lengths.mean())
                values[part] = 2 * setting.K * gained / self.tilts
        return mean_interval(values)


@dataclasses.dataclass(frozen=True)
class BestStep:
    """Gain of the best small step at a fixed KL divergence: its size at one relative budget, or where it is greatest.

    The step is the optimum under a KL penalty. Its gain is E[(w - 1) R] over responses of the base model, w being the
    ratio of probabilities, and its divergence E[w ln w].

    Attributes:
        budgets: where it is measured; with several, the place of the greatest gain, where a parabola turns.
        beta: weight of the penalty.
        parts: simulations of 4,096 episodes, each an estimate.
    """

    budgets: tuple[float, ...]
    beta: float = 20.0
    parts: int = 10

    def predicted(self, oracle: Oracle[RelativeBudget]) -> float:
        """sd(R), in units of itself; or where sd(R) turns."""
        if len(self.budgets) == 1:
            return 1.0
        deviations = [math.sqrt(base_law(oracle.setting, xi).variance) for xi in self.budgets]
        return float(vertex(self.budgets, np.log(deviations)[None])[0])

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Weigh responses of the base model."""
        labs, first = [lab.at(xi=xi) for xi in self.budgets], seed * self.parts
        gains = np.array([[self.gain(there, first + part) for there in labs] for part in range(self.parts)])
        if len(self.budgets) == 1:
            return mean_interval(gains[:, 0] / math.sqrt(base_law(lab.setting, self.budgets[0]).variance))
        return mean_interval(vertex(self.budgets, np.log(gains)))

    def gain(self, lab: Lab, seed: int) -> float:
        """Estimate gain / sqrt(2 KL) from one simulation."""
        step, base = lab.oracle.tilted_policy(self.beta), lab.oracle.reference_policy
        played = lab.simulate(base, TOGETHER, seed)
        taken = played.taken
        seen, actions = played.observations[taken], played.actions[taken]
        rows = np.arange(len(actions))
        ratios = np.zeros(taken.shape)
        ratios[taken] = np.log(step.probs(seen)[rows, actions] / base.probs(seen)[rows, actions])
        logs = ratios.sum(axis=1)
        weights = np.exp(logs)
        # w ln w - w + 1 has the mean of w ln w, and hardly any noise.
        divergence = np.mean(weights * logs - weights + 1)
        return float(np.mean((weights - 1) * (played.rewards - played.rewards.mean())) / math.sqrt(2 * divergence))
