"""What arXiv 2511.07372 says of ReasoningTree, as tests that run.

The theorems count the reward queries of rejection sampling from the base model. `Search` is that learner, and sees what
any agent sees: it samples picks uniformly where it knows none, keeps the picks of the first response that earns a
reward, and climbs to the next rung with them. One stream of episodes, cut at its rewards, holds many such searches.
Intervals are three standard errors wide on each side.
"""

import dataclasses
import itertools
import math
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.claim import Claim, ClaimMaker
from theorybench.envs.core.evidence.interval import WIDTH, Interval, interval, mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.views import View
from theorybench.envs.curriculum.reasoning_tree.setting import ReasoningTree

#: Accuracy that counts as learnt.
ACCURACY = 0.9
#: Episodes of one simulation, and of one rung at most.
TOGETHER, LIMIT = 2**17, 2**21

#: A rung: its stage, its hint, and the positions of the picks that it teaches.
Rung = tuple[int, int, range]


def depth_ladder(setting: ReasoningTree, increment: int) -> list[Rung]:
    """Ask for ever longer beginnings of S, `increment` new entries at a time."""
    starts = range(0, setting.num_stages, increment)
    ends = [min(start + increment, setting.num_stages) for start in starts]
    return [(end, 0, range(start, end)) for start, end in zip(starts, ends, strict=True)]


def hint_ladder(setting: ReasoningTree, increment: int) -> list[Rung]:
    """Ask for the full task with ever shorter hints: S is learnt from its end."""
    return [(setting.num_stages, new.start, new) for _, _, new in reversed(depth_ladder(setting, increment))]


@dataclasses.dataclass(frozen=True)
class Search:
    """Rejection sampling from the base model, rung by rung.

    Attributes:
        lab: simulates.
        trials: searches.
        prompt: search on this one prompt, as at test time; None for a fresh prompt each episode.
    """

    lab: Lab
    trials: int
    prompt: int | None = None

    def climb(self, rungs: list[Rung], seed: int) -> np.ndarray:
        """Give the reward queries of each search: float64 (trials,), NaN if a rung exceeds `LIMIT` episodes."""
        setting = self.lab.setting
        table = np.full((setting.num_stages, setting.num_actions), 1.0 / setting.num_actions)
        total = np.zeros(self.trials)
        for number, (stage, hint, new) in enumerate(rungs):
            queries, picks = self._rung(TablePolicy(View.of(setting, "position"), table), stage, hint, (seed, number))
            if picks is None:
                return np.full(self.trials, math.nan)
            total += queries
            table[new] = np.eye(setting.num_actions)[picks[new.start - hint : new.stop - hint]]
        return total

    def _rung(
        self, policy: TablePolicy, stage: int, hint: int, seed: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Sample until `trials` rewards; give the episodes each took, and the picks of the first response with one."""
        rewarded: list[np.ndarray] = []
        picks, episodes = None, 0
        for block in itertools.count():
            size = min(TOGETHER, max(self.trials, episodes))
            options: dict[str, Any] = {"stage": stage, "hint": hint}
            if self.prompt is not None:
                options |= {"prompts": [self.prompt], "group_size": size}
            key = int(np.random.SeedSequence((*seed, block)).generate_state(1)[0])
            played = self.lab.simulate(policy, size, key, **options)
            hits = np.flatnonzero(played.rewards > 0)
            if picks is None and len(hits):
                picks = played.actions[hits[0], : played.lengths[hits[0]]]
            rewarded.append(hits + episodes)
            episodes += size
            if sum(map(len, rewarded)) >= self.trials or episodes >= LIMIT:
                break
        ends = np.concatenate(rewarded)[: self.trials]
        enough = len(ends) == self.trials
        return np.diff(ends, prepend=-1).astype(np.float64), picks if enough else None


@dataclasses.dataclass(frozen=True)
class QueryGrowth:
    """Slope of the logarithm of a search's reward queries.

    Attributes:
        against: "length": direct search, against L; "log-length": p = 1, against ln(L + 1); "increment": the cost of
            each rung, against p.
        quantile: None for the mean over searches, or the share of prompts that the queries must solve.
        trials: searches at each point.
        lengths: the L of "log-length".
    """

    against: str
    quantile: float | None = None
    trials: int = 400
    lengths: tuple[int, ...] = (1, 3, 5, 7)

    def points(self, setting: ReasoningTree) -> list[tuple[float, int, int]]:
        """Give (place on the axis, L, increment) of each point."""
        if self.against == "length":
            return [(length, length, length + 1) for length in range(1, setting.L + 1)]
        if self.against == "log-length":
            return [(math.log(length + 1), length, 1) for length in self.lengths]
        return [(p, setting.L, p) for p in range(1, setting.L) if setting.num_stages % p == 0]

    def predicted(self, oracle: Oracle[ReasoningTree]) -> float:
        """Fit the law: a sum of (L+1)/p geometrics of mean (d+1)^p. For means ln(d+1), or 1 for "log-length"."""
        setting = oracle.setting
        values = [self.law(setting.d, length, p) for _, length, p in self.points(setting)]
        return float(_weights([x for x, _, _ in self.points(setting)]) @ np.log(values))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Fit the searches."""
        setting = lab.setting
        logs, errors = [], []
        for number, (_, length, p) in enumerate(self.points(setting)):
            there = lab.at(L=length)
            search = Search(there, self.trials, None if self.quantile is None else number % 2**setting.d)
            queries = search.climb(depth_ladder(there.oracle.setting, p), 100 * seed + number)
            log, error = log_statistic(queries / self._parts(length, p), self.quantile)
            logs.append(log)
            errors.append(error)
        weights = _weights([x for x, _, _ in self.points(setting)])
        return interval(float(weights @ logs), math.sqrt(np.square(weights * errors).sum()))

    def _parts(self, length: int, p: int) -> int:
        """Divide by the number of rungs where the cost of one is meant."""
        return (length + 1) // p if self.against == "increment" else 1

    def law(self, d: int, length: int, p: int) -> float:
        """Give the queries that theory expects, or their quantile."""
        rungs, chance = (length + 1) // p, 1 / (d + 1) ** p
        if self.quantile is None:
            return rungs / chance / self._parts(length, p)
        from scipy.stats import nbinom

        return float(nbinom.ppf(self.quantile, rungs, chance) + rungs)


@dataclasses.dataclass(frozen=True)
class HintsAgainstDepth:
    """Mean reward queries of the hint ladder over those of the depth ladder.

    Attributes:
        trials: searches of each.
    """

    trials: int = 2000

    def predicted(self, oracle: Oracle[ReasoningTree]) -> float:
        """One: each rung of either leaves one pick among d + 1."""
        return 1.0

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Ratio of means; its interval from the standard errors of the logarithms."""
        setting = lab.setting
        search = Search(lab, self.trials)
        depth, first = log_statistic(search.climb(depth_ladder(setting, 1), 2 * seed), None)
        hints, second = log_statistic(search.climb(hint_ladder(setting, 1), 2 * seed + 1), None)
        factor = math.exp(WIDTH * math.hypot(first, second))
        ratio = math.exp(hints - depth)
        return Interval(ratio, ratio / factor, ratio * factor)


@dataclasses.dataclass(frozen=True)
class RungTwice:
    """Mean reward queries of the p = 1 ladder with every rung climbed twice.

    Attributes:
        trials: searches.
    """

    trials: int = 2000

    def predicted(self, oracle: Oracle[ReasoningTree]) -> float:
        """(L+1)(d+1) for the new picks, and one query to confirm on each rung that has none."""
        setting = oracle.setting
        return setting.num_stages * (setting.num_actions + 1.0)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over searches."""
        rungs = [(stage, hint, new) for stage, hint, new in depth_ladder(lab.setting, 1) for _ in range(2)]
        queries = Search(lab, self.trials).climb(rungs, seed)
        return mean_interval(queries)


@dataclasses.dataclass(frozen=True)
class ParityTests:
    """What m fresh prompts do to the wrong chains of L picks, under the parity verifier.

    Attributes:
        confirmations: m.
        survival: measure the share that passes all m, instead of the mean number of tests until the first failure.
        blocks: how often each chain is tested.
    """

    confirmations: int
    survival: bool
    blocks: int = 4_000

    def predicted(self, oracle: Oracle[ReasoningTree]) -> float:
        """2^-m survive; the number of tests is 1 + 1/2 + ... + 2^(1-m)."""
        m = self.confirmations
        return 2.0**-m if self.survival else 2 - 2.0 ** (1 - m)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over all wrong chains and blocks of tests."""
        setting = lab.setting
        odd = np.bincount(setting.tables.path[:-1], minlength=setting.d) % 2
        values = []
        for number, chain in enumerate(itertools.product(range(setting.d), repeat=setting.L)):
            if np.array_equal(np.bincount(chain, minlength=setting.d) % 2, odd):
                continue
            policy = TablePolicy(View.of(setting, "position"), np.eye(setting.num_actions)[[*chain, setting.d]])
            key = int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
            rewards = lab.simulate(policy, self.blocks * self.confirmations, key).rewards
            passed = np.cumprod(rewards.reshape(self.blocks, -1), axis=1)
            values.append(passed[:, -1] if self.survival else 1 + passed[:, :-1].sum(axis=1))
        return mean_interval(np.concatenate(values))


@dataclasses.dataclass(frozen=True)
class LearnersApart:
    """Share of runs that reach 90 % accuracy: of `curriculum-rlvr`, less that of `rlvr` with the same budget.

    Attributes:
        budget: episodes of a run.
        seeds: runs of each.
    """

    budget: int = 20_000
    seeds: int = 10

    def predicted(self, oracle: Oracle[ReasoningTree]) -> float:
        """One less P(some of the budget's base responses earns a reward): without a reward there is no gradient."""
        setting = oracle.setting
        return 1.0 + math.expm1(self.budget * math.log1p(-1 / setting.num_actions**setting.num_stages))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Difference of shares; with every run alike the interval is a point."""
        numbers = run_seeds(seed, self.seeds)
        shares = []
        for agent in ("curriculum-rlvr", "rlvr"):
            policies = lab.train(agent, numbers, self.budget)
            reached = [lab.oracle.evaluate(policy, ["objective"])["objective"] >= ACCURACY for policy in policies]
            shares.append(float(np.mean(reached)))
        variance = sum(share * (1 - share) / self.seeds for share in shares)
        return interval(shares[0] - shares[1], math.sqrt(variance))


def _weights(x: list[float]) -> np.ndarray:
    """Return the weights of a least-squares slope against x: float64 (len(x),)."""
    centred = np.array(x) - np.mean(x)
    return centred / (centred @ centred)


def log_statistic(values: np.ndarray, quantile: float | None) -> tuple[float, float]:
    """Return the logarithm of a sample's mean, or of a quantile, and its standard error."""
    n = len(values)
    if quantile is None:
        mean = float(values.mean())
        return math.log(mean), float(values.std(ddof=1)) / mean / math.sqrt(n)
    ranks = np.sqrt(quantile * (1 - quantile) / n) * np.array([-1, 0, 1]) + quantile
    low, value, high = np.log(np.quantile(values, np.clip(ranks, 0, 1)))
    return float(value), float(high - low) / 2


claim = ClaimMaker("reasoning-tree", "arXiv 2511.07372")


CLAIMS: tuple[Claim, ...] = (
    claim(
        "direct",
        QueryGrowth("length"),
        source="lower bound without a curriculum",
        statement="Direct search for S: the logarithm of its mean reward queries is a line in L of slope ln(d+1)",
        falsified_by="rungs, or hints that leak: anything that pays for a part of S",
        formula="ln(d + 1)",
        parameters={"d": 4, "L": 4},
    ),
    claim(
        "curriculum",
        QueryGrowth("log-length", trials=2000),
        source="upper bound with a curriculum",
        statement="With a ladder of one new pick a rung the mean reward queries are linear in L + 1: an exponent of 1",
        falsified_by="a ladder that skips rungs: a rung of p picks costs (d+1)^p",
        formula="1, the slope of ln((L+1)(d+1)) in ln(L+1)",
    ),
    claim(
        "learners",
        LearnersApart(),
        source="curriculum against direct training",
        statement="REINFORCE learns S on the ladder to 90 % accuracy within a budget in which it sees no reward "
        "without it",
        falsified_by="a ladder whose rungs are all the full task, or hints that leak into it",
        formula="(1 - (d+1)^-(L+1))^budget",
        tolerance=0.1,
        tolerance_reason="one run in ten may differ",
    ),
    claim(
        "test-time-direct",
        QueryGrowth("length", quantile=ACCURACY),
        source="test-time scaling without a curriculum",
        statement="On one prompt, the reward queries that find S with probability 90 % grow with L as their law says, "
        "about (d+1)^L",
        falsified_by="rungs, or hints that leak: anything that pays for a part of S",
        formula="slope in L of ln(90 % quantile of a geometric of chance (d+1)^-(L+1))",
        tolerance=0.01,
        tolerance_reason=".01, for queries are whole numbers",
        parameters={"d": 4, "L": 4},
    ),
    claim(
        "test-time-curriculum",
        QueryGrowth("log-length", quantile=ACCURACY, trials=4000),
        source="test-time scaling with a curriculum",
        statement="On one prompt and with a ladder they grow as a power of L + 1 below 1, the 90 % quantile of L "
        "+ 1 geometrics",
        falsified_by="a ladder that skips rungs",
        formula="slope in ln(L+1) of ln(90 % quantile of a sum of L+1 geometrics of chance 1/(d+1))",
        tolerance=0.01,
        tolerance_reason=".01, for queries are whole numbers",
    ),
    claim(
        "hints",
        HintsAgainstDepth(),
        source="depth-increasing and hint-decreasing curricula",
        statement="Ever shorter hints cost as many reward queries as ever longer beginnings of S",
        falsified_by="hints that give one pick more than they say",
        formula="1",
    ),
    claim(
        "increment",
        QueryGrowth("increment", trials=1000),
        source="size of the steps between stages",
        statement="A rung of p new picks costs (d+1)^p queries, so the whole is least at p = 1, with (L+1)(d+1)",
        falsified_by="a verifier that pays for a part of the rung",
        formula="ln(d + 1), the slope of ln((d+1)^p) in p",
        parameters={"d": 4, "L": 5},
    ),
    claim(
        "confirmation",
        RungTwice(),
        source="size of the steps between stages",
        statement="A rung without a new pick only adds its confirmation: one query with the exact verifier",
        falsified_by="a ladder that skips rungs",
        formula="(L+1)(d+1) + (L+1)",
    ),
    claim(
        "parity-survival",
        ParityTests(4, survival=True),
        source="parity",
        statement="A wrong chain of L picks passes m fresh prompts with probability 2^-m (m = 4)",
        falsified_by="a verifier that sees the chain: it lets no wrong one pass",
        formula="2^-m",
        parameters={"verifier": "parity", "d": 3, "L": 3},
    ),
    claim(
        "parity-tests",
        ParityTests(4, survival=False),
        source="parity",
        statement="Testing a wrong chain until its first failure, m times at most, takes 2 - 2^(1-m) queries (m = 4)",
        falsified_by="a verifier that sees the chain: one query suffices",
        formula="2 - 2^(1-m)",
        parameters={"verifier": "parity", "d": 3, "L": 3},
    ),
)
