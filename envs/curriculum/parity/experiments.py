"""Experiments about sparse parity; none uses the oracle to evaluate policies."""

import dataclasses
import math

import numpy as np

from theorybench.envs.core.evidence.interval import Interval, mean_interval, point
from theorybench.envs.core.evidence.lab import Lab, seed_of
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.views import View
from theorybench.envs.curriculum.learning import OutcomeGradient
from theorybench.envs.curriculum.parity.setting import Parity, parity

#: Episodes in which all rows of a stage are visited, except once in 10^7 stages.
TOGETHER = 64


def chances(setting: Parity, right: np.ndarray) -> np.ndarray:
    """Return the table of a local policy that is right with given probabilities (k, 4), rows (bit, claim)."""
    answer = np.array([0, 1, 1, 0])
    rows = np.stack([np.where(answer == 0, right, 1 - right), np.where(answer == 1, right, 1 - right)], axis=-1)
    return rows.reshape(4 * setting.k, 2)


@dataclasses.dataclass(frozen=True)
class Product:
    """Expected reward of a table whose probabilities of a right claim differ between its rows."""

    mean: float = 0.85  # mean of the probabilities
    spread: float = 0.15  # they go from mean - spread to mean + spread over the four rows of a position
    episodes: int = 400_000  # number of simulated episodes

    def right(self, setting: Parity) -> np.ndarray:
        """Return the probabilities by position and row, float64 (k, 4)."""
        turns = (np.arange(4) + np.arange(setting.k)[:, None]) % 4
        return self.mean + self.spread * (2 * turns / 3 - 1)

    def predicted(self, oracle: Oracle[Parity]) -> float:
        """Return 1/2 + 1/2 m_1 ... m_k; before the first claim only the two rows of claim 0 are visited."""
        biases = 2 * self.right(oracle.setting) - 1
        return float(0.5 + 0.5 * biases[0, [0, 2]].mean() * biases[1:].mean(axis=1).prod())

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Return the mean reward and its interval."""
        setting = lab.setting
        policy = TablePolicy(View.of(setting, "local"), chances(setting, self.right(setting)))
        return mean_interval(lab.simulate(policy, self.episodes, seed).rewards)


def outcome_gradient(stage: int) -> OutcomeGradient:
    """Return the squared norm of a local table's gradient where the reward is paid at a stage; 0: the full task.

    It is 1/16 at stage 1, two rows of probability 1/2 with 1/4 * 1/2 in each logit, and 0 at every later stage.
    """
    return OutcomeGradient(stage=stage, prediction=lambda oracle: 1 / 16 if stage == 1 else 0.0)


@dataclasses.dataclass(frozen=True)
class GradientAlong:
    """Derivative of the answer's expected reward along a function of the prompt, without a chain of thought."""

    ignored: int  # number of secret bits that the function ignores, 0 or 1
    episodes: int = 400_000  # number of simulated episodes

    def predicted(self, oracle: Oracle[Parity]) -> float:
        """Return 1/4 along the parity of the secret bits itself, and 0 along functions that ignore one of them."""
        return 0.0 if self.ignored else 0.25

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean of reward * (answer - 1/2) * f(x); f has the values -1 and 1, and the sign of the answer 1."""
        setting = lab.setting
        policy = TablePolicy(View.of(setting, "position"), np.full((1, 2), 0.5))
        played = lab.simulate(policy, self.episodes, seed)
        used = int(np.sum(1 << setting.tables.secret[: setting.k - self.ignored]))
        values = 2.0 * parity(played.prompts & used) - 1.0
        return mean_interval(played.rewards * (played.actions[:, 0] - 0.5) * values)


@dataclasses.dataclass(frozen=True)
class RandomTables:
    """Mean square of 2 J - 1 over random deterministic tables.

    It is 0 for most tables and large for a few, so a mean over a sample of them is far from normal: all tables are
    rolled out, and only the episodes are random. Tables that differ by swapping the claims at a position have the same
    square, so one of each two suffices: the one that claims 0 after bit 0 and claim 0. Rows of claim 1 before the first
    claim are never visited.
    """

    blocks: int = 16  # number of estimates for each table, each the unbiased product of two simulations
    episodes: int = 128  # number of episodes per simulation

    def predicted(self, oracle: Oracle[Parity]) -> float:
        """E[(2 J - 1)^2] = E[m_1^2 ... m_k^2], means of two signs and of four: 2 * 4^-k."""
        return float(2 * 4.0**-oracle.setting.k)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over all tables of the product of two estimates of 2 J - 1; the interval is that of blocks."""
        setting, view = lab.setting, View.of(lab.setting, "local")
        met = np.delete(np.arange(4 * setting.k), [1, 3, *range(0, 4 * setting.k, 4)])
        tables = np.zeros((2 ** len(met), 4 * setting.k), np.int64)
        tables[:, met] = np.arange(len(tables))[:, None] >> np.arange(len(met)) & 1
        keys = np.random.SeedSequence(seed).generate_state(len(tables))
        values = np.empty((len(tables), self.blocks))
        for number, claims in enumerate(tables):
            policy = TablePolicy(view, np.eye(2)[claims])
            rewards = lab.simulate(policy, 2 * self.blocks * self.episodes, int(keys[number])).rewards
            values[number] = np.prod(2 * rewards.reshape(self.blocks, 2, -1).mean(axis=2) - 1, axis=1)
        return mean_interval(values.mean(axis=0))


@dataclasses.dataclass(frozen=True)
class StageSearch:
    """Episodes of a search that learns the claims of one stage after the other.

    It claims at random in unknown rows. Once the earlier claims are right, an episode reveals the right claim of the
    row visited: the one made if there was a reward, else the other. A stage ends when all its rows have been visited.
    """

    trials: int = 1000  # number of searches

    def predicted(self, oracle: Oracle[Parity]) -> float:
        """Return a coupon collector's time over two rows at first and over four afterwards: 3 + (k - 1) 25/3."""
        return 3 + (oracle.setting.k - 1) * 4 * (1 + 1 / 2 + 1 / 3 + 1 / 4)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Return the mean over searches; NaN if the learnt claims fail on the full task."""
        setting, view, total = lab.setting, View.of(lab.setting, "local"), np.zeros(self.trials)
        table = np.full((view.rows, 2), 0.5)
        for position in range(setting.k):
            key = seed_of(seed, position)
            policy = TablePolicy(view, table)
            played = lab.simulate(policy, self.trials * TOGETHER, key, stage=position + 1)
            rows, claims = view.index(played.observations[:, position]), played.actions[:, position]
            right = np.where(played.rewards > 0, claims, 1 - claims)
            met = np.unique(rows)
            seen = rows.reshape(self.trials, TOGETHER, 1) == met
            if not seen.any(axis=1).all():
                return point(math.nan)
            total += 1 + seen.argmax(axis=1).max(axis=1)
            table[rows[:TOGETHER]] = np.eye(2)[right[:TOGETHER]]
        check = lab.simulate(TablePolicy(view, table), TOGETHER, seed)
        return mean_interval(total) if check.rewards.all() else point(math.nan)
