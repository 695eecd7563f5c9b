"""Figures of arXiv 2505.23683 on KFoldComposition: the barrier, what breaks it, and the staircase."""

import dataclasses
import math
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import interval, mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.curriculum.k_fold.training import Ascent, Gradient, accuracy, key, staircase, tilted

#: Hops and tilts of the barrier's charts.
HOPS, TILTS = (1, 2, 4, 8), (0.25, 0.5, 0.7, 0.85, 1.0)
DEPTHS, MOST_MEASURED = (1, 2, 3, 4, 5, 6), 4
SEEN = {"x and the response": "response", "the whole prompt": "prompt"}
TABLE = "the next hop and the entry"
#: The shares of single hops that tables learn from, by name.
SHARES = {"single hops": 1.0, "single hops and full tasks": 0.5, "full tasks alone": 0.0}
#: Policy classes of the package's learners. Networks guess hops that they have not met from those that they have, and
#: wrongly; with less of a KL penalty some are so sure of it that the third rung ends at an accuracy of .5 to .7.
POLICIES: dict[str, dict[str, Any]] = {
    "tables": {"policy": "auto", "episodes_per_update": 200},
    "a network that sees the prompt": {"policy": "mlp", "episodes_per_update": 400, "hidden_units": 256, "kl": 0.05},
}
AGENTS = {"rungs 1, 2, ..., k": "curriculum-rlvr", "full tasks alone": "rlvr"}
#: Episodes of these runs, and points of their curves.
BUDGETS, POINTS = {"tables": 24_000, "a network that sees the prompt": 180_000}, 12


def barrier(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show how J leaves the base model, and what gradient policies have there that see more or less."""
    return StudyResult(charts=(_tilts(lab, seed), _gradients(lab, seed, seeds)))


def _tilts(lab: Lab, seed: int) -> Chart:
    series = []
    for k in HOPS:
        there, name = lab.at(k=k), f"{k} hop{'s' * (k > 1)}"
        size, episodes = there.setting.N, 20_000
        shares = [accuracy(there, tilted(there, tilt), k, key(seed, k, i), episodes) for i, tilt in enumerate(TILTS)]
        low, high = np.array([interval(p, math.sqrt(p * (1 - p) / episodes))[1:] for p in shares]).T
        series.append(Series(name, "simulated", TILTS, shares, low, high))
        grid = np.unique([*np.linspace(0, 1, 41), *TILTS])
        series.append(Series(name, "predicted", grid, 1 / size + (1 - 1 / size) * grid**k))
    x, y = Axis("how far each hop's table is towards the right one"), Axis("accuracy", range=(0.0, 1.0))
    note = "Theory: 1/N + (1 - 1/N) tilt^k. All derivatives of order below k are 0 at the base model."
    return Chart("Accuracy on k hops around the base model", x, y, tuple(series), note)


def _gradients(lab: Lab, seed: int, seeds: int) -> Chart:
    size, series = lab.setting.N, []
    first = math.sqrt((1 - 1 / size) / size**2)
    for name, sees in SEEN.items():
        decay = (size - 1.0) ** -0.5 if sees == "response" else 1.0
        deepest = DEPTHS[:MOST_MEASURED]
        found = []
        for k in deepest:
            squares = Gradient(sees, blocks=seeds).squares(lab.at(k=k), key(seed, k))
            found.append(np.sqrt(np.maximum(mean_interval(squares), 1e-9)))
        value, low, high = np.array(found).T
        series.append(Series(name, "simulated", deepest, value, low, high))
        series.append(Series(name, "predicted", DEPTHS, [first * decay ** (k - 1) for k in DEPTHS]))
    fixed = [(1 - 1 / size) * (size - 1.0) ** -k for k in DEPTHS]
    series.append(Series("one fixed table", "predicted", DEPTHS, fixed))
    note = (
        f"Policies that see {TABLE} have a gradient of 0 from k = 2 on. One that sees the whole prompt keeps its "
        "gradient, and learns the prompts that it has met, one by one. One fixed table: its gain, root mean square."
    )
    axes = Axis("hops k", ticks=tuple(map(float, DEPTHS))), Axis("norm of the gradient per visit", "log")
    return Chart("Gradient at the base model, by what a policy sees", *axes, tuple(series), note)


def learning(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show scores of tables and of networks over their budgets, with and without easier tasks."""
    series, updates = [], None
    for name, share in SHARES.items():
        ascent = Ascent(share)
        runs = np.array([ascent.train(lab, key(seed, run)) for run in range(seeds)])
        updates = (1 + np.arange(ascent.updates)) * ascent.episodes
        series.append(measured(name, updates, runs, style="band"))
    axes = Axis("episodes"), Axis("score on the full task", range=(-0.05, 1.05))
    note = "REINFORCE on tables; single hops begin anywhere."
    charts = [Chart("Tables: what they learn from", *axes, tuple(series), note)]
    axes = axes[0], dataclasses.replace(axes[1], range=(-0.35, 1.05))
    first = lab.at(starts="first", N=4, k=3)
    for policy, options in POLICIES.items():
        lines = [_curve(first, name, agent, policy, seed, seeds, options) for name, agent in AGENTS.items()]
        title = f"{policy[0].upper()}{policy[1:]}: rung by rung, or at once"
        charts.append(Chart(title, *axes, tuple(lines), "Chains of 1, 2, 3 hops, all from the first."))
    return StudyResult(charts=tuple(charts), groups=(*SHARES, *AGENTS))


def _curve(lab: Lab, name: str, agent: str, policy: str, seed: int, seeds: int, options: dict[str, Any]) -> Series:
    size, budget = lab.setting.N, BUDGETS[policy]
    traces = lab.trace(agent, run_seeds(seed, seeds), budget, points=POINTS, **options)
    shares = [
        [accuracy(lab, state, lab.setting.k, key(seed, run, point)) for point, (_, state) in enumerate(trace[-POINTS:])]
        for run, trace in enumerate(traces)
    ]
    spent = [episodes for episodes, _ in traces[0][-POINTS:]]
    return measured(name, spent, (np.array(shares) - 1 / size) / (1 - 1 / size), style="band")


def steps(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show accuracies on chains of each length after each rung."""
    setting = lab.setting
    k, size = setting.k, setting.N
    rungs, charts = range(1, k + 1), []
    rows: list[tuple[Cell, ...]] = []
    for policy, options in POLICIES.items():
        runs = run_seeds(seed, seeds)
        found = staircase(lab, "curriculum-rlvr", runs, BUDGETS[policy], **options)
        series = []
        for hops in rungs:
            name = f"{hops} hop{'s' * (hops > 1)}"
            series.append(measured(name, rungs, found[:, :, hops - 1]))
            series.append(Series(name, "predicted", rungs, [1.0 if rung >= hops else 1 / size for rung in rungs]))
        for rung in rungs:
            cells = [mean_interval(found[:, rung - 1, hops - 1]) for hops in rungs]
            rows.append((policy, rung, *cells))
        axes = Axis("rungs climbed", ticks=tuple(map(float, rungs))), Axis("accuracy", range=(0.0, 1.05))
        charts.append(
            Chart(f"The staircase of {policy}", *axes, tuple(series), "Theory: 1 up to the rung, 1/N beyond.")
        )
    heads = (Column("policy"), Column("rung", "d"), *(Column(f"{hops} hops", ".2f") for hops in rungs))
    return StudyResult(tables=(Table("Accuracy after each rung", heads, tuple(rows)),), charts=tuple(charts))


def _study(id: str, title: str, text: str, run: Any, seeds: int, **parameters: Any) -> Study:
    source = "arXiv 2505.23683, learning from easy-to-hard data"
    return Study(id=id, source=source, title=title, text=text, run=run, seeds=seeds, parameters=parameters)


STUDIES: tuple[Study, ...] = (
    _study(
        "barrier",
        "The barrier at the base model",
        "The longer the chain, the flatter is J around the base model. What a policy sees decides how fast its "
        "gradient vanishes with k: at once, geometrically, or not at all.",
        barrier,
        8,
        N=3,
        k=4,
    ),
    _study(
        "learning",
        "Easy before hard, for tables and networks",
        "Single hops teach the full task, alone or mixed with it; full tasks alone teach nothing within the same "
        "budget. A network that reads all tokens of the prompt needs the ladder as tables do.",
        learning,
        3,
        N=6,
        k=4,
    ),
    _study(
        "staircase",
        "The staircase",
        "Where all chains begin with the first hop, each rung adds one hop: accuracy is 1 up to the rung and 1/N "
        "beyond. A network answers untrained hops as it pleases, not uniformly, and can be off 1/N there.",
        steps,
        3,
        N=4,
        k=3,
        starts="first",
    ),
)
