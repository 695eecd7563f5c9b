"""What the page of the features family alone shows: what theory, readings and hidden worlds are worth."""

from pathlib import Path
from typing import Any

import reference_data as data
import reference_tables as tables
from answers import digits, oracle_of, rules_table, scaled, setting_link
from families import families
from learners import above_table, learners_table, plan_scores
from reference_data import Numbers

from theorybench.agents.api.loading import agent_class
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.finite.oracle import PointPolicy
from theorybench.envs.core.finite.rules import HABIT
from theorybench.leaderboard.showing.pictures import save
from theorybench.leaderboard.showing.words import format_number


def values(numbers: Numbers) -> dict[str, Any]:
    """Return what the template asks for beside what every family has."""
    plans = plan_scores(numbers)
    return {
        "plan": lambda environment: format_number(plans[environment]),
        "worth_table": worth_table(),
        "learners_table": learners_table(numbers),
        "above_table": above_table(numbers, plans),
        "rules_table": rules_table,
    }


def habit_value(oracle: Any) -> float:
    """Return what the habit of people earns, without slips."""
    setting = oracle.setting
    return float(oracle.evaluate(PointPolicy(setting, setting.rows, setting.rule(HABIT)))["objective"])


def sight_value(oracle: Any) -> float | None:
    """Return what one earns who is shown the hidden start; None where that is not computed."""
    try:
        return float(oracle.clairvoyant)
    except ParameterError:
        return None


def worth_table() -> str:
    """Return what the habit, the best plan, the optimum and one who sees the start earn, and what lies between."""
    rows = []
    for id in families()["features"].settings:
        oracle = oracle_of(id)
        earned = [habit_value(oracle), oracle.open_loop, oracle.optimal_value, sight_value(oracle)]
        between = [earned[1] - earned[0], earned[2] - earned[1], None if earned[3] is None else earned[3] - earned[2]]
        shown = ("" if value is None else digits(value) for value in (*earned, *between))
        rows.append((setting_link(id), *shown))
    heads = ("what people do", "best fixed plan", "optimum", "one who sees the start")
    gaps = ("theory is worth", "readings are worth", "hidden for ever")
    return tables.table(("setting", *heads, *gaps), rows)


def draw(folder: Path) -> list[Path]:
    """Draw, for each environment of the suite, habit, best plan, best rule, best learner and sight as scores."""
    from matplotlib.figure import Figure

    numbers = data.read_numbers("features")
    agents = {agent.label: agent.agent for agent in numbers.agents}
    figure = Figure(figsize=(8.0, 0.9 + 0.42 * len(numbers.environments)), dpi=110, facecolor="white")
    axes = figure.subplots()
    series: dict[str, list[tuple[float, int]]] = {}
    for place, environment in enumerate(numbers.environments):
        oracle = oracle_of(environment.env_id, environment.parameters)
        own = [row for row in numbers.rows if row.environment == environment.label]
        rules = [row.score for row in own if agents[row.agent] == "rule"]
        learners = [row.score for row in own if agent_class(agents[row.agent]).feedback == "reward"]
        sight = sight_value(oracle)
        found = {
            "what people do": scaled(oracle, habit_value(oracle)),
            "best rule": max(rules, default=None),
            "best fixed plan": scaled(oracle, oracle.open_loop),
            "best learner": max(learners, default=None),
            "one who sees the start": None if sight is None else scaled(oracle, sight),
        }
        for name, score in found.items():
            series.setdefault(name, []).extend([] if score is None else [(score, place)])
    looks = {
        "what people do": ("s", "#8a94a0"),
        "best rule": ("D", "#c2571a"),
        "best fixed plan": ("|", "#1b2733"),
        "best learner": ("o", "#2a6fb0"),
        "one who sees the start": ("x", "#3b8a48"),
    }
    for name, points in series.items():
        x, y = zip(*points, strict=True) if points else ((), ())
        marker, color = looks[name]
        axes.scatter(x, y, marker=marker, color=color, label=name, s=160 if marker == "|" else 44, zorder=3)
    for level, name in ((0.0, "reference"), (1.0, "optimum")):
        axes.axvline(level, color="#c9d0d8", zorder=1)
        axes.text(level, -0.75, name, ha="center", fontsize=8, color="#5b6b7b")
    axes.set_yticks(range(len(numbers.environments)), [environment.label for environment in numbers.environments])
    axes.set_ylim(len(numbers.environments) - 0.5, -0.6)
    axes.set_xlabel("score")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.14), ncols=5, frameon=False, fontsize=8, columnspacing=1.0)
    figure.tight_layout()
    return [save(figure, folder / "features-values.png")]
