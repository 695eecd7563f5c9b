"""What the page of the context family alone shows: what practice, rules, a look ahead and learners earn."""

from typing import Any

import reference_tables as tables
from families import families
from reference_data import Numbers

from theorybench.agents.api.loading import agent_class, list_agents
from theorybench.envs.core.registry import lookup
from theorybench.leaderboard.showing.words import format_number


def values(numbers: Numbers) -> dict[str, Any]:
    """Return what the template asks for beside what every family has."""
    return {"worth_table": worth_table(), "learners_table": learners_table(numbers)}


def rules_of(setting: str) -> list[str]:
    """Return the names of the rules that are made for a setting, such as "TrainingLength"."""
    return [name for name in list_agents() if setting in (getattr(agent_class(name), "settings", None) or ())]


def worth_table() -> str:
    """Return what practice, one step of look-ahead and the optimum earn with default parameters."""
    rows = []
    for id in families()["context"].settings:
        entry, name = lookup(id), id.partition("/")[2]
        oracle = entry.oracle(entry.make_setting({}))
        earned = (oracle.reference_value, oracle.greedy_value, oracle.optimal_value)
        score = oracle.score(oracle.greedy_policy)
        link = f"[{name.partition('-v')[0]}](settings/{name}.md)"
        rows.append((link, *(f"{value:.4f}" for value in earned), format_number(score)))
    heads = ("setting", "what people do", "one step of look-ahead", "optimum", "score of look-ahead")
    return tables.table(heads, rows)


def learners_table(numbers: Numbers) -> str:
    """Return, for each environment, the best rule, one step of look-ahead, and the best table, network and search."""
    rows, agents = [], {agent.label: agent.agent for agent in numbers.agents}
    for environment in numbers.environments:
        found = sorted(
            (row for row in numbers.rows if row.environment == environment.label), key=lambda row: -row.score
        )
        rules = rules_of(environment.env_id.partition("/")[2].partition("-v")[0])
        kinds: dict[str, list[str]] = {"rule": [], "planner-greedy": [], "table": [], "network": []}
        for row in found:
            agent = agents[row.agent]
            if agent in kinds:
                kind = agent
            elif agent in rules:
                kind = "rule"
            elif agent_class(agent).feedback == "reward":
                kind = "network" if "network" in row.agent or agent.startswith("sb3") else "table"
            else:
                continue
            name = "" if kind == "planner-greedy" else f"`{row.agent}` "
            spent = "" if kind in ("rule", "planner-greedy") else f" ({row.seconds:.0f} s)"
            kinds[kind].append(f"{name}{format_number(row.score)}{spent}")
        rows.append((environment.label, *(best[0] if best else "" for best in kinds.values())))
    heads = ("environment", "best rule", "one step of look-ahead", "best table", "best network")
    return tables.table(heads, rows)
