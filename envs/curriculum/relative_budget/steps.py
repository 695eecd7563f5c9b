"""Statements on relative budgets that agents measure: one gradient step, and the tilt that A*-PO learns."""

import dataclasses
import math
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import Interval, mean_interval, ratio_of_means
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.curriculum.relative_budget.oracle import RelativeBudgetOracle
from theorybench.envs.curriculum.relative_budget.samples import base_law
from theorybench.envs.curriculum.relative_budget.setting import RelativeBudget


@dataclasses.dataclass(frozen=True)
class LearntTilt:
    """Relative budget of what A*-PO learns at temperature 2, less that of the base model.

    Attributes:
        budget: episodes of a run.
        seeds: runs.
    """

    budget: int = 12_000
    seeds: int = 6

    def predicted(self, oracle: Oracle[RelativeBudget]) -> float:
        """One tilt: 2 H (1 - p) (1 - e^(-1/(2H))), in units of 1/(2K)."""
        setting = oracle.setting
        return 2 * setting.horizon * (1 - setting.p) * -math.expm1(-1 / (2 * setting.horizon))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Train, and evaluate the mean tokens of the tables."""
        setting = lab.setting
        runs = run_seeds(seed, self.seeds)
        learner: dict[str, Any] = {"beta_1": 2.0, "beta_2": 2.0, "reference_samples": 4096}
        policies = lab.train(
            "astar-po", runs, self.budget, optimizer="sgd", learning_rate=0.05, episodes_per_update=256, **learner
        )
        tokens = np.array([lab.oracle.evaluate(policy, ["tokens"])["tokens"] for policy in policies])
        return mean_interval(2 * setting.K * (setting.horizon / tokens - setting.xi))


def one_step(lab: Lab, agent: str, seed: int, seeds: int, rate: float, episodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Take one gradient step on one batch from the base model; return gains and KL divergences, float64 (seeds,) each.

    Args:
        lab: trains.
        agent: "rlvr", or "grpo" with the batch as its group and a loss that is summed over tokens.
        seed: runs `seed * seeds` and following.
        seeds: runs.
        rate: learning rate.
        episodes: of the batch, at most 4,096.
    """
    options: dict[str, Any] = {"optimizer": "sgd", "learning_rate": rate, "episodes_per_update": episodes}
    if agent == "grpo":  # its loss is divided by the horizon
        options |= {"loss_type": "dr_grpo", "group_size": episodes, "learning_rate": rate * lab.setting.horizon}
    policies = lab.train(agent, run_seeds(seed, seeds), episodes, **options)
    found = [lab.oracle.evaluate(policy, ["objective", "kl"]) for policy in policies]
    gains = np.array([values["objective"] for values in found]) - lab.oracle.reference_value
    return gains, np.array([values["kl"] for values in found])


@dataclasses.dataclass(frozen=True)
class TableStep:
    """Gain of one step of REINFORCE with a table on sub-steps.

    Attributes:
        fixed: whether at a fixed KL divergence, in units of sqrt(2 kappa) sd(R); else for each unit of the learning
            rate, in units of Var[R].
        rate: learning rate.
        episodes: of the step.
        seeds: runs.
    """

    fixed: bool
    rate: float = 0.02
    episodes: int = 4096
    seeds: int = 8

    def predicted(self, oracle: RelativeBudgetOracle) -> float:
        """Fixed: what the expected gradient gains. Else 1: a table sees all of the reward in ample budgets."""
        if not self.fixed:
            return 1.0
        return oracle.small_step.gain / math.sqrt(oracle.law.variance)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Train one step."""
        setting = lab.setting
        gains, divergences = one_step(lab, "rlvr", seed, self.seeds, self.rate, self.episodes)
        variance = base_law(setting, setting.xi).variance
        if self.fixed:
            return mean_interval(gains / np.sqrt(2 * divergences * variance))
        return mean_interval(gains / (self.rate * variance))


@dataclasses.dataclass(frozen=True)
class ScoreRatio:
    """Score that one step gains at one relative budget, in units of what it gains at a smaller one.

    Attributes:
        agent: "rlvr" or "grpo".
        there: the larger relative budget.
        here: the smaller one; both are ample.
        rate: learning rate, the same at both.
        episodes: of the step.
        seeds: runs.
    """

    agent: str
    there: float = 8.0
    here: float = 4.0
    rate: float = 0.02
    episodes: int = 2048
    seeds: int = 8

    def predicted(self, oracle: Oracle[RelativeBudget]) -> float:
        """RLVR: here / there. GRPO: 1."""
        return self.here / self.there if self.agent == "rlvr" else 1.0

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Train one step at each."""
        scores = []
        for half, xi in enumerate((self.there, self.here)):
            own = lab.at(xi=xi)
            gains, _ = one_step(own, self.agent, 2 * seed + half, self.seeds, self.rate, self.episodes)
            scores.append(gains / (own.oracle.optimal_value - own.oracle.reference_value))
        return ratio_of_means(*scores)
