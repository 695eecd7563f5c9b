"""The interactive figures of ladders: episodes to learn a task by its size, and what theory asks for."""

import math
from typing import Any

from theorybench.leaderboard.comparing.board import Board
from theorybench.leaderboard.comparing.ladders import Climb, LadderBoard, LawLine
from theorybench.leaderboard.showing.curves import Chart, agent_styles, plotly_text
from theorybench.leaderboard.showing.ladder_table import growth_words, rate
from theorybench.leaderboard.showing.styles import LINE_COLOUR, Style, translucent

#: The script of the page draws this in the colour of its text.
INK = "black"
#: How the law of each way of learning is dashed, and what the ways are called.
DASHES = {"direct": "dot", "curriculum": "dash"}
WAYS = {"direct": "The full task alone", "curriculum": "Easier sub-tasks first"}
#: Where a law that passes the budget is named, as a share of it; up to which share of the sizes right of its line.
LABELLED, ROOM = 0.55, 0.66
#: Kinds of horizontal axes by the law that is a straight line there.
AXES = {"exponential": ("sizes linear", "linear"), "polynomial": ("sizes logarithmic", "log")}


def ladder_charts(board: Board) -> list[Chart]:
    """Return one chart for each ladder, sizes linear or logarithmic; first where theory's direct law is straight."""
    styles = agent_styles(board)
    charts = []
    for ladder in board.ladders:
        first = "exponential" if ladder.exponential else "polynomial"
        axes = [AXES[first], *(axis for law, axis in AXES.items() if law != first)]
        charts.append(Chart(ladder.title, {name: _figure(ladder, styles, scale) for name, scale in axes}))
    return charts


def shown_range(ladder: LadderBoard) -> tuple[float, float]:
    """Return the episodes that a chart of a ladder shows: what was measured, theory, and rows above the budget."""
    fastest = [point.fastest for climb in ladder.climbs for point in climb.points if point.fastest]
    least = min([*fastest, *(q for law in ladder.laws for q in law.queries), float(ladder.budget)])
    return max(least / 2.2, 0.7), max([1.3 * ladder.budget, *ladder.missed_levels.values()]) * 1.5


def _figure(ladder: LadderBoard, styles: dict[str, Style], scale: str) -> dict[str, Any]:
    low, high = shown_range(ladder)
    levels = ladder.missed_levels
    data = [_law(law, high) for law in ladder.laws]
    for climb in ladder.climbs:
        data += _traces(climb, styles[climb.agent], ladder.budget, levels.get(climb.agent, 0.0))
    axis: dict[str, Any] = {"title": {"text": plotly_text(ladder.size)}, "type": scale}
    axis |= {"tickvals": ladder.sizes, "ticktext": [f"{size:.2g}" for size in ladder.sizes], "tickangle": 0}
    layout = {
        "xaxis": axis,
        "yaxis": {
            "title": {"text": f"episodes to a score of {ladder.target:g}"},
            "type": "log",
            "dtick": 1,
            "tickformat": ",",
            "range": [math.log10(low), math.log10(high)],
        },
        "shapes": [
            {
                "type": "rect",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": ladder.budget,
                "y1": high,
                "layer": "below",
                "line": {"width": 0},
                "fillcolor": translucent(LINE_COLOUR, 0.13),
            }
        ],
        "annotations": [
            {
                "xref": "paper",
                "x": 0,
                "xanchor": "left",
                "y": math.log10(ladder.budget),
                "yanchor": "bottom",
                "text": f"not learnt within {ladder.budget:,}",
                "showarrow": False,
                "font": {"size": 11, "color": LINE_COLOUR},
            },
            *(_law_name(law, ladder, scale) for law in ladder.laws if law.sizes),
        ],
    }
    return {"data": data, "layout": layout}


def law_place(law: LawLine, ladder: LadderBoard, *, linear: bool) -> tuple[float, float, str]:
    """Return where a law is named: size, episodes, and "right" or "left" of it there or "below" its end."""
    first, last = ladder.sizes[0], ladder.sizes[-1]

    def share(size: float) -> float:
        return (size - first) / (last - first) if linear else math.log(size / first) / math.log(last / first)

    level = LABELLED * ladder.budget
    size, episodes = law.crossing(level, linear=linear)
    if episodes == level:
        return size, episodes, "right" if share(size) < ROOM else "left"
    ending = [asked for x, asked in zip(law.sizes, law.queries, strict=True) if share(x) > ROOM]
    return size, min([episodes, *ending]), "below"


def law_words(law: LawLine, ladder: LadderBoard) -> str:
    """Return what stands at its line: how fast it grows up to the budget."""
    growth = law.growth_up_to(ladder.budget)
    return f"theory {rate(law.growth, *growth)}" if growth else "theory"


def _law_name(law: LawLine, ladder: LadderBoard, scale: str) -> dict[str, Any]:
    size, episodes, side = law_place(law, ladder, linear=scale == "linear")
    return {
        "x": size if scale == "linear" else math.log10(size),
        "y": math.log10(episodes),
        "xanchor": "left" if side == "right" else "right",
        "yanchor": "top" if side == "below" else "middle",
        "xshift": {"right": 8, "left": -8, "below": 0}[side],
        "yshift": -4 if side == "below" else 0,
        "text": plotly_text(law_words(law, ladder)),
        "showarrow": False,
        "font": {"size": 11, "color": LINE_COLOUR},
    }


def _law(law: LawLine, high: float) -> dict[str, Any]:
    kept = [(x, y) for x, y in zip(law.sizes, law.queries, strict=True) if y <= 1e3 * high]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plotly_text(f"theory, {law.way}: {law.formula}"),
        "meta": f"law-{law.way}",
        "x": [x for x, _ in kept],
        "y": [y for _, y in kept],
        "line": {"color": INK, "width": 1.8, "dash": DASHES[law.way]},
        "hovertemplate": "<b>%{fullData.name}</b><br>%{y:,.0f} episodes<extra></extra>",
    }


def _traces(climb: Climb, own: Style, budget: int, level: float) -> list[dict[str, Any]]:
    """Draw medians with the range of the runs, joined by a line, and rungs that the median run did not climb."""
    reached = [p for p in climb.points if p.median is not None]
    missed = [p for p in climb.points if p.median is None]
    direct = climb.way == "direct"
    common = {"type": "scatter", "name": plotly_text(climb.label), "meta": climb.agent}
    tops = [(p.slowest or float(budget)) for p in reached]
    medians = [p.median or 0.0 for p in reached]
    hover = f"<b>%{{fullData.name}}</b><br>{growth_words(climb)}<br>size %{{x:.3g}}: "
    traces: list[dict[str, Any]] = [
        {
            **common,
            "mode": "lines+markers",
            "x": [p.size for p in reached],
            "y": medians,
            "line": {"color": own.colour, "width": 2.8 if direct else 1.6, "dash": own.dash},
            "marker": {"symbol": own.symbol, "size": 8 if direct else 6, "color": own.colour},
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
            "hovertemplate": hover + "%{y:,.0f} episodes, %{customdata}<extra></extra>",
        }
    ]
    if missed:
        traces.append(
            {
                **common,
                "mode": "markers",
                "x": [p.size for p in missed],
                "y": [level] * len(missed),
                "marker": {"symbol": "triangle-up-open", "size": 8, "color": own.colour, "line": {"width": 1.8}},
                "customdata": [f"{p.arrived} of {p.runs} runs" for p in missed],
                "hovertemplate": hover + "%{customdata} within the budget<extra></extra>",
            }
        )
    return traces
