"""A still picture of ladders: episodes to learn a task by its size, one panel for each ladder, theory in black."""

from collections.abc import Sequence
from typing import Any

from theorybench.leaderboard.board import Board
from theorybench.leaderboard.curves import agent_styles
from theorybench.leaderboard.ladder_charts import shown_range
from theorybench.leaderboard.ladders import Climb, LadderBoard
from theorybench.leaderboard.styles import INK, QUIET, RULE, Style

#: Inches of a panel; most panels in a row.
WIDTH, LEAST_WIDTH, HEIGHT, COLUMNS = 4.0, 7.0, 3.3, 3
#: Inches of a name in the key.
NAME = 2.7
#: How the law of each way of learning is drawn, and what it is called.
LINES: dict[str, Any] = {"direct": (":", "theory, full task alone"), "curriculum": ("--", "theory, with a curriculum")}
_MARKS = {"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "cross": "P", "x": "X"}


def ladder_figure(board: Board) -> Any:
    """Draw the ladders of a board; sizes are linear where theory's direct law is exponential, else logarithmic.

    Returns:
        A matplotlib Figure.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    styles = agent_styles(board)
    columns = min(COLUMNS, len(board.ladders))
    lines = -(-len(board.ladders) // columns)
    engine = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
    figure = Figure(figsize=(max(LEAST_WIDTH, WIDTH * columns), HEIGHT * lines + 0.5), layout=engine, dpi=130)
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, ladder in zip(grid, board.ladders, strict=False):
        _draw(axes, ladder, styles)
    for axes in grid[len(board.ladders) :]:
        axes.set_visible(False)
    _key(figure, board.ladders, styles)
    return figure


def _draw(axes: Any, ladder: LadderBoard, styles: dict[str, Style]) -> None:
    low, high = shown_range(ladder)
    for law in ladder.laws:
        axes.plot(law.sizes, law.queries, color=INK, linewidth=1.2, linestyle=LINES[law.way][0], zorder=1)
    axes.axhline(ladder.budget, color=QUIET, linewidth=0.7, linestyle=(0, (1, 3)))
    place = {"xycoords": ("axes fraction", "data"), "va": "bottom"}
    axes.annotate("budget", (0, ladder.budget), **place, fontsize=6.5, color=QUIET)
    for climb in ladder.climbs:
        _climb(axes, climb, styles[climb.agent], ladder.budget)
    exponential = any(law.growth == "exponential" for law in ladder.laws)
    axes.set_xscale("linear" if exponential else "log")
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.set_xticks(ladder.sizes, [f"{size:g}" for size in ladder.sizes])
    axes.set_xticks([], minor=True)
    axes.set_yticks([], minor=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_title(ladder.label, loc="left", fontsize=9.5, fontweight="bold", color=INK)
    axes.set_xlabel(ladder.size, fontsize=8, color=QUIET)
    axes.set_ylabel(f"episodes to a score of {ladder.target:g}", fontsize=8, color=QUIET)
    axes.tick_params(length=0, labelsize=7.5, labelcolor=QUIET)
    axes.grid(color=RULE, linewidth=0.4)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(RULE)


def _climb(axes: Any, climb: Climb, own: Style, budget: int) -> None:
    """Draw medians with the range of the runs, and hollow triangles where the median run did not arrive."""
    reached = [(p.size, p.median, p.fastest, p.slowest) for p in climb.points if p.median is not None]
    missed = [p.size for p in climb.points if p.median is None]
    mark = _MARKS.get(own.symbol, "o")
    for size, median, fastest, slowest in reached:
        axes.plot([size, size], [fastest or median, slowest or budget], color=own.colour, linewidth=1.0, alpha=0.6)
    sizes, medians = [p[0] for p in reached], [p[1] for p in reached]
    axes.plot(sizes, medians, color=own.colour, linewidth=1.5, marker=mark, markersize=3.8, zorder=3)
    axes.plot(missed, [1.4 * budget] * len(missed), "^", color=own.colour, markerfacecolor="none", markersize=5)


def _key(figure: Any, ladders: Sequence[LadderBoard], styles: dict[str, Style]) -> None:
    """Name agents and lines below the panels."""
    from matplotlib.lines import Line2D

    named = {climb.agent: climb.label for ladder in ladders for climb in ladder.climbs}
    handles: list[Any] = [
        Line2D([], [], color=styles[id].colour, marker=_MARKS.get(styles[id].symbol, "o"), markersize=4, label=label)
        for id, label in named.items()
    ]
    ways = [way for way in LINES if any(law.way == way for ladder in ladders for law in ladder.laws)]
    handles += [Line2D([], [], color=INK, linestyle=LINES[way][0], linewidth=1.2, label=LINES[way][1]) for way in ways]
    handles.append(Line2D([], [], color=QUIET, marker="^", markerfacecolor="none", linestyle="", label="not learnt"))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=int(figure.get_figwidth() / NAME),
        frameon=False,
        fontsize=8,
        labelcolor=INK,
    )
