"""What the page of the supervision family alone shows: what common practice, the best purchases and sight are worth."""

from typing import Any

import reference_tables as tables
from families import families
from learners import learners_table
from reference_data import Numbers

from theorybench.envs.core.registry import lookup
from theorybench.leaderboard.showing.words import format_number


def values(numbers: Numbers) -> dict[str, Any]:
    """Return what the template asks for beside what every family has."""
    return {"worth_table": worth_table(), "learners_table": learners_table(numbers), "rules_table": rules_table}


def oracle_of(id: str) -> Any:
    """Return the oracle of a setting of the family at its default parameters."""
    entry = lookup(id)
    return entry.oracle(entry.make_setting({}))


def worth_table() -> str:
    """Return what practice, the optimum and one who sees what is hidden earn with default parameters."""
    rows = []
    for id in families()["supervision"].settings:
        oracle, name = oracle_of(id), id.partition("/")[2]
        earned = (oracle.reference_value, oracle.optimal_value, oracle.clairvoyant)
        rows.append((f"[{name.partition('-v')[0]}](settings/{name}.md)", *(f"{value:.4f}" for value in earned)))
    return tables.table(("setting", "what people do", "optimum", "one who sees what is hidden"), rows)


def rules_table(setting: str) -> str:
    """Return what each rule of a setting, such as "WeakToStrong-v0", earns at its default parameters."""
    oracle = oracle_of(f"TheoryBench/{setting}")
    found = {name: oracle.evaluate(policy)["objective"] for name, policy in oracle.rules.items()}
    ordered = sorted(found.items(), key=lambda pair: -pair[1])
    span = oracle.optimal_value - oracle.reference_value
    rows = [
        (f"`rule[name={name}]`", f"{own:.4f}", format_number((own - oracle.reference_value) / span))
        for name, own in ordered
    ]
    return tables.table(("rule", "earns", "score"), rows)
