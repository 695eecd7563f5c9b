"""Claims and studies in the terminal: legible from 80 columns on."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from theorybench.envs.core.evidence.interval import Interval
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Table
from theorybench.leaderboard.evidence.report import CheckedClaim, ShownStudy
from theorybench.leaderboard.showing.exhibit_layout import WORDS, format_tick, x_range, y_range
from theorybench.leaderboard.showing.styles import style
from theorybench.leaderboard.showing.table import format_seconds, plain

#: Letters of a line in small, columns of a chart's numbers, and letters of a group's name before it is broken.
SPARK, SHOWN, NAME = 12, 5, 26
_BLOCKS = "▁▂▃▄▅▆▇█"
_GLYPHS = {"measured": "●", "band": "●", "simulated": "×", "predicted": "─", "published": "○", "censored": "↥"}


def claim_lines(claim: CheckedClaim) -> RenderableType:
    """Return a claim: its verdict, its statement, predicted beside measured, and what would make it fail."""
    verdict = Text(
        "error" if claim.error else "holds" if claim.holds else "FAILS", "green" if claim.holds else "bold red"
    )
    head = Text.assemble(verdict, "  ", (claim.id, "bold"), (f"  {format_seconds(claim.seconds)}", "dim"))
    body = Grid.grid(padding=(0, 2))
    body.add_column(style="dim", no_wrap=True)
    body.add_column(overflow="fold")
    body.add_row("claim", Text(plain(claim.statement)))
    if claim.error:
        body.add_row("error", Text(plain(claim.error), "red"))
    else:
        body.add_row("predicted", Text.assemble(number(claim.predicted), (f"   {plain(claim.formula)}", "dim")))
        interval = f" [{number(claim.low)}, {number(claim.high)}]"
        margin = f"   tolerance {number(claim.tolerance)}" if claim.tolerance else ""
        body.add_row("measured", Text.assemble(number(claim.measured), interval, (margin, "dim")))
    body.add_row("fails for", Text(plain(claim.falsified_by)))
    body.add_row("source", Text(plain(claim.source)))
    return Group(head, Padding(body, (0, 0, 1, 7)))


def study_lines(study: ShownStudy) -> RenderableType:
    """Return a study: what it is about, its tables, a summary of each chart, and what it found."""
    facts = (plain(study.source), study.id, f"{study.seeds} seeds", format_seconds(study.seconds))
    parts: list[RenderableType] = [
        Text(plain(study.title), "bold"),
        Text(plain(study.text)),
        Text(" · ".join(facts), "dim"),
        Text(),
    ]
    if study.result is None:
        return Group(*parts, Text(f"error: {plain(study.error or '')}", "red"), Text())
    colours = {group: style(i).colour for i, group in enumerate(study.result.all_groups())}
    for table in study.result.tables:
        parts += [*_table(table), Text()]
    for chart in study.result.charts:
        parts += [*_chart(chart, colours), Text()]
    for picture in study.result.pictures:
        parts.append(Text(f"{plain(picture.title)}: a picture; see --html or --pictures", "dim"))
    return Group(*parts, *(Text(f"- {plain(note)}") for note in study.result.notes), Text())


def number(value: float | None) -> str:
    """Write a number with up to five digits; a dash where there is none."""
    return "-" if value is None else f"{value:.5g}"


def cell(value: Cell, column: Column) -> str:
    """Write a cell of a table: "0.951 [0.949, 0.953]"."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Interval):
        number, low, high = (format(end, column.format) for end in value)
        return f"{number} [{low}, {high}]"
    return f"{value:{column.format}}"


def _table(table: Table) -> Iterable[RenderableType]:
    yield Text(plain(table.title), "bold")
    grid = Grid(box=None, pad_edge=False, header_style="dim")
    for place, column in enumerate(table.columns):
        text = all(isinstance(row[place], str | None) for row in table.rows)
        grid.add_column(plain(column.name), justify="left" if text else "right", overflow="fold")
    for row in table.rows:
        grid.add_row(*(Text(plain(cell(value, column))) for value, column in zip(row, table.columns, strict=True)))
    yield grid
    if table.note:
        yield Text(plain(table.note), "dim")


def _chart(chart: Chart, colours: dict[str, str]) -> Iterable[RenderableType]:
    """Yield a chart as a table: each series in small, its values at a few places, and how it agrees with theory."""
    places = _shown_places(chart)
    yield Text.assemble((plain(chart.title), "bold"), (f"   {plain(chart.y.title)} by {plain(chart.x.title)}", "dim"))
    grid = Grid(box=None, pad_edge=False, header_style="dim", padding=(0, 1))
    grid.add_column("", max_width=NAME, overflow="fold")
    grid.add_column("", no_wrap=True)
    for place in places:
        grid.add_column(format_tick(place), justify="right", no_wrap=True)
    for series in chart.series:
        values = dict(zip(series.x, series.y, strict=True))
        name = Text.assemble((_GLYPHS[series.style], colours[series.group]), f" {plain(series.group)}")
        numbers = [f"{values[place]:.3g}" if place in values else "" for place in places]
        grid.add_row(name, Text(_spark(chart, series), colours[series.group]), *numbers)
    yield grid
    used = dict.fromkeys((_GLYPHS[series.style], WORDS[series.style]) for series in chart.series)
    yield Text(", ".join(f"{glyph} {word}" for glyph, word in used), "dim")
    for found in chart.agreement():
        inside = f"theory lies in {found.inside} of {found.points} intervals; largest distance {found.distance:.2g}"
        yield Text(f"{plain(found.group)}: {inside}", "dim")
    if chart.note:
        yield Text(plain(chart.note), "dim")


def _shown_places(chart: Chart) -> list[float]:
    """Return a few x at which series have values: labelled ones first, else those of the longest measured series."""
    known = {x for series in chart.series for x in series.x}
    ticks = [tick for tick in chart.x.ticks if tick in known]
    longest = max(chart.series, key=lambda series: (series.style in ("measured", "band"), len(series.x)))
    held: Sequence[float] = ticks if len(ticks) > 1 else sorted(longest.x)
    last = len(held) - 1
    return list(dict.fromkeys(held[round(last * i / (SHOWN - 1))] for i in range(SHOWN)))


def _spark(chart: Chart, series: Series) -> str:
    """Draw a series in one line of blocks, on the axes of its chart; a single point has none."""
    if len(series.x) == 1:
        return ""
    letters = [" "] * SPARK
    for x, y in zip(series.x, series.y, strict=True):
        across, up = _share(chart.x, x, x_range(chart)), _share(chart.y, y, y_range(chart))
        letters[min(int(across * SPARK), SPARK - 1)] = _BLOCKS[min(int(up * len(_BLOCKS)), len(_BLOCKS) - 1)]
    return "".join(letters)


def _share(axis: Axis, value: float, ends: tuple[float, float]) -> float:
    low, high, middle = (axis.place(number) for number in (*ends, value))
    return min(max((middle - low) / (high - low), 0.0), 1.0)
