"""Experiments on relative budgets: samples of the base model, one gradient step, a learnt tilt."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import Sampled, TrainedMetric
from theorybench.envs.core.evidence.interval import Interval, mean_interval, point, ratio_of_means
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.curriculum.relative_budget.law import KAPPA, TokenLaw
from theorybench.envs.curriculum.relative_budget.oracle import RelativeBudgetOracle
from theorybench.envs.curriculum.relative_budget.setting import RelativeBudget

#: Episodes of one simulation.
TOGETHER = 4096
#: One gradient step: learning rate and runs.
RATE, RUNS = 0.02, 8
#: Weight of the KL penalty whose optimum is the best small step.
PENALTY = 20.0


def base_law(setting: RelativeBudget, xi: float) -> TokenLaw:
    """Return the law of T under the base model at another relative budget."""
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


@dataclasses.dataclass(frozen=True)
class SizeRatio:
    """Ratio of the theorem's sample sizes at two relative budgets."""

    there: float  # relative budget of the numerator
    here: float  # relative budget of the denominator
    parts: tuple[int, int] = (1, 1)  # simulations of 4,096 episodes per block, at each
    blocks: int = 8  # number of independent estimates

    def predicted(self, oracle: Oracle[RelativeBudget]) -> float:
        """n(there) / n(here)."""
        there, here = (base_law(oracle.setting, xi).sample_size for xi in (self.there, self.here))
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
class Extremum:
    """Relative budget at which a quantity is extreme: where a parabola through its logarithm over ln xi turns."""

    budgets: tuple[float, ...]  # the relative budgets of the points
    exact: Callable[[TokenLaw], float]  # the quantity under the law of T of the base model
    estimates: Callable[[Lab, int], np.ndarray]  # (lab at one of the budgets, seed) -> independent estimates of it

    def predicted(self, oracle: Oracle[RelativeBudget]) -> float:
        """Return the extremum of the exact values."""
        return float(self._vertices([[self.exact(base_law(oracle.setting, xi))] for xi in self.budgets])[0])

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Fit the estimates; infinite where one of them is not finite."""
        values = [self.estimates(lab.at(xi=xi), seed) for xi in self.budgets]
        return mean_interval(self._vertices(values)) if np.isfinite(values).all() else point(math.inf)

    def _vertices(self, values: Any) -> np.ndarray:
        """Fit a parabola to each column of the logarithms of values (budgets, n); return its vertex, float64 (n,)."""
        square, line, _ = np.polyfit(np.log(self.budgets), np.log(values), 2)
        return np.asarray(np.exp(-line / (2 * square)))


@dataclasses.dataclass(frozen=True)
class Tilted:
    """The base model's solutions re-weighted by exp(-i eta T), eta = 1/(2H): i tilts."""

    stationary: bool = False  # whether to compare early with late tokens; else the relative budget before and after
    tilts: int = 4  # the number i of tilts
    ample: float = 5.0  # the horizon in units of the setting's, chosen so no solution is cut off
    parts: int = 24  # simulations of 4,096 episodes, each an estimate

    def predicted(self, oracle: RelativeBudgetOracle) -> float:
        """Gain of xi for each tilt, in units of 1/(2K): below 1 - p. Stationary: 0."""
        return 0.0 if self.stationary else 2 * oracle.setting.K * oracle.tilted_gain(self.tilts) / self.tilts

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


def best_step_gains(lab: Lab, parts: int, seed: int) -> np.ndarray:
    """Estimate the gain of the best small step, per unit of sqrt(2 KL): float64 (parts,).

    The step is the optimum under a KL penalty. Its gain is E[(w - 1) R] over responses of the base model, w being the
    ratio of probabilities, and its divergence E[w ln w].

    Args:
        lab: simulates.
        parts: simulations of 4,096 episodes, each an estimate.
        seed: of the simulations.
    """
    step, base = lab.oracle.tilted_policy(PENALTY), lab.oracle.reference_policy
    gains = np.empty(parts)
    for part in range(parts):
        played = lab.simulate(base, TOGETHER, seed * parts + part)
        taken = played.taken
        seen, actions = played.observations[taken], played.actions[taken]
        rows = np.arange(len(actions))
        ratios = np.zeros(taken.shape)
        ratios[taken] = np.log(step.probs(seen)[rows, actions] / base.probs(seen)[rows, actions])
        logs = ratios.sum(axis=1)
        weights = np.exp(logs)
        # w ln w - w + 1 has the mean of w ln w, and hardly any noise.
        divergence = np.mean(weights * logs - weights + 1)
        gains[part] = np.mean((weights - 1) * (played.rewards - played.rewards.mean())) / math.sqrt(2 * divergence)
    return gains


class TiltsLearnt(TrainedMetric):
    """Relative budget of the policies that an agent ends with, less that of the base model, in units of 1/(2K)."""

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Train; return that of each run from its mean tokens, float64 (seeds,)."""
        setting = lab.setting
        return np.asarray(2 * setting.K * (setting.horizon / super().values(lab, seed) - setting.xi))


def plain_sgd(setting: RelativeBudget, agent: str, rate: float, episodes: int) -> dict[str, Any]:
    """Return the hyper-parameters of plain gradient descent on batches.

    Args:
        setting: where.
        agent: its name; "grpo" takes the batch as its group and sums its loss over tokens.
        rate: learning rate.
        episodes: of a batch.
    """
    options: dict[str, Any] = {"optimizer": "sgd", "learning_rate": rate, "episodes_per_update": episodes}
    if agent == "grpo":  # its loss is divided by the horizon
        options |= {"loss_type": "dr_grpo", "group_size": episodes, "learning_rate": rate * setting.horizon}
    return options


def one_step(
    lab: Lab, agent: str, seed: int, episodes: int, rate: float = RATE, seeds: int = RUNS
) -> tuple[np.ndarray, np.ndarray]:
    """Take one gradient step on one batch from the base model; return gains and KL divergences, float64 (seeds,) each.

    Args:
        lab: trains.
        agent: "rlvr" or "grpo", see `plain_sgd`.
        seed: runs `seed * seeds` and following.
        episodes: of the batch, at most 4,096.
        rate: learning rate.
        seeds: runs.
    """
    policies = lab.train(agent, run_seeds(seed, seeds), episodes, **plain_sgd(lab.setting, agent, rate, episodes))
    found = [lab.oracle.evaluate(policy, ["objective", "kl"]) for policy in policies]
    gains = np.array([values["objective"] for values in found]) - lab.oracle.reference_value
    return gains, np.array([values["kl"] for values in found])


def gains_at_divergence(lab: Lab, seed: int) -> np.ndarray:
    """Return the gains of one step of REINFORCE, divided by sqrt(2 kappa) sd(R) with its KL kappa: float64 (8,)."""
    gains, divergences = one_step(lab, "rlvr", seed, episodes=4096)
    return np.asarray(gains / np.sqrt(2 * divergences * lab.oracle.law.variance))


def gains_at_rate(lab: Lab, seed: int) -> np.ndarray:
    """Return the gains of one step of REINFORCE, divided by Var[R] times the learning rate: float64 (8,)."""
    gains, _ = one_step(lab, "rlvr", seed, episodes=4096)
    return np.asarray(gains / (RATE * lab.oracle.law.variance))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoreRatio(Sampled):
    """Score that one step gains at one relative budget, in units of what it gains at a smaller one."""

    agent: str  # "rlvr" or "grpo"
    there: float = 8.0  # the larger relative budget
    here: float = 4.0  # the smaller one; both are ample

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Train one step at each; return the scores of the runs there and here, float64 (2, runs)."""
        scores = []
        for half, xi in enumerate((self.there, self.here)):
            own = lab.at(xi=xi)
            gains, _ = one_step(own, self.agent, 2 * seed + half, episodes=2048)
            scores.append(gains / (own.oracle.optimal_value - own.oracle.reference_value))
        return np.array(scores)

    def summary(self, found: np.ndarray) -> Interval:
        """Return the ratio of the means."""
        return ratio_of_means(*found)
