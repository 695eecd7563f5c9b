"""Charts of a board: learning curves, performance profiles, pass@K. Series are named by the labels of agents."""

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.study import Axis, Chart, Level, Series
from theorybench.leaderboard.comparing.groups import FAILED_SCORE, EnvironmentInfo, Group
from theorybench.leaderboard.comparing.statistics import (
    CLIP,
    bootstrap_interval,
    clip_scores,
    interquartile_mean,
    performance_profile,
)
from theorybench.leaderboard.records.record import Record

#: Scores at which performance profiles are computed.
THRESHOLDS = np.linspace(-1.0, 1.0, 81)
#: The two scores that are known: lines of every chart of scores.
KNOWN = (Level(0.0, "reference"), Level(1.0, "optimum"))
#: What the shades and bars of a board are.
BARS = "95 % interval"
_PASS = re.compile(r"(?:(?P<task>.+)/)?pass@(?P<k>[1-9]\d*)")


def learning_chart(info: EnvironmentInfo, groups: Sequence[Group], draws: int) -> Chart:
    """Return the interquartile mean over runs of the clipped score by episodes spent, for each unprivileged agent.

    A run holds its last scored policy until the next one. A failed run ends at -1; where none of its policies was
    scored it is at -1 throughout. A curve begins where all runs have a score.
    """
    ticks = sorted({max(1, info.budget // part) for part in (64, 16, 4, 1)})
    episodes = Axis("episodes", "log", (info.budget / 80, info.budget * 1.15), tuple(ticks))
    curves = tuple(_curve(group, draws) for group in groups if not group.agent.privileged)
    low = min((min(one.low or one.y) for one in curves), default=0.0)
    score = Axis("score", range=(min(-0.06, low - 0.06), 1.1), clip=FAILED_SCORE)
    return Chart(info.label, episodes, score, curves, points="interquartile mean of runs", bars=BARS, levels=KNOWN)


def profile_chart(title: str, groups: Sequence[Group], draws: int) -> Chart:
    """Return the share of runs above each score, averaged over environments, for each agent that is not privileged."""
    labels = sorted({group.agent.label for group in groups if not group.agent.privileged})
    found = []
    for label in labels:
        scores = [group.scores for group in groups if group.agent.label == label]
        shares = functools.partial(performance_profile, thresholds=THRESHOLDS)
        interval = bootstrap_interval(shares, scores, draws=draws, bounds=(0.0, 1.0))
        found.append(_series(label, THRESHOLDS, *interval))
    score, share = Axis("score", range=(-1.02, 1.02)), Axis("share of runs above it", range=(-0.02, 1.04))
    return Chart(title, score, share, tuple(found), points="share of runs", bars=BARS)


def pass_charts(groups: Sequence[Group]) -> tuple[Chart, ...]:
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
                one = Series(group.agent.label, "band", tries, [line[k] for k in tries])
                tasks.setdefault(task, []).append(one)
    return tuple(_pass_chart(task or "all tasks", tasks[task]) for task in sorted(tasks))


def _pass_chart(title: str, series: Sequence[Series]) -> Chart:
    tries = Axis("tries K", "log", ticks=tuple(sorted({x for one in series for x in one.x})))
    return Chart(title, tries, Axis("pass@K"), tuple(series))


def _curve(group: Group, draws: int) -> Series:
    lines = [_line(record) for record in group.records]
    start = max(line[0][0] for line in lines)
    grid = sorted({episodes for line in lines for episodes, _ in line if episodes >= start})
    scores = np.array([[_held(line, episodes) for line in lines] for episodes in grid])
    interval = bootstrap_interval(interquartile_mean, [clip_scores(scores)], draws=draws, bounds=CLIP)
    curve = _series(group.agent.label, grid, *interval)
    if (scores >= CLIP[0]).all():
        return curve
    raw, ends = interquartile_mean([scores]), zip(curve.low, curve.high, strict=True)
    shown = [f" [{low:.4g}, {high:.4g}]" for low, high in ends] or [""] * len(grid)
    details = (f"{y:.4g}{end}, raw {own:.4g}" for y, end, own in zip(curve.y, shown, raw, strict=True))
    return dataclasses.replace(curve, details=tuple(details))


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


def _series(label: str, x: Sequence[float] | np.ndarray, value: Any, low: Any, high: Any) -> Series:
    """Return a line in its band, which has none where an environment has one run only."""
    return Series(label, "band", x, value, *(() if np.isnan(low).any() else (low, high)))
