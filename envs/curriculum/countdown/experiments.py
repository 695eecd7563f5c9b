"""Experiments about search on Countdown: they count rollouts and never query the solver."""

import dataclasses
from typing import Any

import numpy as np

from theorybench.envs.core.errors import TheoryBenchError
from theorybench.envs.core.evidence.interval import Interval, interval, ratio_of_means
from theorybench.envs.core.evidence.lab import Lab, seed_of
from theorybench.envs.curriculum.countdown.oracle import CountdownOracle

#: Temperature of the tilted policy, which about triples the base model's success.
BETA = 0.4
#: Maximum number of rollouts of a prompt.
LIMIT = 2**20


def rollouts_to_win(lab: Lab, policy: Any, stage: int, trials: int, seed: int) -> np.ndarray:
    """Return the number of rollouts that searches need until their first win: float64 (prompts, trials).

    One stream of rollouts of a prompt, split after each win, contains many searches.

    Args:
        lab: the lab that simulates.
        policy: the policy to roll out.
        stage: the stage at which games begin.
        trials: number of searches of each prompt.
        seed: seed of the rollouts.

    Raises:
        TheoryBenchError: more than 2^20 rollouts of a prompt.
    """
    prompts = lab.setting.prompts
    ends: list[list[np.ndarray]] = [[] for _ in range(prompts)]
    left, made, size = np.arange(prompts), 0, 2 * trials
    while len(left):
        if made > LIMIT:
            raise TheoryBenchError(f"fewer than {trials} wins in {made} rollouts of a prompt")
        key = seed_of(seed, stage, made)
        drawn = lab.simulate(policy, len(left) * size, key, prompts=left, group_size=size, stage=stage)
        for prompt, wins in zip(left, drawn.rewards.reshape(-1, size) > 0, strict=True):
            ends[prompt].append(np.flatnonzero(wins) + made)
        made, size = made + size, max(size, made)
        left = np.array([prompt for prompt in left if sum(map(len, ends[prompt])) < trials], np.int64)
    cuts = np.stack([np.concatenate(found)[:trials] for found in ends])
    return np.diff(cuts, prepend=-1, axis=1).astype(np.float64)


def prompt_mean(samples: np.ndarray) -> Interval:
    """Return the mean of independent samples (prompts, trials) over all prompts, with Student's interval.

    Its freedom is that of one prompt's trials: the prompt with the rarest wins may have most of the variance.
    """
    errors = samples.var(axis=1, ddof=1) / samples.shape[1]
    return interval(samples.mean(), float(np.sqrt(errors.sum())) / len(samples), samples.shape[1] - 1)


@dataclasses.dataclass(frozen=True)
class SimulatedSuccess:
    """Success of one of the oracle's policies, estimated from rollouts."""

    episodes: int  # number of rollouts
    tilted: bool  # whether the policy is the optimum under a KL penalty of temperature `BETA` instead of the base model

    def predicted(self, oracle: CountdownOracle) -> float:
        """Mean of p, or of p e^(1/beta) / (1 + p (e^(1/beta) - 1))."""
        return oracle.tilted_success(BETA) if self.tilted else oracle.base_success()

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Simulate every prompt equally often."""
        oracle, count = lab.oracle, lab.setting.prompts
        policy, size = oracle.tilted_policy(BETA) if self.tilted else oracle.reference_policy, self.episodes // count
        drawn = lab.simulate(policy, size * count, seed, prompts=np.arange(count), group_size=size)
        return prompt_mean(drawn.rewards.reshape(count, -1))


@dataclasses.dataclass(frozen=True)
class BestOf:
    """Share of prompts that are solved at least once in a number of rollouts of the base model."""

    rollouts: int  # rollouts of each prompt in a trial
    trials: int  # number of trials

    def predicted(self, oracle: CountdownOracle) -> float:
        """Mean of 1 - (1 - p)^rollouts."""
        return oracle.best_of(self.rollouts)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Simulate each prompt in groups."""
        policy, size = lab.oracle.reference_policy, self.rollouts
        prompts = np.repeat(np.arange(lab.setting.prompts), self.trials)
        drawn = lab.simulate(policy, len(prompts) * size, seed, prompts=prompts, group_size=size)
        return prompt_mean(drawn.rewards.reshape(lab.setting.prompts, self.trials, size).max(axis=2))


@dataclasses.dataclass(frozen=True)
class SearchCost:
    """Rollouts that a search of a prompt needs: on the full task, or stage by stage, remembering solved stages."""

    staged: bool  # whether stages are searched one after the other
    trials: int  # number of searches of each prompt

    def predicted(self, oracle: CountdownOracle) -> float:
        """Mean over prompts of 1/p, or of the sum over stages of 1/q_k."""
        return oracle.staged_search_episodes() if self.staged else oracle.search_episodes()

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Search."""
        stages, oracle = lab.setting.num_stages, lab.oracle
        if not self.staged:
            return prompt_mean(rollouts_to_win(lab, oracle.reference_policy, stages, self.trials, seed))
        costs = [rollouts_to_win(lab, oracle.memory_policy(k), k, self.trials, seed) for k in range(1, stages + 1)]
        return prompt_mean(np.sum(costs, axis=0))


@dataclasses.dataclass(frozen=True)
class HintedSuccess:
    """Success of the base model with a hint of all moves but the last two, in units of that without."""

    hinted: int = 2**15  # number of rollouts with the hint
    plain: int = 2**17  # without

    def predicted(self, oracle: CountdownOracle) -> float:
        """Mean of p at the hinted states over that at the first ones."""
        return float(oracle.stage_success[:, 1].mean() / oracle.base_success())

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Simulate both."""
        policy, hint = lab.oracle.reference_policy, lab.setting.num_stages - 2
        wins = lab.simulate(policy, self.hinted, seed_of(seed, 1), hint=hint).rewards
        return ratio_of_means(wins, lab.simulate(policy, self.plain, seed_of(seed, 2)).rewards)
