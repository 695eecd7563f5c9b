"""The claims report as one HTML file: each claim with its strip, then the studies' figures and tables."""

import base64
import importlib.metadata
from collections.abc import Sequence
from typing import NamedTuple

from theorybench.envs.core.evidence.study import Chart, Picture
from theorybench.leaderboard.evidence.report import Chapter, CheckedClaim, ShownStudy, tally_of
from theorybench.leaderboard.showing.charts.interactive import GAP, figure
from theorybench.leaderboard.showing.charts.labels import place_labels
from theorybench.leaderboard.showing.charts.layout import chart_key
from theorybench.leaderboard.showing.document import Scale, render_document
from theorybench.leaderboard.showing.styles import Style, group_styles
from theorybench.leaderboard.showing.words import number, predicted_number, tally_sentences

TITLE = "Claims: what the papers say, and what was measured"


class StudySection(NamedTuple):
    """A study as the page shows it: charts with an id each, pictures as data, and the styles of its groups."""

    study: ShownStudy
    charts: list[tuple[str, Chart]]
    pictures: list[tuple[Picture, str]]
    styles: dict[str, Style]


def render_report(chapters: Sequence[Chapter]) -> str:
    """Return the page. It opens offline and loads nothing."""
    sections = {study.id: _section(study) for chapter in chapters for study in chapter.studies}
    figures = {
        place: {"": figure(chart, section.styles, place)}
        for section in sections.values()
        for place, chart in section.charts
    }
    claims = [claim for chapter in chapters for claim in chapter.claims]
    return render_document(
        "report.html.j2",
        figures,
        title=TITLE if claims else "Studies: what a paper would print",
        version=importlib.metadata.version("theorybench"),
        chapters=chapters,
        sections=sections,
        claims=claims,
        strip=_strip,
        key=chart_key,
        keyed=lambda chart: place_labels(chart, GAP).side == "key",
        value=number,
        predicted=predicted_number,
        summary=lambda claims: tally_sentences(tally_of(claims)),
    )


def _section(study: ShownStudy) -> StudySection:
    result = study.result
    if result is None:
        return StudySection(study, [], [], {})
    charts = [(f"chart-{study.id}-{i}", chart) for i, chart in enumerate(result.charts)]
    # An image runs no script and loads nothing, whatever its SVG says.
    drawn = [(picture, base64.b64encode(picture.svg.encode()).decode()) for picture in result.pictures]
    return StudySection(study, charts, drawn, group_styles(result.all_groups()))


def _strip(claim: CheckedClaim) -> dict[str, str] | None:
    """Return the places of a claim's numbers on its strip in percent; None where one is missing or infinite."""
    numbers = (claim.predicted, claim.measured, claim.low, claim.high)
    if any(value is None or abs(value) == float("inf") or value != value for value in numbers):
        return None
    predicted, measured, low, high = (float(value or 0.0) for value in numbers)
    ends = predicted - claim.tolerance, predicted + claim.tolerance
    left, right = min(low, ends[0], measured), max(high, ends[1], measured)
    if left == right:
        left, right = left - 1.0, right + 1.0
    scale = Scale.around(left, right)
    return {
        "predicted": scale.at(predicted),
        "from": scale.at(ends[0]),
        "tolerance": scale.width(*ends),
        "measured": scale.at(measured),
        "low": scale.at(low),
        "interval": scale.width(low, high),
    }
