"""Pictures for documents: rankings, learning curves, ladders of difficulty, studies, policies."""

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from theorybench.envs.core.environments.render import policy_picture
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.evidence.study import Chart, StudyResult
from theorybench.envs.core.policy import SettingPolicy
from theorybench.envs.core.registry import lookup
from theorybench.leaderboard.comparing.board import Board, Standing
from theorybench.leaderboard.comparing.ranking import RESOLUTION, Row
from theorybench.leaderboard.records.store import atomic_write
from theorybench.leaderboard.showing.charts.layout import chart_key
from theorybench.leaderboard.showing.ladder_chart import (
    DASHES,
    STRATEGIES,
    WIDTHS,
    ladder_chart,
    ladder_styles,
    natural_scale,
)
from theorybench.leaderboard.showing.still import MARKERS, Sheet, bare, draw_panels, line_handle, panels, save
from theorybench.leaderboard.showing.styles import INK, QUIET, Style, agent_style, agent_styles, group_styles
from theorybench.leaderboard.showing.words import format_rank, is_known, plain, short

#: Panels of studies, of ladders and of learning curves.
STUDY = Sheet(width=5.6, height=3.7, columns=2, dpi=160, font=8.5)
LADDERS = Sheet(width=4.1, height=3.5, columns=3, dpi=130, font=8, named=False, foot=0.85)
CURVES = Sheet(width=2.0, height=1.85, columns=1, dpi=110, font=7.5, named=False, side=1.75)
#: Learning curves show scores down to the first where any is so low; all reach the second.
LEAST, MARGIN = -1.1, -0.08
#: Rankings are as wide as a document shows them, 830 pixels; height of a row, and of all else of a panel, in inches.
RANKING, ROW, HEAD = Sheet(width=5.1875, height=0, columns=1, dpi=160, font=8), 0.22, 0.95
#: Behind what is no row of data.
SOFT = "#f0f2f5"
#: Where a score is cut, which is marked; ticks of curves that reach it.
LOWEST, TICKS = -1.0, (-1.0, -0.5, 0.0, 0.5, 1.0)


def picture(board: Board, path: str | Path) -> Path:
    """Draw scores with their intervals, one panel for each standing; save the picture (see `save`).

    A board that has ladders of difficulty alone shows these.
    """
    return save(_ranking(board) if board.standings else _ladders(board), path)


def picture_of_curves(board: Board, path: str | Path, groups: Mapping[str, Sequence[str]]) -> Path:
    """Draw the score by episodes spent, with its interval, a column for each environment; save the picture.

    Args:
        board: what is drawn.
        path: see `save`.
        groups: labels of agents by title; each group has a row, and its agents are told apart by colour.

    Raises:
        ParameterError: no group, or another ending than .png, .svg or .pdf.
    """
    if not groups:
        raise ParameterError("groups", groups, "at least one")
    charts = [entry.curves.of(labels) for labels in groups.values() for entry in board.environments]
    bottom = min((min(line.low or line.y) for chart in charts for line in chart.series), default=0.0)
    cut = bottom <= LOWEST
    ends = (max(LEAST, bottom - 0.06) if bottom < MARGIN else MARGIN, 1.06)
    score = dataclasses.replace(charts[0].y, range=ends, ticks=TICKS if bottom < -0.5 else ())
    known = agent_styles(board)
    styles = {label: known.get(label) or agent_style(label) for labels in groups.values() for label in labels}
    columns = len(board.environments)
    shown = [_with_few_ticks(dataclasses.replace(chart, y=score)) for chart in charts]
    figure = draw_panels(shown, [styles] * len(shown), CURVES._replace(columns=columns))
    for place, (axes, chart) in enumerate(zip(figure.axes, shown, strict=True)):
        axes.label_outer()
        axes.set_title("", loc="left")
        if place < columns:
            axes.set_title(plain(chart.title), fontsize=8.5, color=INK)
        if not chart.series:
            _leave_empty(axes)
    for row, (title, labels) in enumerate(groups.items()):
        handles = [line_handle(styles[label], label) for label in labels]
        _key(figure.axes[(row + 1) * columns - 1], handles, title, (1.04, 1.04), CURVES.font)
    if cut:
        figure.axes[0].set_yticks(TICKS, [f"≤ {tick:g}" if tick == LOWEST else f"{tick:g}" for tick in TICKS])
    return save(figure, path)


def _leave_empty(axes: Any) -> None:
    """Say in a panel that these agents did not run there."""
    axes.text(0.5, 0.5, "no runs", transform=axes.transAxes, ha="center", va="center", color=QUIET)
    axes.set_facecolor(SOFT)


def picture_of_policy(name: str, policy: Any, env_id: str, parameters: dict[str, Any], path: str | Path) -> Path:
    """Draw a policy, any object with `probs`, beside the reference; save the picture.

    Raises:
        ParameterError: a setting without pictures of policies, or another ending than .png, .svg or .pdf.
    """
    setting = lookup(env_id).make_setting(parameters)
    return save(policy_picture(setting, {"reference": SettingPolicy(setting, "reference"), name: policy}), path)


def write_pictures(result: StudyResult, folder: Path, name: str) -> list[Path]:
    """Write `<name>.png` with the charts of a study as panels, and `<name>-<number>.svg` of each of its drawings.

    Returns:
        The paths, atomically written; none for a study of tables alone.
    """
    written = []
    if result.charts:
        styles = group_styles(result.all_groups())
        written.append(save(draw_panels(result.charts, [styles] * len(result.charts), STUDY), folder / f"{name}.png"))
    for number, drawing in enumerate(result.pictures, 1):
        written.append(folder / f"{name}-{number}.svg")
        with atomic_write(written[-1]) as file:
            file.write(drawing.svg)
    return written


def _with_few_ticks(chart: Chart) -> Chart:
    """Leave the first, the middle and the last tick: panels are small."""
    ticks = chart.x.ticks
    few = tuple(dict.fromkeys(ticks[place] for place in (0, len(ticks) // 2, -1)))
    return dataclasses.replace(chart, x=dataclasses.replace(chart.x, ticks=few))


def _ranking(board: Board) -> Any:
    """Draw the standings below each other."""
    styles = agent_styles(board)
    places = [_places(standing) for standing in board.standings]
    with panels(len(places), RANKING, [HEAD + ROW * len(own) for own in places]) as figure:
        for axes, standing, own in zip(figure.axes, board.standings, places, strict=True):
            _standing(axes, standing.title, own, styles)
    return figure


def _places(standing: Standing) -> list[Row | str]:
    """Return what stands below each other: rows, those of each division below its title where there are several."""
    places: list[Row | str] = []
    for title in standing.divisions:
        places += [title] * (len(standing.divisions) > 1)
        places += [row for row in standing.rows if row.division == title and not row.privileged]
    return places


def _standing(axes: Any, title: str, places: Sequence[Row | str], styles: Mapping[str, Style]) -> None:
    """Draw one standing: the best agent of a division above, optimum and reference as lines, unranked agents hollow."""
    for level in (0.0, 1.0):
        axes.axvline(level, color=QUIET, linewidth=0.9, linestyle=":")
    rows = {place: row for place, row in enumerate(places) if isinstance(row, Row)}
    for place, row in rows.items():
        _row(axes, place, row, styles[row.label])
    axes.set_yticks(list(rows), [_name(row) for row in rows.values()])
    lowest = [row.score.low if is_known(row.score) else row.score.value for row in rows.values()]
    axes.set_xlim(min([-0.05, *lowest]) - 0.05, 1.05)
    axes.set_ylim(len(places) - 0.4, -0.6)
    for place, division in enumerate(places):
        if isinstance(division, str):
            _division(axes, place, division)
    axes.set_xlabel("score: interquartile mean of runs, with its 95 % interval", color=QUIET)
    above = axes.secondary_xaxis("top")
    above.set_xticks([0, 1], ["reference", "optimum"])
    above.tick_params(length=0, labelsize=7, labelcolor=QUIET, pad=1)
    above.spines["top"].set_visible(False)
    axes.set_title(plain(title), loc="left", fontsize=10, fontweight="bold", color=INK)
    bare(axes, grid="x")
    axes.tick_params(labelcolor=INK)


def _row(axes: Any, place: int, row: Row, own: Style) -> None:
    """Draw the score of an agent with its interval, and write its raw score beside them where either is clipped."""
    if is_known(row.score):
        axes.plot(row.score[1:], [place] * 2, color=own.colour, linewidth=6, alpha=0.35, solid_capstyle="butt")
    mark = "<" if row.score.value <= LOWEST else MARKERS[own.symbol] or "o"
    look = {"markersize": 5.5, "markerfacecolor": own.colour if row.rank else "white", "zorder": 3}
    axes.plot(row.score.value, place, mark, color=own.colour, **look)
    if row.raw and any(abs(raw - shown) > RESOLUTION for raw, shown in zip(row.raw, row.score, strict=True)):
        end = row.score.high if is_known(row.score) else row.score.value
        text = f"raw {short(row.raw)}".replace("-", "−")
        axes.annotate(text, (end, place), (7, 0), textcoords="offset points", va="center", color=QUIET, fontsize=7)


def _division(axes: Any, place: int, title: str) -> None:
    """Write the title of a division across the picture, on a band that parts its agents from those above."""
    from matplotlib.patches import Rectangle
    from matplotlib.transforms import blended_transform_factory

    across = blended_transform_factory(axes.figure.transFigure, axes.transData)
    band = Rectangle((0, place - 0.45), 1, 0.9, transform=across, facecolor=SOFT, zorder=2.5, clip_on=False)
    band.set_in_layout(False)
    axes.add_patch(band)
    words = axes.text(0.012, place, plain(title), transform=across, va="center", style="italic", color=INK, zorder=2.6)
    words.set_in_layout(False)


def _name(row: Row) -> str:
    """Return rank and label, shortened."""
    label = textwrap.shorten(row.label, 36, placeholder="...") if " " in row.label else row.label[:36]
    return f"{plain(label)}  {format_rank(row.rank).replace('-', '–')}"


def _ladders(board: Board) -> Any:
    """Draw the ladders of a board; sizes are linear where theory's direct law is exponential, else logarithmic."""
    agents = agent_styles(board)
    charts = [ladder_chart(ladder, natural_scale(ladder)) for ladder in board.ladders]
    styles = [ladder_styles(ladder, agents) for ladder in board.ladders]
    figure = draw_panels(charts, styles, LADDERS)
    for axes in figure.axes:
        if not axes.get_subplotspec().is_first_col():
            axes.set_ylabel("")
    strategies = {one.label: one.strategy for ladder in board.ladders for one in ladder.results}
    laws = {law.strategy for ladder in board.ladders for law in ladder.laws}
    left, height = 0.012, LADDERS.foot / figure.get_figheight()
    for strategy, title in STRATEGIES.items():
        own = {label: dataclasses.replace(agents[label], width=WIDTHS[strategy]) for label in sorted(strategies)}
        handles = [line_handle(own[label], label) for label in own if strategies[label] == strategy]
        if strategy in laws:
            handles.append(line_handle(Style(INK, "", DASHES[strategy]), "theory"))
        if handles:
            columns = -(-len(handles) // 3)
            _key(figure, handles, title, (left, height), LADDERS.font, columns).set_in_layout(False)
            left += (1.75 * columns + 0.25) / figure.get_figwidth()
    every = dataclasses.replace(charts[0], series=tuple(one for chart in charts for one in chart.series))
    figure.text(left, height, "\n".join(chart_key(every)), va="top", color=QUIET, fontsize=LADDERS.font)
    return figure


def _key(
    place: Any, handles: Sequence[Any], title: str, corner: tuple[float, float], size: float, columns: int = 1
) -> Any:
    """Add a key to a panel or a figure, its upper left corner at a place of it."""
    return place.legend(
        handles=handles,
        title=plain(title),
        loc="upper left",
        bbox_to_anchor=corner,
        ncols=columns,
        frameon=False,
        fontsize=size,
        title_fontproperties={"size": size, "weight": "bold"},
        alignment="left",
        labelcolor=INK,
        handlelength=1.6,
        borderaxespad=0,
    )
