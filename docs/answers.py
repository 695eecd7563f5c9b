"""Exact answers that several pages show: what people do, plans, rules and the optimum earn in a setting."""

from collections.abc import Mapping
from typing import Any

import reference_tables as tables

from theorybench.envs.core.evidence.interval import Interval
from theorybench.envs.core.registry import lookup
from theorybench.leaderboard.showing.words import format_interval, format_number


def oracle_of(id: str, parameters: Mapping[str, Any] | None = None) -> Any:
    """Return the oracle of a setting, at its default parameters unless told otherwise."""
    entry = lookup(id)
    return entry.oracle(entry.make_setting(dict(parameters or {})))


def scaled(oracle: Any, value: float) -> float:
    """Return a value as a score: 0 is the reference's, 1 the optimum's."""
    return float((value - oracle.reference_value) / (oracle.optimal_value - oracle.reference_value))


def digits(value: float, form: str = ".4f") -> str:
    """Write an exact value with four digits. The last bits depend on the order of sums: halves are rounded without."""
    return f"{round(value, 12):{form}}"


def with_interval(value: float, low: float, high: float) -> str:
    """Write a value and its interval."""
    return f"{format_number(value)} {format_interval(Interval(value, low, high))}"


def setting_link(id: str) -> str:
    """Return a link to the page of a setting, named without its version."""
    name = id.partition("/")[2]
    return f"[{name.partition('-v')[0]}](settings/{name}.md)"


def rules_table(setting: str, **parameters: Any) -> str:
    """Return what each rule of a setting, such as "WeakToStrong-v0", earns: at its defaults if no parameters are given.

    The best comes first.
    """
    oracle = oracle_of(f"TheoryBench/{setting}", parameters)
    found = {name: oracle.evaluate(policy)["objective"] for name, policy in oracle.rules.items()}
    ordered = sorted(found.items(), key=lambda pair: -pair[1])
    rows = [(f"`rule[name={name}]`", digits(own), format_number(scaled(oracle, own))) for name, own in ordered]
    return tables.table(("rule", "earns", "score"), rows)
