"""The interactive figures of ladders: episodes to learn a task by its size, and what theory asks for."""

import math
from typing import Any

from theorybench.leaderboard.board import Board
from theorybench.leaderboard.curves import Chart, agent_styles, plotly_text
from theorybench.leaderboard.ladders import Climb, LadderBoard, LawLine
from theorybench.leaderboard.styles import LINE_COLOUR, Style

#: The script of the page draws this in the colour of its text.
INK = "black"
#: How the law of each way of learning is dashed.
DASHES = {"direct": "dot", "curriculum": "dash"}
#: The law that is a straight line on each kind of horizontal axis.
AXES = {"size, logarithmic: polynomials are straight": "log", "size, linear: exponentials are straight": "linear"}


def ladder_charts(board: Board) -> list[Chart]:
    """Return one chart for each ladder, with the size on a logarithmic or on a linear axis."""
    styles = agent_styles(board)
    return [
        Chart(ladder.title, {name: _figure(ladder, styles, scale) for name, scale in AXES.items()})
        for ladder in board.ladders
    ]


def shown_range(ladder: LadderBoard) -> tuple[float, float]:
    """Return the episodes that a chart of a ladder shows: what was measured, and theory up to the budget."""
    fastest = [point.fastest for climb in ladder.climbs for point in climb.points if point.fastest]
    least = min([*fastest, *(q for law in ladder.laws for q in law.queries), float(ladder.budget)])
    return least / 1.6, ladder.budget * 2.2


def _figure(ladder: LadderBoard, styles: dict[str, Style], scale: str) -> dict[str, Any]:
    low, high = shown_range(ladder)
    data = [_law(law, high) for law in ladder.laws]
    for climb in ladder.climbs:
        data += _traces(climb, styles[climb.agent], ladder.budget)
    axis: dict[str, Any] = {"title": {"text": plotly_text(ladder.size)}, "type": scale}
    axis |= {"tickvals": ladder.sizes, "ticktext": [f"{size:g}" for size in ladder.sizes]}
    layout = {
        "xaxis": axis,
        "yaxis": {
            "title": {"text": f"episodes to a score of {ladder.target:g}"},
            "type": "log",
            "dtick": 1,
            "exponentformat": "power",
            "range": [math.log10(low), math.log10(high)],
        },
        "shapes": [
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": ladder.budget,
                "y1": ladder.budget,
                "layer": "below",
                "line": {"color": LINE_COLOUR, "width": 1, "dash": "dot"},
            }
        ],
        "annotations": [
            {
                "xref": "paper",
                "x": 0,
                "xanchor": "left",
                "y": math.log10(ladder.budget),
                "yanchor": "bottom",
                "text": f"budget, {ladder.budget:,}",
                "showarrow": False,
                "font": {"size": 11, "color": LINE_COLOUR},
            }
        ],
    }
    return {"data": data, "layout": layout}


def _law(law: LawLine, high: float) -> dict[str, Any]:
    kept = [(x, y) for x, y in zip(law.sizes, law.queries, strict=True) if y <= 1e3 * high]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plotly_text(f"theory, {law.way}: {law.formula}"),
        "meta": f"law-{law.way}",
        "x": [x for x, _ in kept],
        "y": [y for _, y in kept],
        "line": {"color": INK, "width": 1.4, "dash": DASHES[law.way]},
        "hovertemplate": "<b>%{fullData.name}</b><br>%{y:,.0f} episodes<extra></extra>",
    }


def _traces(climb: Climb, own: Style, budget: int) -> list[dict[str, Any]]:
    """Draw medians with the range of the runs, joined by a line, and rungs that the median run did not climb."""
    reached = [p for p in climb.points if p.median is not None]
    missed = [p for p in climb.points if p.median is None]
    common = {"type": "scatter", "name": plotly_text(climb.label), "meta": climb.agent}
    tops = [(p.slowest or float(budget)) for p in reached]
    medians = [p.median or 0.0 for p in reached]
    traces: list[dict[str, Any]] = [
        {
            **common,
            "mode": "lines+markers",
            "x": [p.size for p in reached],
            "y": medians,
            "line": {"color": own.colour, "width": 2.0, "dash": own.dash},
            "marker": {"symbol": own.symbol, "size": 7, "color": own.colour},
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": [top - y for top, y in zip(tops, medians, strict=True)],
                "arrayminus": [y - (p.fastest or y) for p, y in zip(reached, medians, strict=True)],
                "thickness": 1.1,
                "width": 0,
                "color": own.colour,
            },
            "customdata": [f"{p.arrived} of {p.runs} runs" for p in reached],
            "hovertemplate": "<b>%{fullData.name}</b><br>size %{x}: %{y:,.0f} episodes, %{customdata}<extra></extra>",
        }
    ]
    if missed:
        traces.append(
            {
                **common,
                "mode": "markers",
                "x": [p.size for p in missed],
                "y": [1.35 * budget] * len(missed),
                "marker": {"symbol": "triangle-up-open", "size": 9, "color": own.colour, "line": {"width": 1.8}},
                "customdata": [f"{p.arrived} of {p.runs} runs" for p in missed],
                "hovertemplate": "<b>%{fullData.name}</b><br>size %{x}: %{customdata} within the budget<extra></extra>",
            }
        )
    return traces
