"""The interactive figures of the page, as plain plotly.js dictionaries."""

import dataclasses
import html
from collections.abc import Iterable
from typing import Any

from theorybench.leaderboard.comparing.board import Board
from theorybench.leaderboard.comparing.ranking import REFERENCE_AGENT
from theorybench.leaderboard.comparing.series import Series
from theorybench.leaderboard.showing.styles import LINE_COLOUR, Style, style, translucent


@dataclasses.dataclass(frozen=True)
class Chart:
    """One place of the page.

    Attributes:
        title: above it.
        figures: plotly figures by name; the reader chooses where there are several.
    """

    title: str
    figures: dict[str, dict[str, Any]]


def agent_styles(board: Board) -> dict[str, Style]:
    """Give each agent of a board, by id, a colour and a symbol; privileged agents and the reference are grey lines."""
    lines = _line_agents(board)
    drawn = [agent for agent in board.agents if agent.id not in lines]
    styles = {a.id: Style(LINE_COLOUR, "line-ew", "dash" if a.privileged else "dot") for a in board.agents}
    return styles | {agent.id: style(place) for place, agent in enumerate(drawn)}


def learning_charts(board: Board) -> list[Chart]:
    """Return one chart for each environment: score by episodes, optimum and reference as lines."""
    styles, lines = agent_styles(board), _line_agents(board)
    charts = []
    for entry in board.environments:
        series = [one for one in entry.curves if one.agent not in lines]
        budget = entry.environment.budget
        ticks = sorted({max(1, budget // part) for part in (64, 16, 4, 1)})
        low = min((min(one.low or one.value) for one in series), default=0.0)
        layout = {
            "xaxis": {
                "type": "log",
                "title": {"text": "episodes"},
                "tickvals": ticks,
                "ticktext": [f"{t:,}" for t in ticks],
            },
            "yaxis": {"title": {"text": "score"}, "range": [min(-0.06, low - 0.04), 1.1]},
            "shapes": [_level(0.0), _level(1.0)],
            "annotations": [_level_name(0.0, "reference", "right"), _level_name(1.0, "optimum", "left")],
        }
        hover = "score %{y:.3f} after %{x:,} episodes"
        charts.append(Chart(entry.environment.label, {"": _figure(series, styles, layout, hover)}))
    return charts


def pass_charts(board: Board) -> list[Chart]:
    """Return one chart for each environment with pass@K: by K, for all tasks and for each."""
    styles = agent_styles(board)
    layout = {
        "xaxis": {"type": "log", "dtick": 0.30102999566, "tickformat": "d", "title": {"text": "tries K"}},
        "yaxis": {"title": {"text": "pass@K"}},
    }
    hover = "pass@%{x}: %{y:.3f}"
    return [
        Chart(
            entry.environment.label,
            {panel.title: _figure(panel.series, styles, layout, hover) for panel in entry.passes},
        )
        for entry in board.environments
        if entry.passes
    ]


def profile_charts(board: Board) -> list[Chart]:
    """Return one chart: the share of runs above each score, for each standing."""
    styles, lines = agent_styles(board), _line_agents(board)
    layout = {
        "xaxis": {"title": {"text": "score"}, "range": [-1.02, 1.02]},
        "yaxis": {"title": {"text": "share of runs above it"}, "range": [-0.02, 1.04], "tickformat": ".0%"},
    }
    hover = "%{y:.0%} of runs score above %{x:.2f}"
    figures = {}
    for standing in board.standings:
        series = [one for one in standing.profiles if one.agent not in lines]
        figures[standing.title] = _figure(series, styles, layout, hover, markers=False)
    return [Chart("Performance profiles", figures)] if figures else []


def _line_agents(board: Board) -> set[str]:
    """Return the agents that lines stand for already."""
    return {agent.id for agent in board.agents if agent.privileged or agent.agent == REFERENCE_AGENT}


def _figure(
    series: Iterable[Series], styles: dict[str, Style], layout: dict[str, Any], hover: str, markers: bool = True
) -> dict[str, Any]:
    """Draw bands first, so that lines lie above them."""
    held = list(series)
    bands = [_band(one, styles[one.agent]) for one in held if one.low is not None and len(one.x) > 1]
    lines = [_line(one, styles[one.agent], hover, markers) for one in held]
    return {"data": bands + lines, "layout": layout}


def _line(series: Series, own: Style, hover: str, markers: bool) -> dict[str, Any]:
    plain = own.colour == LINE_COLOUR
    return {
        "type": "scatter",
        "mode": "lines+markers" if markers and not plain else "lines",
        "name": plotly_text(series.label),
        "meta": series.agent,
        "x": series.x,
        "y": series.value,
        "line": {"color": own.colour, "width": 1.5 if plain else 2.2, "dash": own.dash},
        "marker": {"symbol": own.symbol, "size": 6, "color": own.colour},
        "hovertemplate": f"<b>%{{fullData.name}}</b><br>{hover}<extra></extra>",
    }


def _band(series: Series, own: Style) -> dict[str, Any]:
    low, high = series.low or (), series.high or ()
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plotly_text(series.label),
        "meta": series.agent,
        "x": (*series.x, *reversed(series.x)),
        "y": (*low, *reversed(high)),
        "fill": "toself",
        "fillcolor": translucent(own.colour, 0.16),
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def _level(y: float) -> dict[str, Any]:
    line = {"color": LINE_COLOUR, "width": 1, "dash": "dot"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "layer": "below", "line": line}


def _level_name(y: float, name: str, side: str) -> dict[str, Any]:
    font = {"size": 11, "color": LINE_COLOUR}
    place = {"xref": "paper", "x": int(side == "right"), "xanchor": side, "y": y, "yanchor": "bottom"}
    return {**place, "text": name, "showarrow": False, "font": font}


def plotly_text(label: str) -> str:
    """Escape what plotly would read as markup."""
    return html.escape(label, quote=False)
