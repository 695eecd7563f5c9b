"""What pages and pictures of a chart have in common: its words, the ends of its axes, where its labels stand."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from theorybench.envs.core.evidence.study import Axis, Chart, Series
from theorybench.leaderboard.showing.styles import INK, Style
from theorybench.leaderboard.showing.words import plain

#: What each style says, in keys and under the pointer.
WORDS = {
    "measured": "measured",
    "line": "measured",
    "band": "measured",
    "simulated": "counted in rollouts",
    "predicted": "theory",
    "published": "published",
    "censored": "not reached: more than",
}
#: A label stands at the end of the first of these that its group has.
LABELLED = ("band", "line", "measured", "predicted", "simulated", "published", "censored")
#: Share of an axis that its data leave free at each end.
MARGIN = 0.05
#: A line with so many points has no markers.
FEW = 12
#: Letters of a name beside its line.
LETTERS = 28
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def axis_range(axis: Axis, values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis: those that are asked for, or what shows all values with a margin."""
    if axis.range is not None:
        return axis.range
    places = [axis.place(value) for value in values if math.isfinite(axis.place(value))]
    low, high = min(places, default=0.0), max(places, default=1.0)
    margin = MARGIN * (high - low) or 0.5
    ends = low - margin, high + margin
    return (10 ** ends[0], 10 ** ends[1]) if axis.scale == "log" else ends


def x_range(chart: Chart) -> tuple[float, float]:
    """Return the ends of the horizontal axis."""
    return axis_range(chart.x, [x for series in chart.series for x in series.x])


def y_range(chart: Chart) -> tuple[float, float]:
    """Return the ends of the vertical axis, intervals included."""
    return axis_range(chart.y, [y for series in chart.series for y in (*series.y, *series.low, *series.high)])


class Labels(NamedTuple):
    """Where the names of groups stand."""

    side: str  # "right" or "left" of the chart; the numbers of the vertical axis are on the other
    heights: dict[str, float]  # of each group's name, as a share of the axis


def place_labels(chart: Chart, gap: float) -> Labels:
    """Put names where lines end, on the side where that moves them less to keep them `gap` apart; else on the right."""
    low, high = (chart.y.place(end) for end in y_range(chart))
    found = {}
    for side in ("right", "left"):
        ends = {group: (chart.y.place(_end(chart, group, side)) - low) / (high - low) for group in chart.groups}
        heights = _apart({group: min(max(end, 0.0), 1.0) for group, end in ends.items()}, gap)
        found[side] = max(abs(heights[group] - ends[group]) for group in ends), heights
    side = "left" if found["left"][0] < found["right"][0] - gap else "right"
    return Labels(side, found[side][1])


def _apart(wanted: dict[str, float], gap: float) -> dict[str, float]:
    """Return the nearest heights, in squares, that are `gap` apart and in the same order.

    With the heights sorted, t_i - i gap must increase: the nearest such sequence pools neighbours that do not, and the
    nearest that stays on the chart is that one, clipped. More labels than a chart holds stand closer.
    """
    groups = sorted(wanted, key=lambda group: wanted[group])
    gap = min(gap, 1 / max(1, len(groups) - 1))
    highest = 1 - (len(groups) - 1) * gap
    blocks: list[tuple[float, int]] = []
    for i, group in enumerate(groups):
        mean, size = wanted[group] - i * gap, 1
        while blocks and blocks[-1][0] > mean:
            earlier, count = blocks.pop()
            mean, size = (earlier * count + mean * size) / (count + size), size + count
        blocks.append((mean, size))
    flat = [min(max(mean, 0.0), highest) for mean, size in blocks for _ in range(size)]
    return {group: flat[i] + i * gap for i, group in enumerate(groups)}


def shortened(group: str) -> str:
    """Return the name of a group as it stands beside its line, without control characters."""
    return plain(group if len(group) <= LETTERS else f"{group[: LETTERS - 1]}…")


def format_tick(value: float) -> str:
    """Write a number of an axis: "128", "20,000", "0.1"."""
    return f"{value:,.0f}" if value == round(value) and abs(value) >= 1 else f"{value:.3g}"


def log_ticks(ends: tuple[float, float]) -> list[tuple[float, str]]:
    """Return where a logarithmic axis is labelled, and how: at powers of ten, with 2 and 5 between where they are few.

    Powers above 100,000 are written as such, and then all of them: "10⁶".
    """
    low, high = (math.log10(end) for end in ends)
    powers = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
    if len(powers) < 3:
        places = [digit * 10.0**power for power in range(math.floor(low), math.ceil(high)) for digit in (1, 2, 5)]
        return [(place, format_tick(place)) for place in places if ends[0] <= place <= ends[1]]
    return [(10.0**power, text) for power, text in zip(powers, tick_texts([10.0**p for p in powers]), strict=True)]


def tick_texts(ticks: Sequence[float]) -> list[str]:
    """Write the numbers of an axis: powers of ten as "10⁶" where one is above 100,000."""
    powers = [math.log10(tick) if tick > 0 else 0.5 for tick in ticks]
    if max(ticks, default=0) <= 100_000 or any(abs(power - round(power)) > 1e-9 for power in powers):
        return [format_tick(tick) for tick in ticks]
    raised = [str(round(power)).translate(_RAISED) for power in powers]
    return [{"⁰": "1", "¹": "10"}.get(power, f"10{power}") for power in raised]


def has_band(chart: Chart, group: str | None = None) -> bool:
    """Return whether a group, or any, is drawn as a line in a band: theory's lines are dashed then."""
    return any(series.group == (group or series.group) and series.style == "band" for series in chart.series)


def theory_look(chart: Chart, series: Series, own: Style) -> tuple[str, str]:
    """Return colour and dash of theory's line: in ink beside a measured line, dashed on a chart that has any."""
    colour = INK if has_band(chart, series.group) else own.colour
    return colour, "dash" if has_band(chart) else own.dash


def has_markers(series: Series) -> bool:
    """Return whether the points of a line in a band are few enough to be marked."""
    return len(series.x) <= FEW


def dodge(chart: Chart, series: Series) -> float:
    """Return how many steps right of its place the marks of a series stand, so that none hides another.

    Values that were not reached coincide where several learners stop at the same budget, policies that were scored
    once where they spent the same.
    """

    def place(one: Series) -> set[float]:
        return set(one.y) if one.style == "censored" else set(one.x) if len(one.x) == 1 else set()

    rivals = [one for one in chart.series if one.style == series.style and place(one) & place(series)]
    return rivals.index(series) - (len(rivals) - 1) / 2 if rivals else 0.0


def _end(chart: Chart, group: str, side: str) -> float:
    """Return the value of the series that carries the group's name, at that side of it: the one that goes furthest."""
    own = [series for series in chart.series if series.group == group]
    furthest = max(max(one.x) for one in own) if side == "right" else min(min(one.x) for one in own)
    series: Series = min((one for one in own if furthest in one.x), key=lambda one: LABELLED.index(one.style))
    points = sorted(zip(series.x, series.y, strict=True))
    return points[-1 if side == "right" else 0][1]


def chart_key(chart: Chart) -> list[str]:
    """Return what the marks of a chart mean."""
    used = {series.style for series in chart.series}
    words = {
        "band": f"line and shade: {chart.points} and {chart.bars}",
        "measured": f"● {chart.points}, bar: {chart.bars}",
        "line": f"marks: {chart.points}, bar: {chart.bars}",
        "simulated": "× counted in rollouts",
        "predicted": "dashed: theory" if "band" in used else "line: theory",
        "published": "○ published",
        "censored": "↥ not reached: more than that",
    }
    return [text for name, text in words.items() if name in used]
