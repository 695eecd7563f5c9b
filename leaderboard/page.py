"""The board as one HTML file that needs nothing else: plotly.js, figures and styles stand in it."""

import base64
import hashlib
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from theorybench.leaderboard.board import Board, Standing
from theorybench.leaderboard.curves import Chart, agent_styles, learning_charts, pass_charts, profile_charts
from theorybench.leaderboard.ranking import Estimate
from theorybench.leaderboard.reproduction import configuration
from theorybench.leaderboard.store import atomic_write
from theorybench.leaderboard.table import format_bytes, format_interval, format_number, format_seconds, format_share

TEMPLATE = Path(__file__).with_name("page.html.j2")
SCRIPT = Path(__file__).with_name("page.js")


class Section(NamedTuple):
    """A section of figures: what it shows, its charts with an id each, and the agents that occur in them."""

    title: str
    text: str
    charts: list[tuple[str, Chart]]
    agents: set[str]


def write_page(board: Board, path: str | Path) -> Path:
    """Write the page, atomically; return its absolute path."""
    text = render_page(board)
    with atomic_write(path) as file:
        file.write(text)
    return Path(path).resolve()


def render_page(board: Board) -> str:
    """Return the page: ranking, curves, profiles, failures, provenance. It opens offline and loads nothing.

    Text of records is escaped wherever it stands, and the page's own policy runs no script but its two.
    """
    from plotly.offline import get_plotlyjs

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "number": format_number,
        "interval": format_interval,
        "share": format_share,
        "seconds": format_seconds,
        "bytes": format_bytes,
    }
    scripts = [get_plotlyjs(), SCRIPT.read_text(encoding="utf-8")]
    sections = _sections(board)
    figures = {id: chart.figures for section in sections for id, chart in section.charts}
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        board=board,
        styles=agent_styles(board),
        labels={entry.environment.id: entry.environment.label for entry in board.environments},
        ranking=[(standing, _scale(standing)) for standing in board.standings],
        environment_rankings=[(entry.standing, _scale(entry.standing)) for entry in board.environments],
        lifted=any(row.lifted for standing in board.standings for row in standing.rows),
        sections=sections,
        figures=Markup(_embedded(figures)),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
        configuration=configuration(board),
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


class _Scale:
    """Places scores on a strip from `low` to `high`, in percent of its width."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def at(self, score: float) -> str:
        """Return the place of a score."""
        return f"{100 * (score - self.low) / (self.high - self.low):.2f}"

    def width(self, estimate: Estimate) -> str:
        """Return the width of an interval."""
        return f"{100 * ((estimate.high or 0.0) - (estimate.low or 0.0)) / (self.high - self.low):.2f}"


def _scale(standing: Standing) -> _Scale:
    lowest = min(row.score.value if row.score.low is None else row.score.low for row in standing.rows)
    low, high = min(0.0, lowest), 1.0
    margin = 0.04 * (high - low)
    return _Scale(low - margin, high + margin)


def _embedded(value: Any) -> str:
    """Return JSON that can stand in an HTML script element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(scripts: Sequence[str]) -> str:
    """Return a content security policy that runs these scripts alone and loads nothing."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"
