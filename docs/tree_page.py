"""The page of the tree family: prose in `tree.md.j2`, every number from the code or from the reference numbers."""

from pathlib import Path
from typing import Any

import reference_data as data
import reference_tables as tables
from agent_groups import kind
from jinja2 import Environment, FileSystemLoader, StrictUndefined

import theorybench as tb
from theorybench.envs.tree.markov_chain import TreeMarkovChain
from theorybench.envs.tree.markov_chain_oracle import MarkovChainOracle
from theorybench.envs.tree.traffic import common_cots
from theorybench.leaderboard.table import format_number, format_queries

FOLDER = Path(__file__).parent
SUITE = "tree"


def render() -> str:
    """Return the page."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    numbers = data.read_numbers(SUITE)
    scores = {(row.agent, row.environment): row.score for row in numbers.rows}
    claims = {row["id"]: row for row in data.read("claims-tree")["claims"]}
    return environment.get_template("tree.md.j2").render(
        cots=cots_table(),
        reference=_reference_metrics(),
        claim=claims.__getitem__,
        claims_table=lambda id: tables.claims_table(tb.claims(id)),
        claims_made=tables.provenance(data.Provenance(**data.read("claims-tree")["provenance"])),
        studies_made=tables.provenance(data.Provenance(**data.read("studies-tree")["provenance"])),
        studies=[{**row, **_about(row)} for row in data.read("studies-tree")["studies"]],
        study_tables=tables.study_tables,
        overview=tables.overview(SUITE),
        score=lambda environment, agent: format_number(scores[agent, environment]),
        test_time=test_time_table(numbers),
        suite=numbers,
        suite_command=tables.suite_command(SUITE),
        suite_made=tables.provenance(numbers.provenance),
    )


def cots_table() -> str:
    """Return the valid chains of thought of the canonical tree, by task, the most common first."""
    setting, rows = TreeMarkovChain(), []
    for task, mass in enumerate(setting.valid_mass):
        found = common_cots(setting, task, setting.M ** (setting.L - 2))
        for states, easy, correctness in zip(*found, strict=True):
            path, word = " ".join(map(str, states)), "easy" if easy else "hard"
            rows.append((task + 1, path, word, f"{mass * correctness:.4f}", f"{correctness:.4f}"))
    return tables.table(("task", "chain of thought", "kind", "probability given its start", "correctness"), rows)


def test_time_table(numbers: data.Numbers) -> str:
    """Return the test-time methods: score on each tree, and queries of a reward model for each response."""
    labels = [env.label for env in numbers.environments if env.env_id.endswith("TreeMarkovChain-v0")]
    cells = {(row.agent, row.environment): row for row in numbers.rows}
    rows = []
    for agent in numbers.agents:
        if kind(agent.agent) == "Test time":
            own = [cells[agent.label, label] for label in labels]
            queries = [format_queries(row.queries) for row in own]
            name = f"[{agent.label}](agents/{agent.agent}.md)"
            rows.append((name, *(format_number(row.score) for row in own), " / ".join(dict.fromkeys(queries))))
    return tables.table(("method", *labels, "queries"), rows)


def _reference_metrics() -> dict[str, float]:
    oracle = MarkovChainOracle(TreeMarkovChain())
    metrics: dict[str, float] = oracle.evaluate(oracle.reference_policy)
    return metrics


def _about(row: dict[str, Any]) -> dict[str, str]:
    """Return what the code says of a study."""
    study = next(study for study in tb.studies(row["environment"]) if study.id == row["id"])
    return {"title": study.title, "text": study.text, "source": study.source}
