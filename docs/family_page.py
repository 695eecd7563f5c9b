"""The pages of a family: prose in their templates, every number from the code or from the reference numbers."""

from pathlib import Path
from typing import Any

import reference_data as data
import reference_tables as tables
from families import Family
from templates import template

import theorybench as tb
from theorybench.leaderboard.showing.words import format_number

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def render(family: Family, page: str) -> str:
    """Return a page. Templates are given:

    - `claim(id)`: a claim's numbers; `claims_table(setting)`; `claims_counted(*settings)`: how many hold, without any
      setting of all; `claims_made`: where they come from;
    - `studies(setting)`: studies of a setting, without it of all; `study_tables(study)`; `studies_made`;
    - `suite`: the suite's numbers; `score(environment, agent)`; `overview(*settings)`, without any of all;
      `ranking` and `curves`, its pictures; `suite_command`, `suite_made`;
    - `example(name)`: the code of an example, below its docstring;
    - what `<family>_parts.py` says.

    A setting is named without its namespace.
    """
    numbers = data.read_numbers(family.suite)
    scores = {(row.agent, row.environment): row.score for row in numbers.rows}
    checked, ran = (data.read(f"{kind}-{family.name}") for kind in ("claims", "studies"))
    claims = {row["id"]: row for row in checked["claims"]}

    def studies(setting: str | None = None) -> list[dict[str, Any]]:
        own = [row for row in ran["studies"] if setting in (None, row["environment"].partition("/")[2])]
        return [{**row, **about(row)} for row in own]

    return template(f"{page}.md.j2").render(
        claim=claims.__getitem__,
        claims_table=lambda setting: tables.claims_table(f"TheoryBench/{setting}"),
        claims_counted=lambda *settings: tables.claims_counted(
            [row for row in claims.values() if not settings or row["environment"].partition("/")[2] in settings]
        ),
        claims_made=tables.provenance(data.Provenance(**checked["provenance"])),
        studies=studies,
        study_tables=tables.study_tables,
        studies_made=tables.provenance(data.Provenance(**ran["provenance"])),
        suite=numbers,
        score=lambda environment, agent: format_number(scores[agent, environment]),
        overview=lambda *settings: tables.overview(family.suite, [f"TheoryBench/{setting}" for setting in settings]),
        ranking="\n\n".join(f"![Ranking](pictures/{name})" for name in numbers.pictures if name.startswith("ranking-")),
        curves="\n\n".join(_curves(family, page, numbers)),
        suite_command=tables.suite_command(family.suite),
        suite_made=tables.made(numbers),
        example=lambda name: (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").split('"""\n\n', 1)[1].strip(),
        **(family.parts.values(numbers) if family.parts else {}),
    )


def _curves(family: Family, page: str, numbers: data.Numbers) -> list[str]:
    """Return the pictures of learning curves of a page; the names say whose they are (`measure.py` gives them)."""
    longer = tuple(f"curves-{other}" for other in family.pages if other.startswith(f"{page}-"))
    own = [name for name in numbers.pictures if name.startswith(f"curves-{page}") and not name.startswith(longer)]
    units = {name: next((unit for unit in ("comparisons", "labels") if unit in name), "episodes") for name in own}
    return [f"![Score by {units[name]} spent](pictures/{name})" for name in own]


def about(row: dict[str, Any]) -> dict[str, Any]:
    """Return what the code says of a study."""
    study = next(study for study in tb.studies(row["environment"]) if study.id == row["id"])
    return {"title": study.title, "text": study.text, "source": study.source, "exact": study.exact}
