"""What claims and studies about k-fold composition measure: gradients, a search, and REINFORCE on a mixture of rungs.

All of it is simulation; closed forms are the oracle's.
"""

import dataclasses
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.lab import Lab
from theorybench.envs.core.policy import Policy
from theorybench.envs.core.views import View

#: Episodes of one evaluation.
JUDGED = 4_000


def key(*numbers: int) -> int:
    """Turn numbers into one seed."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


def accuracy(lab: Lab, policy: Any, stage: int, seed: int, episodes: int = JUDGED) -> float:
    """Simulate the success of a policy at a rung."""
    return float(lab.simulate(policy, episodes, seed, stage=stage).rewards.mean())


def uniform_table(setting: Any) -> np.ndarray:
    """Return the base model's tables q_j(v | u): float64 (k, N, N)."""
    return np.full((setting.k, setting.N, setting.N), 1.0 / setting.N)


def tilted(lab: Lab, tilts: Any) -> Policy:
    """Return the policy whose table of hop j is tilts_j times the right one plus 1 - tilts_j times the uniform one.

    Its fix_j is 1 + tilts_j (N - 1).

    Args:
        lab: of the setting.
        tilts: floats in [0, 1] that broadcast to (k,).
    """
    weight = np.broadcast_to(np.asarray(tilts, np.float64), (lab.setting.k,))[:, None, None]
    right = np.eye(lab.setting.N)[lab.oracle.hidden]
    policy: Policy = lab.oracle.policy(weight * right + (1 - weight) * uniform_table(lab.setting))
    return policy


@dataclasses.dataclass(frozen=True)
class Gradient:
    """The L2 norm of the gradient of J in the last hop's logits, at the base model, with chain of thought.

    A policy class that sees s has the gradient dJ / dlogit(s, v) = P(s) (p(s, v) - mean of p(s, .)) / N, p(s, v) being
    the chance of a reward after the last look-up v in s. As a function of s and v, per visit, its norm is

        sqrt(E_s sum_v ((p(s, v) - mean p(s, .)) / N)^2) = sqrt((A - D) / N),

    A the chance that two episodes with the same s and v both earn the reward, D that of two with the same s. Pairs of
    episodes estimate both without bias. (In earlier hops it is 0: a uniform look-up after them earns 1/N.)

    Attributes:
        sees: "response": x and the response; "prompt": the whole prompt too; "table": the next hop and the entry.
        blocks: independent samples.
        episodes: of each block.
        prompts: for "prompt": how many share a block.
    """

    sees: str
    blocks: int = 10
    episodes: int = 20_000
    prompts: int = 25

    def squares(self, lab: Lab, seed: int) -> np.ndarray:
        """Estimate the squared norm in each block: float64 (blocks,)."""
        setting = lab.setting
        values = []
        for block in range(self.blocks):
            options: dict[str, Any] = {}
            if self.sees == "prompt":
                rng = np.random.default_rng([seed, block])
                options = {"prompts": rng.integers(2**40, size=self.prompts)}
                options["group_size"] = self.episodes // self.prompts
            policy = lab.oracle.reference_policy
            played = lab.simulate(policy, self.episodes, key(seed, block), stage=setting.k, **options)
            last = played.observations[:, setting.k - 1].astype(np.int64)
            cut = setting.k * setting.N
            if self.sees == "table":
                number = View.of(setting, "local").index(last)
            else:
                seen = np.concatenate([last[:, cut + 1 : cut + 2], last[:, setting.prompt_length :]], axis=1)
                if self.sees == "prompt":
                    seen = np.concatenate([played.prompts[:, None], seen], axis=1)
                number = np.unique(seen, axis=0, return_inverse=True)[1].ravel()
            chosen = number * setting.N + played.actions[:, setting.k - 1]
            values.append((_pairs(chosen, played.rewards) - _pairs(number, played.rewards)) / setting.N)
        return np.array(values)


def _pairs(cell: np.ndarray, rewards: np.ndarray) -> float:
    """Return the share of pairs of episodes of the same cell that both earn the reward."""
    count, won = np.bincount(cell), np.bincount(cell, rewards)
    return float((won * (won - 1)).sum() / (count * (count - 1)).sum())


@dataclasses.dataclass(frozen=True)
class Search:
    """Rejection sampling of single hops: it keeps the look-up of every pair (hop, entry) that earned a reward.

    Attributes:
        trials: searches.
    """

    trials: int = 240

    def tables(self, lab: Lab, episodes: int, seed: int) -> np.ndarray:
        """Give what searches know after some episodes of rung 1 each: float64 (trials, k, N, N), else uniform."""
        setting = lab.setting
        policy = lab.oracle.reference_policy
        played = lab.simulate(policy, episodes * self.trials, key(seed, 1), stage=1)
        pair = View.of(setting, "local").index(played.observations[:, 0])
        trial = np.repeat(np.arange(self.trials), episodes)
        tables = np.tile(uniform_table(setting).reshape(-1, setting.N), (self.trials, 1, 1))
        won = played.rewards > 0
        tables[trial[won], pair[won]] = np.eye(setting.N)[played.actions[won, 0]]
        return tables.reshape(self.trials, *uniform_table(setting).shape)

    def scores(self, lab: Lab, episodes: int, seed: int) -> np.ndarray:
        """Simulate the score of each search on the full task: float64 (trials,)."""
        size, stage = lab.setting.N, lab.setting.k
        found = self.tables(lab, episodes, seed)
        values = [
            accuracy(lab, lab.oracle.policy(table), stage, key(seed, 2, trial), 1_000)
            for trial, table in enumerate(found)
        ]
        return np.asarray((np.array(values) - 1 / size) / (1 - 1 / size))


@dataclasses.dataclass(frozen=True)
class Ascent:
    """REINFORCE with a mean baseline on tables q_j(v | u), from a fixed mixture of rung 1 and the full task.

    A step moves the logits of a row by `step_size` times its gradient per visit, were all rows visited alike.

    Attributes:
        share: of each update's episodes on rung 1.
        updates: steps.
        episodes: of each update.
        step_size: of the ascent.
    """

    share: float
    updates: int = 40
    episodes: int = 1_024
    step_size: float = 4.0

    def train(self, lab: Lab, seed: int) -> np.ndarray:
        """Train one run; return its score on the full task after each update, exactly: float64 (updates,)."""
        setting, view = lab.setting, View.of(lab.setting, "local")
        logits, scores = np.zeros((view.rows, setting.N)), []
        easy = round(self.share * self.episodes)
        for update in range(self.updates):
            probs = np.exp(logits - logits.max(axis=1, keepdims=True))
            probs /= probs.sum(axis=1, keepdims=True)
            policy = lab.oracle.policy(probs.reshape(setting.k, setting.N, setting.N))
            gradient = np.zeros_like(logits)
            for stage, episodes in ((1, easy), (setting.k, self.episodes - easy)):
                if not episodes:
                    continue
                played = lab.simulate(policy, episodes, key(seed, update, stage), stage=stage)
                gain = played.rewards - played.rewards.mean()
                for step in range(stage):
                    row = view.index(played.observations[:, step])
                    np.add.at(gradient, (row, played.actions[:, step]), gain)
                    gradient -= np.bincount(row, gain, view.rows)[:, None] * probs
            logits += self.step_size * view.rows / self.episodes * gradient
            scores.append(lab.oracle.score(policy))
        return np.array(scores)


def staircase(lab: Lab, agent: str, seeds: range, budget: int, **hyperparameters: Any) -> np.ndarray:
    """Train an agent that climbs k rungs in equal shares, and simulate its accuracy on all of them after each.

    Returns:
        float64 (seeds, k, k): at [run, r, s] the accuracy on s + 1 hops after r + 1 rungs.
    """
    k = lab.setting.k
    traces = lab.trace(agent, seeds, budget, points=k, **hyperparameters)
    return np.array(
        [
            [
                [accuracy(lab, policy, stage, key(seed, rung, stage)) for stage in range(1, k + 1)]
                for rung, (_, policy) in enumerate(trace[-k:])
            ]
            for seed, trace in zip(seeds, traces, strict=True)
        ]
    )
