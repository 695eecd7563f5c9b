"""What the page of the supervision family alone shows: what common practice, the best purchases and sight are worth."""

from typing import Any

import reference_tables as tables
from answers import digits, oracle_of, rules_table, setting_link
from families import families
from learners import learners_table
from reference_data import Numbers


def values(numbers: Numbers) -> dict[str, Any]:
    """Return what the template asks for beside what every family has."""
    return {"worth_table": worth_table(), "learners_table": learners_table(numbers), "rules_table": rules_table}


def worth_table() -> str:
    """Return what practice, the optimum and one who sees what is hidden earn with default parameters."""
    rows = []
    for id in families()["supervision"].settings:
        oracle = oracle_of(id)
        earned = (oracle.reference_value, oracle.optimal_value, oracle.clairvoyant)
        rows.append((setting_link(id), *(digits(value) for value in earned)))
    return tables.table(("setting", "what people do", "optimum", "one who sees what is hidden"), rows)
