"""Boards, claims and studies in the terminal: whole from 120 columns on; narrower ones show fewer columns."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from theorybench.envs.core.evidence.study import Axis, Chart, Series, Table
from theorybench.leaderboard.comparing.board import Board, Standing
from theorybench.leaderboard.comparing.ranking import Row
from theorybench.leaderboard.evidence.report import CheckedClaim, ShownStudy, tally_of
from theorybench.leaderboard.showing.charts.layout import WORDS, format_tick, x_range, y_range
from theorybench.leaderboard.showing.fitting import FittingTable
from theorybench.leaderboard.showing.styles import Style, group_styles
from theorybench.leaderboard.showing.tables import cost_table
from theorybench.leaderboard.showing.words import (
    cell,
    format_bytes,
    format_interval,
    format_number,
    format_queries,
    format_rank,
    format_seconds,
    format_share,
    format_values,
    is_text,
    ladder_table,
    number,
    plain,
    predicted_number,
    tally_sentences,
)

#: Failed runs that are listed; the page and the JSON form have all.
LISTED_FAILURES = 10
#: Letters of each.
LONGEST_FAILURE = 240
#: Letters of a line in small, columns of a chart's numbers, letters of a name before it is broken, and those it keeps.
SPARK, SHOWN, NAME, LEAST_NAME = 12, 5, 34, 15
#: The column that only tables with test-time methods have.
QUERIES = "queries"
#: What a board says of its numbers beside what a score is, unless asked to explain them.
SHORT = (
    "Intervals are 95 % intervals over runs; ranks are among agents that are shown as much and tuned as much. How each "
    "number is made and what the columns are: `theorybench leaderboard DIR --explain`, or its page (`--html FILE`)."
)
#: Columns of a standing that are shown on the narrowest terminal.
ESSENTIAL = ("agent", "score")
#: The columns that only tables with scores below what aggregates show have, and those with scores that are estimates.
RAW, ERROR = "raw", "±"
#: The column that only tables with tuned agents have.
VALUES = "values"
#: Columns that only standings of several environments have.
OF_SEVERAL = ("min", "below")
_BLOCKS = "▁▂▃▄▅▆▇█"
_GLYPHS = {"measured": "●", "line": "●", "band": "●", "simulated": "×", "predicted": "─", "published": "○"}
_GLYPHS |= {"censored": "↥"}
#: Heads of a standing, and which of them are numbers.
_HEADS = {
    "rank": True,
    "agent": False,
    "score": True,
    "95 % interval": False,
    ERROR: True,
    RAW: True,
    "mean": True,
    "min": True,
    "below": True,
    "failed": True,
    "sees": False,
    VALUES: False,
    QUERIES: True,
    "> ref": True,
    "time": True,
    "memory": True,
}


def board_lines(board: Board, *, explain: bool = False) -> RenderableType:
    """Return the whole board; print it with `rich.console.Console().print`.

    Args:
        board: to show.
        explain: whether to say how every number is made and what each column is, in place of the first lines of that.
    """
    said = board.summary if len(board.leaders) <= 4 else board.counts  # tables below say who leads
    parts: list[RenderableType] = [Text(plain(board.title), style="bold"), Text(plain(said)), Text()]
    labels = {entry.environment.id: entry.environment.label for entry in board.environments}
    shown = {standing.environments for standing in board.standings}
    apart = [entry.standing for entry in board.environments if entry.standing.environments not in shown]
    for standing in (*board.standings, *apart):
        parts += [*_standing(standing, labels), Text()]
        if standing in board.standings:
            parts += [*_table(cost_table(standing, board.target)), Text()]
    for ladder in board.ladders:
        parts += [*_table(ladder_table(ladder)), Text()]
    return Group(*parts, *_failures(board), *_notes(board, explain))


#: How verdicts are printed, and in which style.
VERDICTS = {
    "holds": ("holds", "green"),
    "fails": ("FAILS", "bold red"),
    "inconclusive": ("inconclusive", "yellow"),
    "error": ("error", "bold red"),
}


def claim_lines(claim: CheckedClaim) -> RenderableType:
    """Return a claim: its verdict, its statement, predicted beside measured, and what would make it fail."""
    head = Text.assemble(
        VERDICTS[claim.verdict], "  ", (claim.id, "bold"), (f"  {format_seconds(claim.seconds)}", "dim")
    )
    body = Grid.grid(padding=(0, 2))
    body.add_column(style="dim", no_wrap=True)
    body.add_column(overflow="fold")
    body.add_row("claim", Text(plain(claim.statement)))
    if claim.error:
        body.add_row("error", Text(plain(claim.error), "red"))
    else:
        body.add_row(
            "predicted",
            Text.assemble(predicted_number(claim.predicted, claim.relation), (f"   {plain(claim.formula)}", "dim")),
        )
        interval = f" [{number(claim.low)}, {number(claim.high)}]"
        margin = f"   tolerance {number(claim.tolerance)}" if claim.tolerance else ""
        body.add_row("measured", Text.assemble(number(claim.measured), interval, (margin, "dim")))
        body.add_row("power", Text(f"a deviation of {number(claim.detectable)} would fail nine times in ten"))
    body.add_row("fails for", Text(plain(claim.falsified_by)))
    body.add_row("source", Text(plain(claim.source)))
    return Group(head, Padding(body, (0, 0, 1, 7)))


def tally_lines(claims: Sequence[CheckedClaim]) -> RenderableType:
    """Return how many claims have each verdict, which do not hold, and how many chance would make fail."""
    parts = []
    for verdict in ("error", "fails", "inconclusive"):
        names = ", ".join(claim.id for claim in claims if claim.verdict == verdict)
        if names:
            parts.append(Text.assemble(VERDICTS[verdict], f": {names}"))
    return Group(*(Text(sentence) for sentence in tally_sentences(tally_of(claims))), *parts)


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
    styles = group_styles(study.result.all_groups())
    for table in study.result.tables:
        parts += [*_table(table), Text()]
    for chart in study.result.charts:
        parts += [*_chart(chart, styles), Text()]
    for picture in study.result.pictures:
        parts.append(Text(f"{plain(picture.title)}: a picture; see --html or --pictures", "dim"))
    return Group(*parts, *(Text(f"- {plain(note)}") for note in study.result.notes), Text())


def _grid(heads: Iterable[tuple[str, bool]], essential: Sequence[str] = ()) -> FittingTable:
    """Return an empty table of heads, and whether they are numbers; names of agents are broken last.

    On a narrow terminal columns that are not essential are left out; by default all but the first.
    """
    heads = list(heads)
    grid = FittingTable([place for place, (head, _) in enumerate(heads) if head in essential] or [0])
    for head, is_number in heads:
        least = LEAST_NAME if head == "agent" else None
        grid.add_column(
            plain(head),
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_number or "interval" in head,
            min_width=least,
            max_width=NAME if least else None,
        )
    return grid


def table_lines(table: Table) -> RenderableType:
    """Return a table with its title and its note."""
    return Group(*_table(table))


def _table(table: Table) -> Iterable[RenderableType]:
    yield Text(plain(table.title), "bold")
    grid = _grid((column.name, not is_text(table, place)) for place, column in enumerate(table.columns))
    for row in table.rows:
        grid.add_row(*(Text(plain(cell(value, column))) for value, column in zip(row, table.columns, strict=True)))
    yield grid
    if table.note:
        yield Text(plain(table.note), "dim")


def _standing(standing: Standing, labels: Mapping[str, str]) -> Iterable[RenderableType]:
    """Yield the table of one standing; `labels` name its environments by id."""
    names = [labels[id] for id in standing.environments]
    title = Text(plain(standing.title), style="bold")
    where = names[0] if len(names) == 1 else f"{len(names)} environments"
    said = [*([] if standing.title in names else [where]), *([] if standing.tuned else ["no agent is tuned"])]
    yield title.append(plain("  " * bool(said) + ", ".join(said)), style="dim")
    absent = {*(() if standing.queried else (QUERIES,)), *(OF_SEVERAL if len(names) == 1 else ())}
    absent |= {*(() if standing.clipped else (RAW,)), *(() if standing.estimated else (ERROR,))}
    absent |= set() if standing.tuned else {VALUES}
    heads = [(head, number) for head, number in _HEADS.items() if head not in absent]
    grid, division = _grid(heads, ESSENTIAL), ""
    for row in standing.rows:
        if len(standing.divisions) > 1 and row.division != division:
            division = row.division
            grid.add_row("", Text(plain(division), style="italic"))
        cells = dict(zip(_HEADS, _cells(row), strict=True))
        grid.add_row(*(cells[str(column.header)] for column in grid.columns), style="" if row.rank else "dim")
    if standing.baselines:
        grid.add_row("", Text("baselines, untrained", style="italic"))
    for one in standing.baselines:
        numbers = one.score.value, one.mean, one.minimum
        score, mean, least = (format_number(number) for number in numbers)
        known = {"rank": "-", "agent": one.agent, "score": score, "95 % interval": format_interval(one.score)}
        known |= {"mean": mean, "min": least, RAW: "" if one.raw is None else format_number(one.raw)}
        grid.add_row(*(known.get(str(column.header), "") for column in grid.columns), style="dim")
    yield grid
    remarks = [f"{row.label} ({row.remark.replace('environments', 'envs')})" for row in standing.rows if row.remark]
    if remarks:
        yield Text(plain(f"unranked: {', '.join(remarks)}"), "dim")


def _cells(row: Row) -> tuple[RenderableType, ...]:
    """Return what a standing says of an agent, in the order of its heads."""
    together = "°" * row.lifted
    return (
        format_rank(row.rank),
        Text(plain(row.label), style="bold" if row.leads else ""),
        format_number(row.score.value),
        format_interval(row.score),
        "" if row.score_se is None else format_number(row.score_se),
        format_number(row.raw.value) if row.raw else "",
        format_number(row.mean),
        format_number(row.minimum),
        Text(str(row.below), style="" if row.below else "dim"),
        Text(f"{row.failed}/{row.runs}", style="red" if row.failed else "dim"),
        row.sees,
        format_values(row),
        format_queries(row.queries_per_response),
        format_share(row.improvement),
        format_seconds(row.seconds_wall) + together,
        format_bytes(row.peak_memory_bytes) + together,
    )


def _failures(board: Board) -> Iterable[RenderableType]:
    if not board.failures:
        return
    yield Text(f"failed runs: {len(board.failures)}", style="bold red")
    for failure in board.failures[:LISTED_FAILURES]:
        line = f"{failure.agent} on {failure.environment}, seed {failure.seed}: {failure.status}: {failure.error}"
        yield Padding(Text(plain(line).splitlines()[0][:LONGEST_FAILURE]), (0, 2))
    if len(board.failures) > LISTED_FAILURES:
        yield Padding(Text(f"and {len(board.failures) - LISTED_FAILURES} more: see --json or --html"), (0, 2))
    yield Text()


def _notes(board: Board, explain: bool) -> Iterable[RenderableType]:
    for sentence in board.method if explain else (board.method[0], SHORT):
        yield Text(sentence, style="dim")
    if board.standings and explain:
        yield Text(
            "±: largest standard error of a run's score, where some are estimates. raw: score with no run clipped, "
            "where one is. min: lowest score on one environment, not clipped. below: number of environments with a "
            "score below .1. sees: tokens alone; structure, features or a view that the setting defines; secret, what "
            "it hides. values: of hyper-parameters, default (or as they were given), or tuned by a search, whose cost "
            "stands below. > ref: probability that a run beats one of the reference agent. "
            "Time and memory are those of a run; °: runs were trained together, so that time is a share and memory "
            "that of all.",
            style="dim",
        )


def _chart(chart: Chart, styles: Mapping[str, Style]) -> Iterable[RenderableType]:
    """Yield a chart as a table: each series in small, its values at a few places, and how it agrees with theory."""
    places = _shown_places(chart)
    yield Text.assemble((plain(chart.title), "bold"), (f"   {plain(chart.y.title)} by {plain(chart.x.title)}", "dim"))
    grid = FittingTable([0, -1])
    grid.add_column("", max_width=26, overflow="fold")
    grid.add_column("", no_wrap=True)
    for place in places:
        grid.add_column(format_tick(place), justify="right", no_wrap=True)
    for series in chart.series:
        values, colour = dict(zip(series.x, series.y, strict=True)), styles[series.group].colour
        name = Text.assemble((_GLYPHS[series.style], colour), f" {plain(series.group)}")
        numbers = [f"{values[place]:.3g}" if place in values else "" for place in places]
        grid.add_row(name, Text(_spark(chart, series), colour), *numbers)
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
    longest = max(chart.series, key=lambda series: (series.style in ("measured", "line", "band"), len(series.x)))
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
