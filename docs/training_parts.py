"""What the page of the training family alone shows: what readings are worth, and who is above the best fixed plan."""

from typing import Any

import reference_tables as tables
from answers import digits, oracle_of, setting_link
from families import families
from learners import above_table, plan_scores
from reference_data import Numbers

from theorybench.leaderboard.showing.words import format_number


def values(numbers: Numbers) -> dict[str, Any]:
    """Return what the template asks for beside what every family has."""
    ranges = {(row.agent, row.environment): (row.low, row.high) for row in numbers.rows}
    mixture = oracle_of("TheoryBench/InductionMixture-v0")
    plans = plan_scores(numbers)

    def spread(environment: str, agent: str) -> str:
        low, high = ranges[agent, environment]
        return f"{format_number(low)} to {format_number(high)}"

    return {
        "spread": spread,
        "plan": lambda environment: format_number(plans[environment]),
        "worth_table": worth_table(),
        "looks_worth": f"{mixture.value_of_readings / mixture.setting.probe_price:.0f}",
        "above_table": above_table(numbers, plans),
    }


def worth_table() -> str:
    """Return what habits, plans and readings earn in each setting, with its default parameters."""
    rows = []
    for id in families()["training"].settings:
        oracle = oracle_of(id)
        earned = (oracle.reference_value, oracle.open_loop, oracle.optimal_value, oracle.value_of_readings)
        rows.append((setting_link(id), *(digits(value) for value in earned)))
    return tables.table(("setting", "what people do", "best fixed plan", "optimum", "readings are worth"), rows)
