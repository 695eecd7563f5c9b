"""Still pictures of studies, for documents."""

import textwrap
from pathlib import Path
from typing import Any

from theorybench.envs.core.evidence.study import Axis, Chart, Series, StudyResult
from theorybench.leaderboard.records.store import atomic_write
from theorybench.leaderboard.showing.exhibit_layout import (
    chart_key,
    dodge,
    has_band,
    log_ticks,
    place_labels,
    shortened,
    tick_texts,
    x_range,
    y_range,
)
from theorybench.leaderboard.showing.styles import INK, QUIET, RULE, Style, style
from theorybench.leaderboard.showing.table import plain

#: Inches of a panel, and panels beside each other.
WIDTH, HEIGHT, COLUMNS = 5.6, 3.7, 2
#: Distance of labels as a share of the height of a panel, and letters of a line of its note.
GAP, LETTERS = 0.062, 84
_MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "cross": "P", "x": "X"}


def write_pictures(result: StudyResult, folder: Path, name: str) -> list[Path]:
    """Write `<name>.png` with the charts of an result as panels, and `<name>-<number>.svg` of each of its drawings.

    Returns:
        The paths, atomically written; none for an result of tables alone.
    """
    written = []
    if result.charts:
        written.append(folder / f"{name}.png")
        with atomic_write(written[-1], "wb") as file:
            _figure(result).savefig(file, format="png", facecolor="white")
    for number, picture in enumerate(result.pictures, 1):
        written.append(folder / f"{name}-{number}.svg")
        with atomic_write(written[-1]) as file:
            file.write(picture.svg)
    return written


def _figure(result: StudyResult) -> Any:
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    columns = min(COLUMNS, len(result.charts))
    rows = -(-len(result.charts) // columns)
    engine = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1)
    styles = {group: style(i) for i, group in enumerate(result.all_groups())}
    with rc_context({"text.parse_math": False, "font.size": 8.5}):
        figure = Figure(figsize=(WIDTH * columns, HEIGHT * rows), layout=engine, dpi=160)
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, chart in zip(grid, result.charts, strict=False):
            _panel(axes, chart, styles)
        for axes in grid[len(result.charts) :]:
            axes.set_visible(False)
        figure.draw_without_rendering()
    return figure


def _panel(axes: Any, chart: Chart, styles: dict[str, Style]) -> None:
    for series in chart.series:
        _draw(axes, chart, series, styles[series.group])
    _scale(axes.xaxis, axes.set_xscale, axes.set_xlim, chart.x, x_range(chart))
    _scale(axes.yaxis, axes.set_yscale, axes.set_ylim, chart.y, y_range(chart))
    labels = place_labels(chart, GAP)
    right = labels.side == "right"
    for group, height in labels.heights.items():
        axes.annotate(
            shortened(group),
            (1.0 if right else 0.0, height),
            xycoords="axes fraction",
            xytext=(6 if right else -6, 0),
            textcoords="offset points",
            ha="left" if right else "right",
            va="center",
            color=styles[group].colour,
            annotation_clip=False,
        )
    if not right:
        axes.yaxis.set_label_position("right")
        axes.yaxis.tick_right()
    words = _key_lines(chart)
    axes.set_title(plain(chart.title), loc="left", fontsize=10, fontweight="bold", color=INK, pad=10 + 11 * len(words))
    axes.annotate(
        "\n".join(words),
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 7),
        textcoords="offset points",
        color=QUIET,
        fontsize=7.5,
    )
    axes.set_xlabel(plain(chart.x.title), color=QUIET)
    axes.set_ylabel(plain(chart.y.title), color=QUIET)
    if chart.note:
        lines = "\n".join(textwrap.wrap(plain(chart.note), LETTERS))
        axes.annotate(
            lines,
            (0, 0),
            xycoords="axes fraction",
            xytext=(0, -34),
            textcoords="offset points",
            va="top",
            color=QUIET,
            fontsize=7.5,
        )
    axes.tick_params(which="both", length=0, labelcolor=QUIET)
    axes.grid(color=RULE, linewidth=0.5)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(RULE)


def _key_lines(chart: Chart) -> list[str]:
    """Return what marks mean, in lines that are no wider than a panel."""
    lines = [""]
    for words in chart_key(chart):
        if lines[-1] and len(lines[-1]) + len(words) > LETTERS:
            lines.append("")
        lines[-1] += f"   {words}" if lines[-1] else words
    return lines


def _scale(axis: Any, set_scale: Any, set_limits: Any, wanted: Axis, ends: tuple[float, float]) -> None:
    set_scale(wanted.scale)
    if wanted.ticks:
        axis.set_ticks(wanted.ticks, tick_texts(wanted.ticks))
        axis.set_ticks([], minor=True)
    elif wanted.scale == "log":  # matplotlib's own labels are formulas, which are not parsed here
        axis.set_ticks(*zip(*log_ticks(ends), strict=True))
        axis.set_ticks([], minor=True)
    set_limits(*ends)  # last: ticks beyond the ends would widen them


def _draw(axes: Any, chart: Chart, series: Series, own: Style) -> None:
    from matplotlib.transforms import offset_copy

    if series.style == "predicted":
        colour = INK if has_band(chart, series.group) else own.colour
        dashed = {"linewidth": 1.0, "linestyle": (0, (4, 3))} if has_band(chart) else {"linewidth": 1.4}
        look: dict[str, Any] = {"color": colour, **dashed}
        mark = "_" if len(series.x) == 1 else ""
        axes.plot(series.x, series.y, marker=mark, markersize=14, zorder=2.2, **look)
    elif series.style == "band":
        axes.plot(series.x, series.y, color=own.colour, linewidth=1.9, zorder=2.1)
        if series.low:
            axes.fill_between(series.x, series.low, series.high, color=own.colour, alpha=0.2, linewidth=0)
    elif series.style == "published":
        axes.plot(
            series.x,
            series.y,
            "o",
            color=own.colour,
            markersize=8,
            markerfacecolor="none",
            markeredgewidth=1.7,
            clip_on=False,
        )
    elif series.style == "censored":
        aside = offset_copy(axes.transData, axes.figure, 5 * dodge(chart, series.group), units="points")
        dash = {"color": own.colour, "markersize": 8, "markeredgewidth": 1.4, "linestyle": ""}
        axes.plot(series.x, series.y, marker="_", transform=aside, zorder=2.5, **dash)
        arrow = {"arrowstyle": "<|-", "color": own.colour, "shrinkA": 0, "shrinkB": 0}
        for point in zip(series.x, series.y, strict=True):
            axes.annotate("", point, (0, 13), xycoords=aside, textcoords="offset points", arrowprops=arrow)
    else:
        counted = series.style == "simulated"
        if series.low:
            axes.vlines(series.x, series.low, series.high, color=own.colour, linewidth=1.1, zorder=2.4)
        mark = "x" if counted else _MARKERS[own.symbol]
        axes.plot(series.x, series.y, mark, color=own.colour, markersize=5, linestyle="", zorder=2.5)
