"""What the pages of the family recall alone show: how far what architectures learnt on short prompts carries."""

import inspect
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import compositions
import numpy as np
import reference_data as data
import reference_tables as tables
from answers import oracle_of, rules_table, setting_link, with_interval
from families import families
from reference_data import Numbers, Row

import theorybench as tb
from theorybench.agents.policies.catalogue import CATALOGUE
from theorybench.envs.core.registry import lookup
from theorybench.envs.recall.setting import RecallSetting
from theorybench.leaderboard.comparing.statistics import CLIP, bootstrap_interval, interquartile_mean
from theorybench.leaderboard.records.kept import policy_file
from theorybench.leaderboard.records.store import load_records
from theorybench.leaderboard.showing.pictures import save
from theorybench.leaderboard.showing.styles import COLOURS, QUIET, RULE
from theorybench.leaderboard.showing.words import format_number

SUITE = "architectures"
#: The suite of language models of usual shapes, and of our networks on compositions and automata.
USUAL = "transformers"
#: At how many lengths up to the full one policies are judged.
STEPS = 6
#: Prompts of each length on which the rules of a picture are judged, and how many lengths.
MOST_PROMPTS, RULE_STEPS = 16_384, 22
#: Who trains the networks: names in the picture's file, words in its title.
TRAINERS = {"rlvr": "from rewards", "imitation": "from right answers"}
#: Rules whose value at each length is drawn as a ceiling or a level, by environment.
CEILINGS = {
    "Keys": ("last-word", "most-frequent"),
    "Last write": ("window-15", "blind"),
    "Bag": ("pooled",),
    "Pointers": ("after-3",),
}
#: What the length of a prompt counts, by environment.
LENGTHS_OF = {"Keys": "pairs", "Last write": "tokens", "Bag": "readings", "Pointers": "hops"}


def values(numbers: Numbers) -> dict[str, Any]:
    """Return what the templates ask for beside what every family has."""
    usual = data.read_numbers(USUAL)
    usual_scores = {(row.environment, row.agent): row.score for row in usual.rows}
    return {
        "rules_table": rules_table,
        "network_table": partial(network_table, numbers),
        "usual_table": partial(network_table, usual),
        "usual": usual,
        "usual_score": lambda *where: format_number(usual_scores[where]),
        "usual_short": partial(short_table, usual),
        "usual_made": tables.made(usual),
        "usual_command": tables.suite_command(USUAL),
        "length_table": partial(length_table, numbers),
        "score_at": lambda *where: format_number(lengths_by(SUITE)[where]["score"]),
        "module_text": module_text,
        "networks": [name for name, entry in CATALOGUE.items() if entry.policy is not None],
        "memory_table": memory_table(),
        "compositions": compositions,
    }


def memory_table() -> str:
    """Return what the right answers of each setting need of the prompt, at its default parameters."""
    rows = []
    for id in families()["recall"].settings:
        setting = lookup(id).make_setting({})
        bits = "" if setting.minimal_bits is None else f"{setting.minimal_bits:.4g}"
        rows.append((setting_link(id), str(setting.minimal_rank), bits))
    return tables.table(("setting", "rank", "bits"), rows)


def lengths_of(setting: RecallSetting) -> list[int]:
    """Return the lengths at which policies are judged: evenly spread, with the longest of training and the full one."""
    spread = np.linspace(1, setting.length, STEPS).round().astype(int).tolist()
    return sorted({*spread, setting.longest_trained})


def longest_trained(setting: RecallSetting) -> list[int]:
    """Return the longest prompt of training alone: at the full length the suite's scores say enough."""
    return [setting.longest_trained]


def score_at(oracle: Any, policy: Any, length: int) -> float:
    """Return the score of a policy on prompts of one length: 0 for chance, 1 for the optimum at that length."""
    value, best = (oracle.values(one, length)["objective"] for one in (policy, oracle.optimal_policy))
    return float((value - oracle.reference_value) / (best - oracle.reference_value))


def measure_lengths(suite: str, lengths: Callable[[RecallSetting], list[int]], results: Path) -> None:
    """Judge the policies that a suite trained at several lengths; keep interquartile means, as leaderboards do.

    Args:
        suite: its name.
        lengths: the lengths, given a setting.
        results: the folder of the results of suites.
    """
    found: dict[tuple[str, str, int], list[float]] = {}
    oracles: dict[str, Any] = {}
    for record in load_records(results / suite):
        file, label = policy_file(results / suite, record), record.agent_label or ""
        cls = lookup(record.env_id).setting
        if file is None or "," not in label or not issubclass(cls, RecallSetting) or label.startswith("rule"):
            continue
        place = str(record.env_label)
        if place not in oracles:
            oracles[place] = oracle_of(record.env_id, record.parameters)
        oracle, policy = oracles[place], tb.load_policy(file)
        for length in lengths(oracle.setting):
            found.setdefault((place, label, length), []).append(score_at(oracle, policy, length))
    for place, oracle in oracles.items():
        for rule, length in itertools.product(CEILINGS.get(place, ()), lengths(oracle.setting)):
            found[place, f"rule, {rule}", length] = [score_at(oracle, oracle.rules[rule], length)]
    rows = []
    for (environment, agent, length), scores in found.items():
        row = {"environment": environment, "agent": agent, "length": length, "runs": len(scores)}
        interval = bootstrap_interval(interquartile_mean, [np.array(scores)], bounds=CLIP)
        low, high = (interval.value if np.isnan(end) else end for end in interval[1:])  # a rule has one value
        rows.append(row | {"score": interval.value, "low": low, "high": high})
    data.write(f"{suite}-lengths", {"provenance": data.here(), "lengths": rows})


#: What is measured of the runs of suites, by the name of its data: functions of the folder of results.
MEASURED = {
    f"{SUITE}-lengths": partial(measure_lengths, SUITE, lengths_of),
    f"{USUAL}-lengths": partial(measure_lengths, USUAL, longest_trained),
    compositions.NAME: compositions.measure,
}


def labels_of(numbers: Numbers, agent: str) -> list[str]:
    """Return the labels of an agent's networks, in the order of the suite."""
    return [one.label for one in numbers.agents if one.agent == agent and "," in one.label]


def network_table(numbers: Numbers, agent: str, *environments: str) -> str:
    """Return the score of each network of an agent at the full length; the best of each environment in bold."""
    labels = labels_of(numbers, agent)
    cells = {(row.agent, row.environment): row for row in numbers.rows if row.agent in labels}
    best = {place: _winner([row for (_, where), row in cells.items() if where == place]) for place in environments}
    rows = []
    for label in labels:
        own = [(place, cells.get((label, place))) for place in environments]
        if any(row for _, row in own):
            texts = []
            for place, row in own:
                text = "" if row is None else with_interval(row.score, row.low, row.high)
                texts.append(f"**{text}**" if row is not None and label == best[place] else text)
            rows.append((_network(label), *texts))
    return tables.table(("network", *environments), rows)


def lengths_by(suite: str) -> dict[tuple[str, str, int], dict[str, Any]]:
    """Return what `measure_lengths` kept, by environment, agent and length."""
    return {(row["environment"], row["agent"], row["length"]): row for row in data.read(f"{suite}-lengths")["lengths"]}


def short_table(numbers: Numbers, agent: str, *environments: str) -> str:
    """Return the score of each network of an agent at the longest prompts of training."""
    found = {(place, label): row for (place, label, _), row in lengths_by(numbers.suite).items()}
    rows = []
    for label in labels_of(numbers, agent):
        own = [found.get((place, label)) for place in environments]
        if any(own):
            rows.append((_network(label), *("" if row is None else format_number(row["score"]) for row in own)))
    return tables.table(("network", *environments), rows)


def length_table(numbers: Numbers, environment: str, agent: str) -> str:
    """Return the score of each network of an agent at each length, on one environment, and below them of rules."""
    found = {key[1:]: row["score"] for key, row in lengths_by(numbers.suite).items() if key[0] == environment}
    lengths = sorted({length for _, length in found})
    networks, rules = labels_of(numbers, agent), [f"rule, {rule}" for rule in CEILINGS[environment]]
    rows = [
        (f"{'rule ' * (label in rules)}{_network(label)}", *(format_number(found[label, length]) for length in lengths))
        for label in [*networks, *rules]
        if (label, lengths[0]) in found
    ]
    return tables.table(("network", *map(str, lengths)), rows)


def _winner(rows: Sequence[Row]) -> str:
    """Return the label of the best agent, "" where another's interval overlaps its own."""
    first, *others = sorted(rows, key=lambda row: -row.score)
    return "" if any(row.high >= first.low for row in others) else first.agent


def _network(label: str) -> str:
    """Return the name of the network in a label."""
    return f"`{label.partition(', ')[2]}`"


def module_text(name: str) -> str:
    """Return the docstring of the file of a network: its equations, and what it is for."""
    return inspect.getdoc(import_module(f"theorybench.agents.policies.networks.{name}")) or ""


def draw(folder: Path) -> list[Path]:
    """Draw score against prompt length, a panel for each environment, a line for each network."""
    from matplotlib.figure import Figure

    numbers = data.read_numbers(SUITE)
    rows = data.read(f"{SUITE}-lengths")["lengths"]
    drawn = []
    for agent, title in TRAINERS.items():
        labels = labels_of(numbers, agent)
        figure = Figure(figsize=(10.0, 7.6), dpi=110, facecolor="white")
        panels = figure.subplots(2, 2).ravel()
        for axes, environment in zip(panels, numbers.environments, strict=True):
            oracle = oracle_of(environment.env_id, {**environment.parameters, "pool": MOST_PROMPTS})
            own = [row for row in rows if row["environment"] == environment.label]
            _draw_networks(axes, own, labels)
            _draw_rules(axes, oracle, CEILINGS[environment.label])
            longest = oracle.setting.longest_trained
            axes.axvline(longest, color=RULE, lw=6, zorder=0)
            axes.text(longest, 1.07, "longest in training", fontsize=8, color=QUIET, ha="center")
            axes.set_title(environment.label, loc="left", fontsize=11, pad=16)
            axes.set_xlabel(LENGTHS_OF[environment.label], fontsize=9)
            axes.set_ylim(-0.12, 1.06)
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.spines[["top", "right"]].set_visible(False)
        for axes in panels[::2]:
            axes.set_ylabel(f"score, trained {title}", fontsize=9)
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="lower center", ncols=len(names), frameon=False, fontsize=9)
        figure.tight_layout(rect=(0, 0.04, 1, 1))
        drawn.append(save(figure, folder / f"{SUITE}-lengths-{agent}.png"))
    return drawn


def _draw_networks(axes: Any, rows: Sequence[dict[str, Any]], labels: Sequence[str]) -> None:
    for place, label in enumerate(labels):
        own = sorted((row for row in rows if row["agent"] == label), key=lambda row: row["length"])
        x = [row["length"] for row in own]
        colour, dash = COLOURS[place % len(COLOURS)], "-" if place < len(COLOURS) else ":"
        name = label.partition(", ")[2]
        axes.plot(x, [row["score"] for row in own], dash, color=colour, marker="o", ms=3.5, label=name)
        low, high = ([min(max(row[end], -0.1), 1.05) for row in own] for end in ("low", "high"))
        axes.fill_between(x, low, high, color=colour, alpha=0.08, linewidth=0)


def _draw_rules(axes: Any, oracle: Any, rules: Sequence[str]) -> None:
    last = oracle.setting.length
    lengths = np.unique(np.linspace(1, last, RULE_STEPS).round().astype(int)).tolist()
    for rule in rules:
        worth = [score_at(oracle, oracle.rules[rule], length) for length in lengths]
        axes.plot(lengths, worth, color=QUIET, ls="--", lw=1.1)
        at, shift = (last, worth[-1]), (6, 0)
        axes.annotate(rule, at, shift, textcoords="offset points", color=QUIET, fontsize=8, va="center")
