"""The page about language models: prose in its template, numbers from the reference numbers of the suite `language`."""

import os
import runpy
import sys
from pathlib import Path
from typing import Any

import reference_data as data
import reference_tables as tables
from family_page import about
from templates import template

from theorybench.leaderboard.showing.words import format_number

SUITE = "language"
EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "table_and_transformer.py"


def draw(folder: Path) -> list[Path]:
    """Draw what the example of chains of thought draws."""
    path, told = folder / "chains.png", sys.argv
    sys.argv = [EXAMPLE.name, os.fspath(path)]
    try:
        runpy.run_path(os.fspath(EXAMPLE), run_name="__main__")
    finally:
        sys.argv = told
    return [path]


def render() -> str:
    """Return the page. Its template is given:

    - `score(environment, agent)`, `overview(*settings)`, `suite_command`, `suite_made`: of the suite;
    - `study(id)`: numbers of a study of the tree, `study_tables(study)` its tables.
    """
    numbers = data.read_numbers(SUITE)
    scores = {(row.agent, row.environment): row.score for row in numbers.rows}
    studies: dict[str, dict[str, Any]] = {row["id"]: row | about(row) for row in data.read("studies-tree")["studies"]}
    return template(f"{SUITE}.md.j2").render(
        score=lambda environment, agent: format_number(scores[agent, environment]),
        overview=lambda: tables.overview(SUITE),
        suite=numbers,
        suite_command=tables.suite_command(SUITE),
        suite_made=tables.made(numbers),
        study=studies.__getitem__,
        study_tables=tables.study_tables,
    )
