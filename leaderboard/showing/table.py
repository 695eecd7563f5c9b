"""The board in the terminal: one table for each track, one for each environment."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from rich.console import Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from theorybench.leaderboard.comparing.board import Board, Standing
from theorybench.leaderboard.comparing.ladders import LadderBoard
from theorybench.leaderboard.comparing.ranking import Estimate, Row
from theorybench.leaderboard.showing.ladder_table import HEADS, rows

#: Failed runs that are listed; the page and the JSON form have all.
LISTED_FAILURES = 10
#: The column that only tables with test-time methods have.
QUERIES = "queries"


def render(board: Board) -> RenderableType:
    """Return the whole board; print it with `rich.console.Console().print`, legible from 80 columns on."""
    parts: list[RenderableType] = [Text(plain(board.title), style="bold"), Text(plain(board.summary)), Text()]
    labels = {entry.environment.id: entry.environment.label for entry in board.environments}
    shown = {standing.environments for standing in board.standings}
    apart = [entry.standing for entry in board.environments if entry.standing.environments not in shown]
    for standing in (*board.standings, *apart):
        parts += [standing_table(standing, labels), Text()]
    for ladder in board.ladders:
        parts += [ladder_table(ladder), Text()]
    return Group(*parts, *_failures(board), *_notes(board))


def standing_table(standing: Standing, labels: Mapping[str, str]) -> Table:
    """Return the table of one standing; `labels` name its environments by id."""
    names = [labels[id] for id in standing.environments]
    title = Text(plain(standing.title), style="bold")
    if standing.title not in names:
        title.append(f"  {plain(names[0]) if len(names) == 1 else f'{len(names)} environments'}", style="dim")
    remarks = [f"{row.label} ({row.remark.replace('environments', 'envs')})" for row in standing.rows if row.remark]
    table = Table(
        title=title,
        title_justify="left",
        caption=Text(plain(f"unranked: {', '.join(remarks)}")) if remarks else None,
        caption_justify="left",
        box=None,
        pad_edge=False,
        collapse_padding=True,
        header_style="dim",
    )
    columns = [column for column in _COLUMNS if column.name != QUERIES or standing.queried]
    for name, justify, _ in columns:
        wraps = name == "agent"
        least, most = (17, 34) if wraps else (None, None)
        table.add_column(name, justify=justify, no_wrap=not wraps, overflow="fold", min_width=least, max_width=most)
    for row in standing.rows:
        table.add_row(*(column.cell(row) for column in columns), style="" if row.rank else "dim")
    return table


def ladder_table(ladder: LadderBoard) -> Table:
    """Return the table of one ladder: how high each agent climbs, and by which law its cost grows."""
    title = Text(plain(ladder.title), style="bold")
    title.append(f"  {plain(ladder.size)}: {ladder.sizes[0]:g} to {ladder.sizes[-1]:g}", style="dim")
    laws = "\n".join(f"theory, {law.way}: {law.formula}, {law.growth}" for law in ladder.laws)
    table = Table(
        title=title,
        title_justify="left",
        caption=Text(plain(laws)) if laws else None,
        caption_justify="left",
        box=None,
        pad_edge=False,
        collapse_padding=True,
        header_style="dim",
    )
    for place, (name, number) in enumerate(HEADS):
        # Long names of agents wrap first.
        table.add_column(
            name,
            justify="right" if number else "left",
            overflow="fold",
            min_width=15 if place == 0 else None,
            no_wrap=name not in ("agent", "growth of cost"),
        )
    for row in rows(ladder):
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table


def plain(text: str) -> str:
    """Replace what a terminal would obey, such as escape sequences, by "?"."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)


def format_number(value: float) -> str:
    """Three decimals, and no minus before zero."""
    return f"{value + 0.0:.3f}".replace("-0.000", "0.000")


def format_interval(estimate: Estimate) -> str:
    """Such as "[0.812, 0.934]"; a dash where it is not known."""
    if estimate.low is None or estimate.high is None:
        return "-"
    return f"[{format_number(estimate.low)}, {format_number(estimate.high)}]"


def format_seconds(seconds: float | None) -> str:
    """Such as "0.45 s", "12 s", "3.2 min"; a dash where it is not known."""
    if seconds is None:
        return "-"
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.{2 if seconds < 1 else 1 if seconds < 10 else 0}f} s"


def format_bytes(size: int | None) -> str:
    """Such as "412 MB"; a dash where it is not known."""
    if size is None:
        return "-"
    return f"{size / 1e6:.0f} MB" if size < 2e9 else f"{size / 1e9:.1f} GB"


def format_queries(queries: float) -> str:
    """Queries of a reward model for each response, such as "8" or "12.5"; a dash for none."""
    return f"{queries:,.1f}".removesuffix(".0") if queries > 0 else "-"


def format_share(estimate: Estimate | None) -> str:
    """A probability in percent; a dash where there is none."""
    return "-" if estimate is None else f"{100 * estimate.value:.0f} %"


class _Column(NamedTuple):
    """A column: its header, and what it says of a row."""

    name: str
    justify: JustifyMethod
    cell: Callable[[Row], RenderableType]


_COLUMNS = (
    _Column("rank", "right", lambda row: str(row.rank or "-")),
    _Column("agent", "left", lambda row: Text(plain(row.label), style="bold" if row.rank == 1 else "")),
    _Column("score", "right", lambda row: format_number(row.score.value)),
    _Column("95 % interval", "left", lambda row: format_interval(row.score)),
    _Column("> ref", "right", lambda row: format_share(row.improvement)),
    _Column("failed", "right", lambda row: Text(f"{row.failed}/{row.runs}", style="red" if row.failed else "dim")),
    _Column(QUERIES, "right", lambda row: format_queries(row.queries_per_response)),
    _Column("time", "right", lambda row: format_seconds(row.seconds_wall) + "°" * row.lifted),
    _Column("memory", "right", lambda row: format_bytes(row.peak_memory_bytes) + "°" * row.lifted),
)


def _failures(board: Board) -> Iterable[RenderableType]:
    if not board.failures:
        return
    yield Text(f"failed runs: {len(board.failures)}", style="bold red")
    for failure in board.failures[:LISTED_FAILURES]:
        line = f"{failure.agent} on {failure.environment}, seed {failure.seed}: {failure.status}: {failure.error}"
        yield Padding(Text(plain(line).splitlines()[0], overflow="ellipsis", no_wrap=True), (0, 2))
    if len(board.failures) > LISTED_FAILURES:
        yield Padding(Text(f"and {len(board.failures) - LISTED_FAILURES} more: see --json or --html"), (0, 2))
    yield Text()


def _notes(board: Board) -> Iterable[RenderableType]:
    for sentence in board.method:
        yield Text(sentence, style="dim")
    if not board.standings:
        return
    yield Text(
        "> ref: probability that a run beats one of the reference agent. Time and memory are those of a run; "
        "°: runs were trained together, so that time is a share and memory that of all.",
        style="dim",
    )
