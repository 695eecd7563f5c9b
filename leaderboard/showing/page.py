"""The board as one HTML file that needs nothing else: plotly.js, figures and styles stand in it."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from theorybench.leaderboard.comparing.board import Board, Standing
from theorybench.leaderboard.comparing.reproduction import configuration
from theorybench.leaderboard.showing.curves import Chart, agent_styles, learning_charts, pass_charts, profile_charts
from theorybench.leaderboard.showing.document import Scale, render_document, write_document
from theorybench.leaderboard.showing.ladder_charts import ladder_charts
from theorybench.leaderboard.showing.ladder_table import HEADS, rows


class Section(NamedTuple):
    """A section of figures: what it shows, its charts with an id each, and the agents that occur in them."""

    title: str
    text: str
    charts: list[tuple[str, Chart]]
    agents: set[str]


def write_page(board: Board, path: str | Path) -> Path:
    """Write the page, atomically; return its absolute path."""
    return write_document(render_page(board), path)


def render_page(board: Board) -> str:
    """Return the page: ranking, curves, profiles, failures, provenance. It opens offline and loads nothing."""
    sections = _sections(board)
    return render_document(
        "board.html.j2",
        {id: chart.figures for section in sections for id, chart in section.charts},
        board=board,
        styles=agent_styles(board),
        labels={entry.environment.id: entry.environment.label for entry in board.environments},
        ranking=[(standing, _scale(standing)) for standing in board.standings],
        environment_rankings=[(entry.standing, _scale(entry.standing)) for entry in board.environments],
        lifted=any(row.lifted for standing in board.standings for row in standing.rows),
        sections=sections,
        configuration=configuration(board),
        heads=HEADS,
        laws=[(ladder, rows(ladder)) for ladder in board.ladders],
    )


def _sections(board: Board) -> list[Section]:
    """Return the sections of figures that have any."""
    sections = [
        (
            "Learning curves",
            "Interquartile mean of the exact score over seeds by episodes spent, with its 95 % interval. A failed run "
            "is at -1 at the end.",
            learning_charts(board),
        ),
        (
            "How the cost of learning grows",
            "Episodes until a score counts as learnt, against the size of the task: the median run, and a bar from the "
            "fastest to the slowest. Thick lines: agents that train on the full task alone; thin ones: on easier "
            "sub-tasks first. Lines without marks are theory's, dotted and dashed likewise. A hollow triangle: the "
            "median run did not learn the task within the budget. Where theory asks for more than the budget, "
            "agents of its way are spared the rung.",
            ladder_charts(board),
        ),
        (
            "Pass@K of the final policies",
            "Mean over runs that did not fail. A squeezed policy begins above the reference and ends below it: it has "
            "lost answers that its base model could still find.",
            pass_charts(board),
        ),
        (
            "Performance profiles",
            "The share of runs that score above each value, with its 95 % interval: higher is better everywhere.",
            profile_charts(board),
        ),
    ]
    numbers = itertools.count()
    return [
        Section(title, text, [(f"chart-{next(numbers)}", chart) for chart in charts], _agents_shown(charts))
        for title, text, charts in sections
        if charts
    ]


def _agents_shown(charts: Sequence[Chart]) -> set[str]:
    return {trace["meta"] for chart in charts for figure in chart.figures.values() for trace in figure["data"]}


def _scale(standing: Standing) -> Scale:
    """Place scores: from the lowest, or 0, to 1."""
    lowest = min(row.score.value if row.score.low is None else row.score.low for row in standing.rows)
    return Scale.around(min(0.0, lowest), 1.0)
