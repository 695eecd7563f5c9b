"""Experiments about ReasoningTree: reward queries of searches, and tests by the parity verifier."""

import dataclasses
import itertools
import math

import numpy as np

from theorybench.envs.core.evidence.interval import WIDTH, Interval, mean_interval, ratio_of_means, slope_interval
from theorybench.envs.core.evidence.lab import Lab, seed_of
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.views import View
from theorybench.envs.curriculum.reasoning_tree.setting import ReasoningTree

#: Accuracy at which S counts as learnt.
ACCURACY = 0.9
#: Most episodes of one simulation, and of one task of a curriculum.
TOGETHER, LIMIT = 2**17, 2**21

#: A task of a curriculum: its stage, its hint, and the positions of the picks that it teaches.
Task = tuple[int, int, range]


def depth_curriculum(setting: ReasoningTree, increment: int) -> list[Task]:
    """Return tasks of successively longer prefixes of S, with `increment` new entries each."""
    starts = range(0, setting.num_stages, increment)
    ends = [min(start + increment, setting.num_stages) for start in starts]
    return [(end, 0, range(start, end)) for start, end in zip(starts, ends, strict=True)]


def hint_curriculum(setting: ReasoningTree, increment: int) -> list[Task]:
    """Return full tasks with successively shorter hints: S is learnt from its end."""
    return [(setting.num_stages, new.start, new) for _, _, new in reversed(depth_curriculum(setting, increment))]


@dataclasses.dataclass(frozen=True)
class Search:
    """Rejection sampling from the base model, task by task.

    It samples unknown picks uniformly, keeps the picks of the first rewarded response, and continues with the next
    task. One stream of episodes, split at its rewards, contains many such searches.
    """

    lab: Lab  # the lab that simulates
    trials: int  # number of searches
    prompt: int | None = None  # search on this one prompt, as at inference time; None for a fresh prompt each episode
    limit: int = LIMIT  # most episodes of one task

    def queries(self, tasks: list[Task], seed: int) -> np.ndarray:
        """Return the reward queries of each search: float64 (trials,), NaN if a task exceeds the limit."""
        setting = self.lab.setting
        table = np.full((setting.num_stages, setting.num_actions), 1.0 / setting.num_actions)
        total = np.zeros(self.trials)
        for number, (stage, hint, new) in enumerate(tasks):
            policy = TablePolicy(View.of(setting, "position"), table)
            found = self._search(policy, stage, hint, (seed, number))
            if found is None:
                return np.full(self.trials, math.nan)
            spent, picks = found
            total += spent
            table[new] = np.eye(setting.num_actions)[picks[new.start - hint : new.stop - hint]]
        return total

    def _search(
        self, policy: TablePolicy, stage: int, hint: int, seed: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Sample until `trials` rewards; return the episodes of each, and the picks of the first rewarded response."""
        ends, picks, episodes, block = np.zeros(0, np.int64), np.zeros(0, np.int64), 0, 0
        while len(ends) < self.trials:
            if episodes >= self.limit:
                return None
            size = min(TOGETHER, max(self.trials, episodes))
            one = {} if self.prompt is None else {"prompts": [self.prompt], "group_size": size}
            played = self.lab.simulate(policy, size, seed_of(*seed, block), stage=stage, hint=hint, **one)
            hits = np.flatnonzero(played.rewards > 0)
            if len(hits) and not len(ends):
                picks = played.actions[hits[0], : played.lengths[hits[0]]]
            ends, episodes, block = np.append(ends, hits + episodes), episodes + size, block + 1
        return np.diff(ends[: self.trials], prepend=-1).astype(np.float64), picks


@dataclasses.dataclass(frozen=True)
class QueryGrowth:
    """Slope of the logarithm of a search's reward queries."""

    #: "length": direct search, against L; "log-length": p = 1, against ln(L + 1); "increment": the cost of each task,
    #: against p
    against: str
    #: None for the mean over searches, or the share of prompts that the queries must solve
    quantile: float | None = None
    trials: int = 400  # searches at each point
    lengths: tuple[int, ...] = (1, 3, 5, 7)  # the L of "log-length"
    limit: int = LIMIT  # most episodes of one task

    def points(self, setting: ReasoningTree) -> list[tuple[float, int, int]]:
        """Return (place on the axis, L, increment) of each point."""
        if self.against == "length":
            return [(length, length, length + 1) for length in range(1, setting.L + 1)]
        if self.against == "log-length":
            return [(math.log(length + 1), length, 1) for length in self.lengths]
        return [(p, setting.L, p) for p in range(1, setting.L) if setting.num_stages % p == 0]

    def predicted(self, oracle: Oracle[ReasoningTree]) -> float:
        """Fit the law: a sum of (L+1)/p geometrics of mean (d+1)^p. For means ln(d+1), or 1 for "log-length"."""
        points = self.points(oracle.setting)
        logs = [math.log(self.law(oracle.setting.d, length, p)) for _, length, p in points]
        return slope_interval([x for x, _, _ in points], logs, [0.0] * len(points)).value

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Fit the searches."""
        points, freedom = self.points(lab.setting), math.inf
        logs: list[float] = []
        errors: list[float] = []
        for number, (_, length, p) in enumerate(points):
            there, prompt = lab.at(L=length), None if self.quantile is None else number % 2**lab.setting.d
            search = Search(there, self.trials, prompt, self.limit)
            queries = search.queries(depth_curriculum(there.setting, p), 100 * seed + number)
            value, error, own = log_statistic(queries / self._parts(length, p), self.quantile)
            logs.append(value)
            errors.append(error)
            freedom = min(freedom, own)
        return slope_interval([x for x, _, _ in points], logs, errors, freedom)

    def _parts(self, length: int, p: int) -> int:
        """Return the number of tasks that the queries are divided by: 1 unless the cost of one task is meant."""
        return (length + 1) // p if self.against == "increment" else 1

    def law(self, d: int, length: int, p: int) -> float:
        """Return the queries that theory expects, or their quantile."""
        tasks, chance = (length + 1) // p, 1 / (d + 1) ** p
        if self.quantile is None:
            return tasks / chance / self._parts(length, p)
        from scipy.stats import nbinom

        return float(nbinom.ppf(self.quantile, tasks, chance) + tasks)


class HintsAgainstDepth:
    """Mean reward queries with ever shorter hints over those with ever later stages."""

    def predicted(self, oracle: Oracle[ReasoningTree]) -> float:
        """Return 1: each task of either leaves one pick among d + 1."""
        return 1.0

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Return the ratio of the means of 2,000 searches each."""
        search = Search(lab, 2_000, limit=TOGETHER)
        depth = search.queries(depth_curriculum(lab.setting, 1), 2 * seed)
        return ratio_of_means(search.queries(hint_curriculum(lab.setting, 1), 2 * seed + 1), depth)


def confirmed_queries(lab: Lab, seed: int) -> np.ndarray:
    """Return the reward queries of searches with one new pick a task, each task searched twice: float64 (4000,)."""
    tasks = [task for task in depth_curriculum(lab.setting, 1) for _ in range(2)]
    return Search(lab, 4_000, limit=TOGETHER).queries(tasks, seed)


@dataclasses.dataclass(frozen=True)
class ParityTests:
    """Tests of wrong chains of L picks on m fresh prompts, under the parity verifier."""

    confirmations: int  # the number m of prompts
    survival: bool  # measure the share that passes all m, instead of the mean number of tests until the first failure
    blocks: int = 4_000  # how often each chain is tested

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
            key = seed_of(seed, number)
            rewards = lab.simulate(policy, self.blocks * self.confirmations, key).rewards
            passed = np.cumprod(rewards.reshape(self.blocks, -1), axis=1)
            values.append(passed[:, -1] if self.survival else 1 + passed[:, :-1].sum(axis=1))
        return mean_interval(np.concatenate(values))


def log_statistic(values: np.ndarray, quantile: float | None) -> tuple[float, float, float]:
    """Return the logarithm of a sample's mean, or of a quantile, with its standard error and the freedom of this.

    That of a quantile is a sixth of the distance of the two order statistics that lie three binomial standard errors
    from it. About six standard errors of values lie between them; the freedom is half as many.
    """
    n = len(values)
    if quantile is None:
        mean = float(values.mean())
        return math.log(mean), float(values.std(ddof=1)) / mean / math.sqrt(n), n - 1
    spread = math.sqrt(quantile * (1 - quantile) / n)
    low, value, high = np.log(np.quantile(values, np.clip(quantile + WIDTH * spread * np.array([-1, 0, 1]), 0, 1)))
    return float(value), float(high - low) / (2 * WIDTH), WIDTH * spread * n
