"""What theory says of sparse parity, as tests that run.

Intervals are three standard errors wide on each side; no claim calls the oracle's evaluation of what it judges.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.claim import Claim, ClaimMaker
from theorybench.envs.core.evidence.interval import Interval, interval, mean_interval, point
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.views import View
from theorybench.envs.curriculum.parity.setting import Parity, parity

#: Score that counts as learnt, and episodes in which all rows of a stage are met but once in 10^7 stages.
LEARNT, TOGETHER = 0.9, 64


def local_table(setting: Parity, table: np.ndarray) -> TablePolicy:
    """Return a policy on the view "local" from probabilities (4 k, 2)."""
    return TablePolicy(View.of(setting, "local"), table)


def chances(setting: Parity, right: np.ndarray) -> np.ndarray:
    """Return the table of a local policy that claims rightly with given chances (k, 4), rows (bit, claim)."""
    answer = np.array([0, 1, 1, 0])
    rows = np.stack([np.where(answer == 0, right, 1 - right), np.where(answer == 1, right, 1 - right)], axis=-1)
    return rows.reshape(4 * setting.k, 2)


@dataclasses.dataclass(frozen=True)
class Product:
    """Reward of a table whose chances to claim rightly are spread unevenly over its rows.

    Attributes:
        mean: of the chances to be right.
        spread: they are mean - spread, ..., mean + spread over the four rows of a position, in turn.
        episodes: of the simulation.
    """

    mean: float = 0.85
    spread: float = 0.15
    episodes: int = 400_000

    def right(self, setting: Parity) -> np.ndarray:
        """Chances by position and row, float64 (k, 4)."""
        turns = (np.arange(4) + np.arange(setting.k)[:, None]) % 4
        return self.mean + self.spread * (2 * turns / 3 - 1)

    def predicted(self, oracle: Oracle[Parity]) -> float:
        """1/2 + 1/2 m_1 ... m_k; before the first claim only the two rows of claim 0 are met."""
        leans = 2 * self.right(oracle.setting) - 1
        return float(0.5 + 0.5 * leans[0, [0, 2]].mean() * leans[1:].mean(axis=1).prod())

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean reward."""
        setting = lab.setting
        policy = local_table(setting, chances(setting, self.right(setting)))
        return mean_interval(lab.simulate(policy, self.episodes, seed).rewards)


@dataclasses.dataclass(frozen=True)
class Slope:
    """Squared norm of the outcome's gradient in a table's logits at the uniform policy.

    Two independent halves of a sample are multiplied, so that the estimate has no bias.

    Attributes:
        stage: where the reward is paid; 0 for the full task.
        blocks: pairs of halves.
        episodes: of each half.
    """

    stage: int
    blocks: int = 16
    episodes: int = 8192

    def predicted(self, oracle: Oracle[Parity]) -> float:
        """1/16 at stage 1, two rows of probability 1/2 with 1/4 * 1/2 in each logit; 0 at every later stage."""
        return 1 / 16 if self.stage == 1 else 0.0

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over blocks of the product of two halves' score-function estimates."""
        setting = lab.setting
        stage = self.stage or setting.num_stages
        view = View.of(setting, "local")
        policy = TablePolicy(view, np.full((view.rows, 2), 0.5))
        played = lab.simulate(policy, 2 * self.blocks * self.episodes, seed, stage=stage)
        scores = np.eye(2)[played.actions] - 0.5  # of the softmax's logits at each step
        gradients = np.zeros((2 * self.blocks, view.rows, 2))
        half = np.arange(len(scores)) // self.episodes
        centred = played.rewards - played.rewards.mean()
        for position in range(stage):
            rows = view.index(played.observations[:, position])
            np.add.at(gradients, (half, rows), scores[:, position] * centred[:, None] / self.episodes)
        flat = gradients.reshape(self.blocks, 2, -1)
        return mean_interval((flat[:, 0] * flat[:, 1]).sum(axis=1))


@dataclasses.dataclass(frozen=True)
class Along:
    """Derivative of the answer's expected reward along a function of the prompt, without a chain of thought.

    Attributes:
        ignored: how many of the secret bits the function ignores, 0 or 1.
        episodes: of the simulation.
    """

    ignored: int
    episodes: int = 400_000

    def predicted(self, oracle: Oracle[Parity]) -> float:
        """1/4 along the parity of the secret bits itself, and 0 along what ignores one of them."""
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
class Leaning:
    """Mean square of how much a random deterministic table earns above or below guessing.

    Most tables earn nothing and few earn all, so that a mean over some of them is far from normal: all tables are
    played, and what varies is the episodes alone. Tables that differ by the names of the claims at a position earn the
    same, or the opposite, so that one of each two will do: it claims 0 after bit 0 and claim 0. Rows of claim 1 before
    the first claim are never met.

    Attributes:
        blocks: estimates of each table, each from two simulations whose product has no bias.
        episodes: of each simulation.
    """

    blocks: int = 16
    episodes: int = 128

    def predicted(self, oracle: Oracle[Parity]) -> float:
        """E[(2 J - 1)^2] = E[m_1^2 ... m_k^2], means of two signs and of four: 2 * 4^-k."""
        return float(2 * 4.0**-oracle.setting.k)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over all tables of the product of two estimates of 2 J - 1; the interval is that of blocks."""
        setting = lab.setting
        met = np.delete(np.arange(4 * setting.k), [1, 3, *range(0, 4 * setting.k, 4)])
        tables = np.zeros((2 ** len(met), 4 * setting.k), np.int64)
        tables[:, met] = np.arange(len(tables))[:, None] >> np.arange(len(met)) & 1
        keys = np.random.SeedSequence(seed).generate_state(len(tables))
        values = np.empty((len(tables), self.blocks))
        for number, claims in enumerate(tables):
            policy = local_table(setting, np.eye(2)[claims])
            rewards = lab.simulate(policy, 2 * self.blocks * self.episodes, int(keys[number])).rewards
            values[number] = np.prod(2 * rewards.reshape(self.blocks, 2, -1).mean(axis=2) - 1, axis=1)
        return mean_interval(values.mean(axis=0))


@dataclasses.dataclass(frozen=True)
class StageSearch:
    """Episodes of a search that learns the claims of one stage after the other.

    It claims at random where it knows nothing. Once the claims before are right, an episode tells the right claim of
    the row that it met: the one it made if there was a reward, else the other. It goes on when all rows have been met.

    Attributes:
        trials: searches.
    """

    trials: int = 1000

    def predicted(self, oracle: Oracle[Parity]) -> float:
        """A coupon collector's time over two rows at first and over four afterwards: 3 + (k - 1) 25/3."""
        return 3 + (oracle.setting.k - 1) * 4 * (1 + 1 / 2 + 1 / 3 + 1 / 4)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over searches; not a number if what they have learnt fails on the full task."""
        setting = lab.setting
        view, total = View.of(setting, "local"), np.zeros(self.trials)
        table = np.full((view.rows, 2), 0.5)
        for position in range(setting.k):
            key = int(np.random.SeedSequence((seed, position)).generate_state(1)[0])
            policy = local_table(setting, table)
            played = lab.simulate(policy, self.trials * TOGETHER, key, stage=position + 1)
            rows, claims = view.index(played.observations[:, position]), played.actions[:, position]
            right = np.where(played.rewards > 0, claims, 1 - claims)
            met = np.unique(rows)
            seen = rows.reshape(self.trials, TOGETHER, 1) == met
            if not seen.any(axis=1).all():
                return point(math.nan)
            total += 1 + seen.argmax(axis=1).max(axis=1)
            table[rows[:TOGETHER]] = np.eye(2)[right[:TOGETHER]]
        check = lab.simulate(local_table(setting, table), TOGETHER, seed)
        return mean_interval(total) if check.rewards.all() else point(math.nan)


@dataclasses.dataclass(frozen=True)
class LearnersApart:
    """Share of runs that learn the task: of `curriculum-rlvr`, less that of `rlvr` with the same budget.

    Attributes:
        budget: episodes of a run.
        seeds: runs of each.
        learner: hyper-parameters of both.
    """

    budget: int
    seeds: int
    learner: tuple[tuple[str, Any], ...] = ()

    def predicted(self, oracle: Oracle[Parity]) -> float:
        """One: the stages teach, and the outcome alone does not."""
        return 1.0

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Difference of shares; with every run alike the interval is a point."""
        numbers, shares = run_seeds(seed, self.seeds), []
        for agent in ("curriculum-rlvr", "rlvr"):
            policies = lab.train(agent, numbers, self.budget, **dict(self.learner))
            learnt = [lab.simulate(policy, 4096, seed).rewards.mean() >= (1 + LEARNT) / 2 for policy in policies]
            shares.append(float(np.mean(learnt)))
        variance = sum(share * (1 - share) / self.seeds for share in shares)
        return interval(shares[0] - shares[1], math.sqrt(variance))


claim = ClaimMaker("parity")


_OURS, _GRADIENTS = "product form of tables; ", "arXiv 1703.07950, gradients of parities; "
_EXACT = "tolerance: none beyond the interval"

CLAIMS: tuple[Claim, ...] = (
    claim(
        "product",
        Product(),
        source="product form of tables",
        statement="The reward of a local table is 1/2 and half the product of how much each position leans to "
        "the right claim",
        falsified_by="a verifier that also judges the claims on the way, which makes it a product of chances",
        formula="1/2 + 1/2 m_1 ... m_k",
    ),
    claim(
        "no-gradient",
        Slope(0),
        source="product form of tables",
        statement="At the uniform policy the gradient of the full task's outcome in a local table's logits is zero",
        falsified_by="a verifier that pays for a claim on the way",
        formula="0",
    ),
    claim(
        "first-stage",
        Slope(1),
        source="product form of tables",
        statement="At stage 1 the gradient at the uniform policy has the squared norm 1/16",
        falsified_by="a ladder whose first stage asks for more than one bit",
        formula="1/16",
    ),
    claim(
        "along-parity",
        Along(0),
        source="arXiv 1703.07950, gradients of parities",
        statement="Without a chain of thought the gradient along the parity of the secret bits is 1/4",
        falsified_by="rewards that do not depend on all secret bits",
        formula="1/4",
        parameters={"chain_of_thought": False},
    ),
    claim(
        "blind",
        Along(1),
        source="arXiv 1703.07950, gradients of parities",
        statement="Along the parity of all secret bits but one it is zero, as along all that ignores one",
        falsified_by="a verifier that asks for fewer bits",
        formula="0",
        parameters={"chain_of_thought": False},
    ),
    claim(
        "leaning",
        Leaning(),
        source="product form of tables",
        statement="Random deterministic tables earn sqrt(2) 2^-k above or below guessing, root mean square, so "
        "that 4^k episodes "
        "are needed to see which (2 J - 1 squared, k = 3)",
        falsified_by="a verifier that pays for a claim on the way",
        formula="2 * 4^-k",
        parameters={"k": 3},
    ),
    claim(
        "stages",
        StageSearch(),
        source="search by stages",
        statement="Learning one claim a stage takes a coupon collector's time over its rows: linear in k",
        falsified_by="a ladder that skips stages: what it teaches is wrong",
        formula="3 + (k - 1) 25/3",
        parameters={"k": 8, "d": 12},
    ),
    claim(
        "learners",
        LearnersApart(12_800, 10),
        source="stages against direct training",
        statement="REINFORCE learns 8 bits by stages within a budget in which the outcome alone teaches it nothing",
        falsified_by="a ladder whose stages are all the full task",
        formula="1",
        tolerance=0.1,
        tolerance_reason="one run in ten may differ",
        parameters={"k": 8, "d": 12},
    ),
)
