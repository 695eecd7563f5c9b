"""What the page of the curriculum family alone shows: what theory asks for on the way to the full task, and without."""

from typing import Any

import reference_tables as tables
from reference_data import Numbers

from theorybench.envs.core.evidence.difficulty import Difficulty
from theorybench.envs.core.registry import Entry, lookup
from theorybench.leaderboard.showing.words import format_number

#: Ladders of difficulty of the table, and two of the values of each: short, and long.
SHOWN = (
    ("ReasoningTree", "L", (2, 9)),
    ("Parity", "k", (2, 10)),
    ("KFoldComposition", "k", (2, 8)),
    ("Semiautomaton", "T", (2, 8)),
    ("Countdown", "numbers", (3, 5)),
)


def values(numbers: Numbers) -> dict[str, Any]:
    """Return what the template asks for beside what every family has."""
    ranges = {(row.agent, row.environment): (row.low, row.high) for row in numbers.rows}

    def spread(environment: str, agent: str) -> str:
        low, high = ranges[agent, environment]
        return f"{format_number(low)} to {format_number(high)}"

    return {"laws_table": laws_table(), "spread": spread}


def laws_table() -> str:
    """Return the episodes that theory asks for, directly and by stages, on a short task and on a long one."""
    rows = []
    for name, parameter, places in SHOWN:
        entry = lookup(f"TheoryBench/{name}-v0")
        difficulty = entry.difficulty(parameter)
        pairs = [(value, strategy) for strategy in ("direct", "curriculum") for value in places]
        cells = [_queries(entry, difficulty, *pair) for pair in pairs]
        link = f"[{name}](settings/{name}-v0.md)"
        rows.append((link, f"{parameter} = {places[0]}, {places[1]}", *cells))
    header = ("setting", "size", "full task, short", "full task, long", "by stages, short", "by stages, long")
    return tables.table(header, rows)


def _queries(entry: Entry, difficulty: Difficulty, value: int, strategy: Any) -> str:
    setting = entry.make_setting({**difficulty.parameters, difficulty.parameter: value})
    asked = difficulty.queries(entry.oracle(setting), strategy)
    return "" if asked is None else f"{asked:,.0f}"
