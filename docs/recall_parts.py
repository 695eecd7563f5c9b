"""What the pages of the family recall alone show: how far what architectures learnt on short prompts carries."""

import inspect
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import reference_data as data
import reference_tables as tables
from answers import oracle_of, rules_table, scaled, setting_link
from families import families
from reference_data import Numbers

import theorybench as tb
from theorybench.agents.policies.catalogue import CATALOGUE
from theorybench.envs.core.evidence.interval import mean_interval
from theorybench.envs.core.registry import lookup
from theorybench.leaderboard.records.kept import policy_file
from theorybench.leaderboard.records.record import Record
from theorybench.leaderboard.showing.pictures import save
from theorybench.leaderboard.showing.styles import COLOURS, QUIET, RULE
from theorybench.leaderboard.showing.words import format_number

SUITE = "architectures"
#: Data: the value of each trained policy at several lengths.
LENGTHS = "architectures-lengths"
#: Lengths at which policies are judged, of those up to the full one, and prompts of each.
STEPS, PROMPTS = 8, 1024
#: Rules whose value at each length is drawn as a ceiling or a level, by environment.
CEILINGS = {
    "Keys": ("last-word",),
    "Last write": ("window-15", "blind"),
    "Bag": ("pooled",),
    "Pointers": ("after-3",),
}


def values(numbers: Numbers) -> dict[str, Any]:
    """Return what the templates ask for beside what every family has."""
    return {
        "rules_table": rules_table,
        "architecture_table": architecture_table(numbers),
        "length_table": length_table,
        "module_text": module_text,
        "networks": [name for name, entry in CATALOGUE.items() if entry.policy is not None],
        "memory_table": memory_table(),
    }


def memory_table() -> str:
    """Return what the right answers of each setting need of the prompt, at its default parameters."""
    rows = []
    for id in families()["recall"].settings:
        setting = lookup(id).make_setting({})
        bits = "" if setting.minimal_bits is None else f"{setting.minimal_bits:.4g}"
        rows.append((setting_link(id), str(setting.minimal_rank), bits))
    return tables.table(("setting", "rank", "bits"), rows)


def lengths_of(setting: Any) -> list[int]:
    """Return the lengths at which policies are judged: evenly spread, with the longest of training and the full one."""
    spread = np.linspace(1, setting.length, STEPS).round().astype(int).tolist()
    return sorted({*spread, setting.longest_trained})


def measured(results: Path, records: Iterable[Record]) -> None:
    """Judge every trained policy of the suite at several lengths, and keep the means over its runs.

    Args:
        results: the folder of the suite's results, with its policies.
        records: of the suite.
    """
    found: dict[tuple[str, str, int], list[float]] = {}
    oracles: dict[str, Any] = {}
    for record in records:
        file = policy_file(results, record)
        if file is None or record.env_label is None or "," not in (record.agent_label or ""):
            continue
        own = lookup(record.env_id).make_setting({**record.parameters, "pool": PROMPTS})
        oracle = oracles.setdefault(record.env_label, lookup(record.env_id).oracle(own))
        policy = tb.load_policy(file)
        for length in lengths_of(own):
            value = oracle.values(policy, length)["objective"]
            best = oracle.values(oracle.optimal_policy, length)["objective"]
            score = (value - oracle.reference_value) / (best - oracle.reference_value)
            found.setdefault((record.env_label, str(record.agent_label), length), []).append(score)
    rows = []
    for (environment, agent, length), scores in found.items():
        interval = mean_interval(np.array(scores))
        row = {"environment": environment, "agent": agent, "length": length, "runs": len(scores)}
        rows.append(row | {"score": interval.value, "low": interval.low, "high": interval.high})
    data.write(LENGTHS, {"provenance": data.here(), "lengths": rows})


def architectures(numbers: Numbers, agent: str = "grpo") -> list[str]:
    """Return the labels of an agent's networks, in the order of the suite."""
    return [one.label for one in numbers.agents if one.agent == agent and "," in one.label]


def architecture_table(numbers: Numbers) -> str:
    """Return the score of each network on each environment at the full length; the best of a row in bold."""
    labels = architectures(numbers)
    rows = []
    for environment in numbers.environments:
        own = {row.agent: row for row in numbers.rows if row.environment == environment.label}
        best = max((own[label].score for label in labels if label in own), default=0.0)
        cells = []
        for label in labels:
            row = own.get(label)
            text = "" if row is None else f"{format_number(row.score)} ({row.seconds:.0f} s)"
            cells.append(f"**{text}**" if row is not None and row.score == best else text)
        rows.append((environment.label, *cells))
    return tables.table(("setting", *(label.partition(", ")[2] for label in labels)), rows)


def length_table(environment: str) -> str:
    """Return the score of each network at each length, on one environment."""
    own = [row for row in data.read(LENGTHS)["lengths"] if row["environment"] == environment]
    lengths = sorted({row["length"] for row in own})
    found = {(row["agent"], row["length"]): row["score"] for row in own}
    agents = list(dict.fromkeys(row["agent"] for row in own))
    rows = [(f"`{agent}`", *(format_number(found[agent, length]) for length in lengths)) for agent in agents]
    return tables.table(("network", *map(str, lengths)), rows)


def module_text(name: str) -> str:
    """Return the docstring of the file of a network: its equations, and what it is for."""
    return inspect.getdoc(import_module(f"theorybench.agents.policies.networks.{name}")) or ""


def draw(folder: Path) -> list[Path]:
    """Draw score against prompt length, a panel for each environment, a line for each network."""
    from matplotlib.figure import Figure

    numbers = data.read_numbers(SUITE)
    rows = data.read(LENGTHS)["lengths"]
    drawn = []
    for agent, title in (("grpo", "from rewards"), ("imitation", "from right answers")):
        labels = [label for label in architectures(numbers, agent) if any(row["agent"] == label for row in rows)]
        if not labels:
            continue
        figure = Figure(figsize=(10.0, 7.6), dpi=110, facecolor="white")
        panels = figure.subplots(2, 2).ravel()
        for axes, environment in zip(panels, numbers.environments, strict=True):
            oracle = oracle_of(environment.env_id, {**environment.parameters, "pool": PROMPTS})
            setting = oracle.setting
            for place, label in enumerate(labels):
                own = [row for row in rows if row["environment"] == environment.label and row["agent"] == label]
                own.sort(key=lambda row: row["length"])
                x = [row["length"] for row in own]
                colour, dash = COLOURS[place % len(COLOURS)], "-" if place < len(COLOURS) else ":"
                name = label.partition(", ")[2]
                axes.plot(x, [row["score"] for row in own], dash, color=colour, marker="o", ms=3.5, label=name)
                low, high = ([min(max(row[end], -0.1), 1.05) for row in own] for end in ("low", "high"))
                axes.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)
            for rule in CEILINGS.get(environment.label, ()):
                lengths = range(1, setting.length + 1)
                worth = [oracle.values(oracle.rules[rule], length)["objective"] for length in lengths]
                axes.plot(lengths, [scaled(oracle, value) for value in worth], color=QUIET, ls="--", lw=1.1)
                axes.annotate(
                    rule, (setting.length, scaled(oracle, worth[-1])), color=QUIET, fontsize=8, ha="right", va="bottom"
                )
            axes.axvline(setting.longest_trained, color=RULE, lw=6, zorder=0)
            axes.text(setting.longest_trained, 1.07, "longest in training", fontsize=8, color=QUIET, ha="center")
            axes.set_title(environment.label, loc="left", fontsize=11, pad=16)
            axes.set_xlabel("length of the prompt", fontsize=9)
            axes.set_ylim(-0.12, 1.06)
            axes.spines[["top", "right"]].set_visible(False)
        for axes in panels[::2]:
            axes.set_ylabel(f"score, trained {title}", fontsize=9)
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="lower center", ncols=len(names), frameon=False, fontsize=9)
        figure.tight_layout(rect=(0, 0.04, 1, 1))
        drawn.append(save(figure, folder / f"architectures-lengths-{agent}.png"))
    return drawn
