"""Rows of a table: aggregate scores with intervals, ranks, comparisons and costs."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import Interval
from theorybench.leaderboard.comparing.groups import Group
from theorybench.leaderboard.comparing.statistics import (
    bootstrap_interval,
    interquartile_mean,
    optimality_gap,
    probability_of_improvement,
)

#: Agents with fewer runs on an environment are shown unranked.
RANKED_SEEDS = 5
#: The agent with which all others are compared.
REFERENCE_AGENT = "reference"
#: Scores closer than the last digit shown are equal: agents without any noise are not ranked by a hair.
RESOLUTION = 1e-3


@dataclasses.dataclass(frozen=True)
class Row:
    """The row of one agent. Intervals are of 95 %; their ends are NaN if an environment has only one run."""

    agent: str  # id of the agent
    label: str  # of the agent
    privileged: bool  # drawn as a line, never ranked
    rank: int | None  # one more than the number of agents that are surely better; None where it is unranked
    remark: str  # why it is unranked, or ""
    score: Interval  # interquartile mean of the clipped scores
    optimality_gap: Interval  # mean of what runs lack to 1
    #: probability that a run beats one of the reference agent on the environments that both have; None without such
    improvement: Interval | None
    lead: Interval | None  # the same against the next row, where both are ranked
    runs: int  # how many
    failed: int  # how many of them failed
    seeds: int  # fewest runs on one environment
    queries_per_response: float  # of a reward model, by the final policy: mean over runs that did not fail
    environments: int  # how many have runs
    of_environments: int  # how many there are
    seconds_wall: float  # mean wall time of a run
    seconds_cpu: float | None  # mean processor time of a run; None where it is not known
    peak_memory_bytes: int | None  # largest; None where it is not known
    lifted: bool  # whether runs were trained together, so that times are shares and memory is that of all


def rank(groups: Sequence[Group], draws: int) -> tuple[Row, ...]:
    """Return the ranked rows, then the unranked, then the privileged ones, the best first.

    Args:
        groups: of the environments on which agents are compared.
        draws: bootstrap draws of each interval.
    """
    by_agent = {agent.id: [g for g in groups if g.agent.id == agent.id] for agent in (g.agent for g in groups)}
    count = len({g.environment.id for g in groups})
    reference = next((own for own in by_agent.values() if own[0].agent.agent == REFERENCE_AGENT), [])
    rows = [_row(own, reference, count, draws) for own in by_agent.values()]
    rivals = [row for row in rows if not row.remark]
    ranked = [
        row if row.remark else dataclasses.replace(row, rank=1 + sum(_surely_better(r, row) for r in rivals))
        for row in rows
    ]
    ranked.sort(key=lambda r: (r.privileged, r.rank is None, r.rank or 0, -r.score.value, r.label))
    leads = [
        _compare(by_agent[a.agent], by_agent[b.agent], draws) if a.rank and b.rank else None
        for a, b in itertools.pairwise(ranked)
    ]
    return tuple(dataclasses.replace(row, lead=lead) for row, lead in zip(ranked, [*leads, None], strict=True))


def _row(groups: Sequence[Group], reference: Sequence[Group], count: int, draws: int) -> Row:
    agent = groups[0].agent
    records = [record for group in groups for record in group.records]
    scores = [group.scores for group in groups]
    queries = [record.queries_per_response for record in records if record.status == "ok"]
    cpu = [r.seconds_cpu for r in records if r.seconds_cpu is not None]
    seeds = min(len(group.records) for group in groups)
    return Row(
        agent=agent.id,
        label=agent.label,
        privileged=agent.privileged,
        rank=None,
        remark=_remark(agent.privileged, len(groups), count, seeds),
        score=_estimate(interquartile_mean, scores, draws=draws),
        optimality_gap=_estimate(optimality_gap, scores, draws=draws),
        improvement=None if agent.agent == REFERENCE_AGENT else _compare(groups, reference, draws),
        lead=None,
        runs=len(records),
        failed=sum(record.status != "ok" for record in records),
        seeds=seeds,
        queries_per_response=float(np.mean(queries)) if queries else 0.0,
        environments=len(groups),
        of_environments=count,
        seconds_wall=float(np.mean([record.seconds_wall for record in records])),
        seconds_cpu=float(np.mean(cpu)) if cpu else None,
        peak_memory_bytes=max((r.peak_memory_bytes for r in records if r.peak_memory_bytes is not None), default=None),
        lifted=any(record.lifted > 1 for record in records),
    )


def _compare(groups: Sequence[Group], others: Sequence[Group], draws: int) -> Interval | None:
    """Return the probability of improvement on the environments that both have; scores that look equal are ties."""
    rivals = {group.environment.id: _shown(group.scores) for group in others}
    common = [group for group in groups if group.environment.id in rivals]
    if not common:
        return None
    scores, opposed = [_shown(g.scores) for g in common], [rivals[g.environment.id] for g in common]
    return _estimate(probability_of_improvement, scores, opposed, draws=draws)


def _estimate(statistic: Callable[..., Any], *samples: Sequence[np.ndarray], draws: int) -> Interval:
    """Bootstrap a statistic."""
    return Interval(*map(float, bootstrap_interval(statistic, *samples, draws=draws)))


def _shown(scores: np.ndarray) -> np.ndarray:
    return np.round(scores / RESOLUTION) * RESOLUTION


def _surely_better(a: Row, b: Row) -> bool:
    return a.score.low > b.score.high + RESOLUTION


def _remark(privileged: bool, environments: int, of_environments: int, seeds: int) -> str:
    """Say why an agent is unranked; "" where it is ranked."""
    if privileged:
        return "privileged"
    if environments < of_environments:
        return f"{environments} of {of_environments} environments"
    return f"{seeds} of {RANKED_SEEDS} seeds" if seeds < RANKED_SEEDS else ""
