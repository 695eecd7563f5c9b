"""A still picture of learning curves: one column for each environment, one row for each group of agents."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from theorybench.envs.core.errors import ParameterError
from theorybench.leaderboard.comparing.board import Board, EnvironmentBoard
from theorybench.leaderboard.comparing.series import Series
from theorybench.leaderboard.showing.picture import checked_path, save
from theorybench.leaderboard.showing.styles import INK, QUIET, RULE, style

#: Inches of a panel, and of the column of names.
WIDTH, HEIGHT, NAMES = 2.0, 1.75, 1.75
#: What lies further below the reference is not drawn: it would leave no room for the rest. All panels reach the second.
LEAST, MARGIN = -0.55, -0.08
#: Episodes at which a policy that was scored once is drawn, over those of the one before.
BESIDE = 0.7


def picture_of_curves(board: Board, path: str | Path, groups: Mapping[str, Sequence[str]]) -> Path:
    """Draw the score by episodes spent, with its interval, and write a picture, atomically.

    Args:
        board: what is drawn.
        path: ends in .png, .svg or .pdf.
        groups: labels of agents by title; each group has a row, and its agents are told apart by colour.

    Returns:
        The absolute path.

    Raises:
        ParameterError: another ending, or no group.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    path = checked_path(path)
    if not groups:
        raise ParameterError("groups", groups, "at least one")
    columns = len(board.environments)
    shown = {agent for agents in groups.values() for agent in agents}
    lines = [line for entry in board.environments for line in entry.curves if line.label in shown]
    bottom = max(LEAST, min([MARGIN, *(min(line.low or line.value) for line in lines)]))
    engine = ConstrainedLayoutEngine(w_pad=0.05, h_pad=0.06)
    figure = Figure(figsize=(WIDTH * columns + NAMES, HEIGHT * len(groups) + 0.3), layout=engine, dpi=110)
    with rc_context({"text.parse_math": False, "font.size": 7.5}):
        grid = figure.subplots(len(groups), columns, squeeze=False, sharex="col", sharey=True)
        for line, (axes, (title, agents)) in enumerate(zip(grid, groups.items(), strict=True)):
            for panel, entry in zip(axes, board.environments, strict=True):
                _draw(panel, entry, agents)
                panel.set_ylim(bottom, 1.06)
                if line == 0:
                    panel.set_title(entry.environment.label, fontsize=8.5, color=INK)
                if line == len(groups) - 1:
                    panel.set_xlabel("episodes", color=QUIET)
            axes[0].set_ylabel("score", color=QUIET)
            _name(axes[-1], title, agents)
    return save(figure, path)


def _draw(axes: Any, entry: EnvironmentBoard, agents: Sequence[str]) -> None:
    """Draw the curves of some agents on one environment; reference and optimum are dotted lines."""
    for level in (0.0, 1.0):
        axes.axhline(level, color=QUIET, linewidth=0.8, linestyle=":")
    single = 0
    for series in entry.curves:
        if series.label in agents:
            _line(axes, series, style(agents.index(series.label)).colour, BESIDE**single)
            single += len(series.x) == 1
    budget = entry.environment.budget
    axes.set_xscale("log")
    axes.set_xlim(budget / 80, budget * 1.15)
    ticks = [budget // 64, budget // 8, budget]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.tick_params(length=0, labelcolor=QUIET)
    axes.grid(color=RULE, linewidth=0.4)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(RULE)


def _line(axes: Any, series: Series, colour: str, shift: float) -> None:
    """Draw a curve; policies that were scored once stand beside each other, shifted by a factor."""
    if len(series.x) == 1:
        (x,), (value,) = series.x, series.value
        if series.low is not None and series.high is not None:
            axes.vlines(x * shift, series.low, series.high, color=colour, alpha=0.5, linewidth=3)
        axes.plot(x * shift, value, color=colour, marker="o", markersize=4)
        return
    if series.low is not None and series.high is not None:
        axes.fill_between(series.x, series.low, series.high, color=colour, alpha=0.18, linewidth=0)
    axes.plot(series.x, series.value, color=colour, linewidth=1.4, marker="o", markersize=2.2)


def _name(axes: Any, title: str, agents: Sequence[str]) -> None:
    """Write the names of a group right of its row."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=style(place).colour, linewidth=2) for place in range(len(agents))]
    legend = axes.legend(
        handles,
        agents,
        title=title,
        loc="upper left",
        bbox_to_anchor=(1.04, 1.04),
        frameon=False,
        alignment="left",
        handlelength=1.2,
        labelcolor=INK,
    )
    legend.get_title().set_fontweight("bold")
