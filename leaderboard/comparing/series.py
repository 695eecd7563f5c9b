"""What is drawn as lines: learning curves, performance profiles, pass@K."""

import dataclasses
import re
from collections.abc import Sequence

import numpy as np

from theorybench.leaderboard.comparing.groups import FAILED_SCORE, Group
from theorybench.leaderboard.comparing.statistics import (
    bootstrap_interval,
    clip_scores,
    interquartile_mean,
    performance_profile,
)
from theorybench.leaderboard.records.record import Record

#: Scores at which performance profiles are computed.
THRESHOLDS = np.linspace(-1.0, 1.0, 81)
_PASS = re.compile(r"(?:(?P<task>.+)/)?pass@(?P<k>[1-9]\d*)")


@dataclasses.dataclass(frozen=True)
class Series:
    """One line, with a band where it is known.

    Attributes:
        agent: id of the agent.
        label: of the agent.
        x: episodes, scores or numbers of tries.
        value: at each x.
        low: lower end of the 95 % interval, or None where an environment has one run only.
        high: upper end likewise.
    """

    agent: str
    label: str
    x: tuple[float, ...]
    value: tuple[float, ...]
    low: tuple[float, ...] | None
    high: tuple[float, ...] | None


@dataclasses.dataclass(frozen=True)
class Panel:
    """Lines that are drawn together under a title."""

    title: str
    series: tuple[Series, ...]


def learning_curves(groups: Sequence[Group], draws: int, seed: int) -> tuple[Series, ...]:
    """Return the interquartile mean over runs of the clipped score by episodes spent, for each agent.

    A run holds its last scored policy until the next one. A failed run ends at -1; where none of its policies was
    scored it is at -1 throughout. A curve begins where all runs have a score.
    """
    return tuple(_curve(group, draws, seed) for group in groups if not group.agent.privileged)


def profiles(groups: Sequence[Group], draws: int, seed: int) -> tuple[Series, ...]:
    """Return the share of runs above each score, averaged over environments, for each agent that is not privileged."""
    agents = {group.agent.id: group.agent for group in groups if not group.agent.privileged}
    found = []
    for agent in sorted(agents.values(), key=lambda a: a.label):
        scores = [group.scores for group in groups if group.agent.id == agent.id]
        interval = bootstrap_interval(
            lambda sample: performance_profile(sample, THRESHOLDS), scores, draws=draws, seed=seed
        )
        found.append(_series(agent.id, agent.label, THRESHOLDS, *interval))
    return tuple(found)


def pass_panels(groups: Sequence[Group]) -> tuple[Panel, ...]:
    """Return pass@K by K of the final policies, mean of the runs that did not fail: all tasks first, then each task.

    Squeezing shows here: the line of a squeezed policy begins above the reference's and ends below it.
    """
    tasks: dict[str, list[Series]] = {}
    for group in groups:
        finished = [record for record in group.records if record.status == "ok"]
        names = sorted(set.intersection(*(set(record.metrics) for record in finished))) if finished else []
        found: dict[str, dict[int, float]] = {}
        for name in names:
            match = _PASS.fullmatch(name)
            values = [record.metrics[name] for record in finished]
            if match and np.isfinite(values).all():
                found.setdefault(match["task"] or "", {})[int(match["k"])] = float(np.mean(values))
        for task, line in found.items():
            if len(line) > 1:
                tries = sorted(line)
                x, shares = tuple(map(float, tries)), tuple(line[k] for k in tries)
                tasks.setdefault(task, []).append(Series(group.agent.id, group.agent.label, x, shares, None, None))
    return tuple(Panel(task or "all tasks", tuple(tasks[task])) for task in sorted(tasks))


def _curve(group: Group, draws: int, seed: int) -> Series:
    lines = [_line(record) for record in group.records]
    start = max(line[0][0] for line in lines)
    grid = sorted({episodes for line in lines for episodes, _ in line if episodes >= start})
    scores = np.array([[_held(line, episodes) for line in lines] for episodes in grid])
    interval = bootstrap_interval(interquartile_mean, [clip_scores(scores)], draws=draws, seed=seed)
    return _series(group.agent.id, group.agent.label, grid, *interval)


def _line(record: Record) -> list[tuple[int, float]]:
    """Return (episodes, score) of a run, its end included."""
    scores = {point.episodes: point.metrics["score"] for point in record.curve}
    if record.score is None:
        scores = (scores or {max(1, record.budget // 64): FAILED_SCORE}) | {record.budget: FAILED_SCORE}
    else:
        scores[max([record.spent.episodes, *scores])] = record.score
    return [(episodes, FAILED_SCORE if np.isnan(score) else score) for episodes, score in sorted(scores.items())]


def _held(line: list[tuple[int, float]], episodes: int) -> float:
    return next(score for spent, score in reversed(line) if spent <= episodes)


def _series(
    agent: str, label: str, x: Sequence[float] | np.ndarray, value: object, low: object, high: object
) -> Series:
    middle, lower, upper = (tuple(np.asarray(line, dtype=float).tolist()) for line in (value, low, high))
    known = not np.isnan(lower).any()
    return Series(agent, label, tuple(map(float, x)), middle, lower if known else None, upper if known else None)
