"""Tables of who does best: of rules, of a look one step ahead, of tables and of networks; and who uses what is read."""

import reference_tables as tables
from answers import oracle_of, scaled
from reference_data import Numbers

from theorybench.agents.api.loading import agent_class
from theorybench.agents.rule import Rule
from theorybench.leaderboard.showing.words import format_number

#: What the columns are called; one of nobody is left out.
HEADS = {
    "rule": "best rule",
    "planner-greedy": "one step of look-ahead",
    "table": "best table",
    "network": "best network",
}


def learners_table(numbers: Numbers) -> str:
    """Return, for each environment, the best rule, one step of look-ahead, and the best table, network and search."""
    rows, agents = [], {agent.label: agent.agent for agent in numbers.agents}
    for environment in numbers.environments:
        found = (row for row in numbers.rows if row.environment == environment.label)
        kinds: dict[str, list[str]] = {kind: [] for kind in HEADS}
        for row in sorted(found, key=lambda row: -row.score):
            agent = agents[row.agent]
            if agent in kinds:
                kind = agent
            elif issubclass(agent_class(agent), Rule):
                kind = "rule"
            elif agent_class(agent).feedback == "reward":
                kind = "network" if "network" in row.agent or agent.startswith("sb3") else "table"
            else:
                continue
            name = "" if kind == "planner-greedy" else f"`{row.agent}` "
            spent = "" if kind in ("rule", "planner-greedy") else f" ({row.seconds:.0f} s)"
            kinds[kind].append(f"{name}{format_number(row.score)}{spent}")
        rows.append(
            {"environment": environment.label} | {kind: best[0] if best else "" for kind, best in kinds.items()}
        )
    shown = ["environment", *(kind for kind in HEADS if any(row[kind] for row in rows))]
    return tables.table([HEADS.get(kind, kind) for kind in shown], [[row[kind] for kind in shown] for row in rows])


def plan_scores(numbers: Numbers) -> dict[str, float]:
    """Return the score of the best plan that is fixed in advance, for each of what the prompt shows, by environment."""
    found = {}
    for environment in numbers.environments:
        oracle = oracle_of(environment.env_id, environment.parameters)
        found[environment.label] = scaled(oracle, oracle.open_loop)
    return found


def above(numbers: Numbers, environment: str, plan: float) -> str:
    """Name the learners whose interval is above the best fixed plan on an environment, the best first; or "none"."""
    found = [row for row in numbers.rows if row.environment == environment and row.low > plan]
    learnt = {agent.label for agent in numbers.agents if agent_class(agent.agent).feedback == "reward"}
    best = sorted((row for row in found if row.agent in learnt), key=lambda row: -row.score)
    return ", ".join(f"`{row.agent}` {format_number(row.score)} ({row.seconds:.1f} s)" for row in best) or "none"


def above_table(numbers: Numbers, plans: dict[str, float]) -> str:
    """Return, for each environment where readings are worth anything, who uses them."""
    rows = []
    for label, plan in plans.items():
        if plan < 1 - 1e-6:
            rows.append((label, format_number(plan), above(numbers, label, plan)))
    return tables.table(("environment", "score of the best fixed plan", "learners above it"), rows)
