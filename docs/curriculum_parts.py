"""What the page of the curriculum family alone shows: what theory asks for on the way to the full task, and without."""

from typing import Any

import reference_tables as tables
from families import families
from reference_data import Numbers

from theorybench.envs.core.evidence.difficulty import Difficulty
from theorybench.envs.core.registry import Entry, lookup
from theorybench.leaderboard.showing.words import format_number


def values(numbers: Numbers) -> dict[str, Any]:
    """Return what the template asks for beside what every family has."""
    ranges = {(row.agent, row.environment): (row.low, row.high) for row in numbers.rows}

    def spread(environment: str, agent: str) -> str:
        low, high = ranges[agent, environment]
        return f"{format_number(low)} to {format_number(high)}"

    return {"laws_table": laws_table(), "spread": spread}


def laws_table() -> str:
    """Return the episodes that theory asks for, directly and by stages, on a setting's second level and last but one.

    The levels are those of its first ladder of difficulty.
    """
    rows = []
    for entry in map(lookup, families()["curriculum"].settings):
        for difficulty in entry.difficulties[:1]:
            places = difficulty.values[1], difficulty.values[-2]
            cells = [_queries(entry, difficulty, value, s) for s in ("direct", "curriculum") for value in places]
            name = entry.id.partition("/")[2]
            link = f"[{name.partition('-v')[0]}](settings/{name}.md)"
            rows.append((link, f"{difficulty.parameter} = {places[0]}, {places[1]}", *cells))
    header = ("setting", "size", "full task, short", "full task, long", "by stages, short", "by stages, long")
    return tables.table(header, rows)


def _queries(entry: Entry, difficulty: Difficulty, value: int, strategy: Any) -> str:
    setting = entry.make_setting({**difficulty.parameters, difficulty.parameter: value})
    asked = difficulty.queries(entry.oracle(setting), strategy)
    return "" if asked is None else f"{asked:,.0f}"
