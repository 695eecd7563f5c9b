"""What the page of the context family alone shows: what practice, rules, a look ahead and learners earn."""

from typing import Any

import reference_tables as tables
from answers import digits, oracle_of, setting_link
from families import families
from learners import learners_table
from reference_data import Numbers

from theorybench.leaderboard.showing.words import format_number


def values(numbers: Numbers) -> dict[str, Any]:
    """Return what the template asks for beside what every family has."""
    return {"worth_table": worth_table(), "learners_table": learners_table(numbers)}


def worth_table() -> str:
    """Return what practice, one step of look-ahead and the optimum earn with default parameters."""
    rows = []
    for id in families()["context"].settings:
        oracle = oracle_of(id)
        earned = (oracle.reference_value, oracle.greedy_value, oracle.optimal_value)
        score = oracle.score(oracle.greedy_policy)
        rows.append((setting_link(id), *(digits(value) for value in earned), format_number(score)))
    heads = ("setting", "what people do", "one step of look-ahead", "optimum", "score of look-ahead")
    return tables.table(heads, rows)
