"""Rows of a table: aggregate scores with intervals, ranks within divisions, comparisons and costs."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from theorybench.envs.core.evidence.interval import Interval
from theorybench.leaderboard.comparing.divisions import Division, division
from theorybench.leaderboard.comparing.groups import Group
from theorybench.leaderboard.comparing.statistics import (
    CLIP,
    Resampled,
    bootstrap_interval,
    interquartile_mean,
    optimality_gap,
    probability_of_improvement,
    resample,
)

#: Agents with fewer runs on an environment are shown unranked.
RANKED_SEEDS = 5
#: The agent with which all others are compared.
REFERENCE_AGENT = "reference"
#: Scores closer than the last digit shown are equal: agents without any noise are not ranked by a hair.
RESOLUTION = 1e-3
#: Environments on which an agent scores less than this are counted.
LOW = 0.1


class Rank(NamedTuple):
    """The ranks that an agent may have within its division."""

    best: int  # one more than the number of agents that are surely better
    worst: int  # the number of agents less those that are surely worse


@dataclasses.dataclass(frozen=True)
class Row:
    """The row of one agent. Intervals are of 95 %; their ends are NaN if an environment has only one run."""

    agent: str  # id of the agent
    label: str  # of the agent
    privileged: bool  # drawn as a line, never ranked
    sees: str  # what it is shown on any of the environments: one of `SEES`
    objective: str  # what it maximises: "reward" where it never sees a price that these environments have
    preset: str | None  # of tuned hyper-parameters; None for defaults and what was given
    division: str  # of the agents it is ranked among, in words
    rank: Rank | None  # within its division; None where it is unranked
    remark: str  # why it is unranked, or ""
    score: Interval  # interquartile mean of the clipped scores
    raw: Interval | None  # the same of the scores as they are; None where none is clipped
    mean: float  # of the clipped scores; environments weigh the same
    minimum: float  # the lowest score on one environment: an interquartile mean of scores as they are
    below: int  # number of environments on which its score is below `LOW`
    optimality_gap: Interval  # mean of what runs lack to 1
    #: probability that a run beats one of the reference agent on the environments that both have; None without such
    improvement: Interval | None
    lead: Interval | None  # the same against the next row of the division, where both are ranked
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

    @property
    def leads(self) -> bool:
        """Whether no agent of its division is surely better."""
        return self.rank is not None and self.rank.best == 1


def rank(groups: Sequence[Group], draws: int) -> tuple[Row, ...]:
    """Return the rows of each division, the best score first: ranked, then unranked ones; the privileged come last.

    Args:
        groups: of the environments on which agents are compared.
        draws: bootstrap draws of each interval.
    """
    by_agent = {agent.id: [g for g in groups if g.agent.id == agent.id] for agent in (g.agent for g in groups)}
    count = len({g.environment.id for g in groups})
    reference = next((own for own in by_agent.values() if own[0].agent.agent == REFERENCE_AGENT), [])
    divisions = {id: division(r for group in own for r in group.records) for id, own in by_agent.items()}
    # Every agent has draws of its own; which, depends on nothing but the agents.
    resampled = {
        id: resample(interquartile_mean, [group.scores for group in by_agent[id]], draws=draws, seed=number)
        for number, id in enumerate(sorted(by_agent))
    }
    rows = [_row(own, divisions[id], resampled[id], reference, count, draws) for id, own in by_agent.items()]
    rows.sort(key=lambda r: (r.privileged, divisions[r.agent], bool(r.remark), -r.score.value, r.label))
    for title in {row.division for row in rows}:
        places = [i for i, row in enumerate(rows) if row.division == title and not row.remark]
        better = {(i, j) for i, j in itertools.permutations(places, 2) if _surely_better(rows, resampled, i, j)}
        for i in places:
            ahead, behind = (sum((j, i) in better for j in places), sum((i, j) in better for j in places))
            rows[i] = dataclasses.replace(rows[i], rank=Rank(1 + ahead, len(places) - behind))
        for i, j in itertools.pairwise(places):
            lead = _compare(by_agent[rows[i].agent], by_agent[rows[j].agent], draws)
            rows[i] = dataclasses.replace(rows[i], lead=lead)
    return tuple(rows)


def _row(
    groups: Sequence[Group], own: Division, score: Resampled, reference: Sequence[Group], count: int, draws: int
) -> Row:
    agent = groups[0].agent
    records = [record for group in groups for record in group.records]
    scores = [group.scores for group in groups]
    raw = [group.raw_scores for group in groups]
    each = [float(interquartile_mean([runs])) for runs in raw]
    clipped = any((runs < CLIP[0]).any() for runs in raw)
    queries = [record.queries_per_response for record in records if record.status == "ok"]
    cpu = [r.seconds_cpu for r in records if r.seconds_cpu is not None]
    seeds = min(len(group.records) for group in groups)
    return Row(
        agent=agent.id,
        label=agent.label,
        privileged=agent.privileged,
        sees=own.sees,
        objective="reward" if own.reward_alone else "setting",
        preset=next((record.preset for record in records if record.preset is not None), None),
        division=own.title,
        rank=None,
        remark=_remark(agent.privileged, len(groups), count, seeds),
        score=Interval(*map(float, score.interval(bounds=CLIP))),
        raw=_estimate(interquartile_mean, raw, draws=draws, bounds=(-math.inf, CLIP[1])) if clipped else None,
        mean=float(np.mean([runs.mean() for runs in scores])),
        minimum=min(each),
        below=sum(value < LOW for value in each),
        optimality_gap=_estimate(optimality_gap, scores, draws=draws, bounds=(0.0, 2.0)),
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


def _estimate(
    statistic: Callable[..., Any], *samples: Sequence[np.ndarray], draws: int, bounds: tuple[float, float] = (0.0, 1.0)
) -> Interval:
    """Bootstrap a statistic."""
    return Interval(*map(float, bootstrap_interval(statistic, *samples, draws=draws, bounds=bounds)))


def _shown(scores: np.ndarray) -> np.ndarray:
    return np.round(scores / RESOLUTION) * RESOLUTION


def _surely_better(rows: Sequence[Row], resampled: Mapping[str, Resampled], i: int, j: int) -> bool:
    """Whether the interval of the difference of two scores lies above `RESOLUTION`."""
    if not rows[i].score.value > rows[j].score.value + RESOLUTION:
        return False
    return bool((resampled[rows[i].agent] - resampled[rows[j].agent]).interval().low > RESOLUTION)


def _remark(privileged: bool, environments: int, of_environments: int, seeds: int) -> str:
    """Say why an agent is unranked; "" where it is ranked."""
    if privileged:
        return "privileged"
    if environments < of_environments:
        return f"{environments} of {of_environments} environments"
    return f"{seeds} of {RANKED_SEEDS} seeds" if seeds < RANKED_SEEDS else ""
