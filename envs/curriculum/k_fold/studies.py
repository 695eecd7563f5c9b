"""Figures of arXiv 2505.23683 on KFoldComposition: the barrier, how curricula overcome it, and the staircase."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from theorybench.envs.core.evidence.interval import interval, mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds, seed_of
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.curriculum.k_fold.experiments import Ascent, Gradient, accuracy, staircase, tilted
from theorybench.envs.curriculum.learning import curves

#: What each policy class of the second chart sees.
SEEN = {"x and the response": "response", "the whole prompt": "prompt"}
#: The shares of single hops that tables learn from, by name.
SHARES = {"single hops": 1.0, "single hops and full tasks": 0.5, "full tasks alone": 0.0}
AGENTS = {"stages 1, 2, ..., k": "curriculum-rlvr", "full tasks alone": "rlvr"}


class Learner(NamedTuple):
    """A policy class of the package's learners."""

    name: str  # name of the policy class
    budget: int  # episodes of a run
    options: Mapping[str, Any]  # hyper-parameters


TABLES = Learner("tables", 24_000, {"policy": "auto", "episodes_per_update": 200})
#: Networks extrapolate wrongly to hops that they have not seen; with a smaller KL penalty some become so certain that
#: the third stage ends at an accuracy of .5 to .7.
NETWORK = Learner(
    "a network that sees the prompt",
    180_000,
    {"policy": "mlp", "episodes_per_update": 400, "hidden_units": 256, "kl": 0.05},
)


@dataclasses.dataclass(frozen=True)
class Barrier:
    """J around the base model, and the gradient there of policies that see more or less."""

    hops: tuple[int, ...] = (1, 2, 4, 8)  # numbers of hops in the first chart
    tilts: tuple[float, ...] = (0.25, 0.5, 0.7, 0.85, 1.0)  # tilts of its points
    episodes: int = 20_000  # episodes of each of its points
    depths: tuple[int, ...] = (1, 2, 3, 4, 5, 6)  # numbers of hops in the second chart's theory
    measured: int = 4  # how many of these are measured

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Simulate."""
        return StudyResult(charts=(self._tilts(lab, seed), self._gradients(lab, seed, seeds)))

    def _tilts(self, lab: Lab, seed: int) -> Chart:
        series, size, grid = [], lab.setting.N, np.unique([*np.linspace(0, 1, 41), *self.tilts])
        for k in self.hops:
            there, name = lab.at(k=k), f"{k} hop{'s' * (k > 1)}"
            shares = [
                accuracy(there, tilted(there, tilt), k, seed_of(seed, k, i), self.episodes)
                for i, tilt in enumerate(self.tilts)
            ]
            errors = [math.sqrt(p * (1 - p) / self.episodes) for p in shares]
            _, low, high = np.array([interval(*point) for point in zip(shares, errors, strict=True)]).T
            series.append(Series(name, "simulated", self.tilts, shares, low, high))
            series.append(Series(name, "predicted", grid, 1 / size + (1 - 1 / size) * grid**k))
        x, y = Axis("how far each hop's table is towards the right one"), Axis("accuracy", range=(0.0, 1.0))
        note = "Theory: 1/N + (1 - 1/N) tilt^k. All derivatives of order below k are 0 at the base model."
        return Chart("Accuracy on k hops around the base model", x, y, tuple(series), note)

    def _gradients(self, lab: Lab, seed: int, seeds: int) -> Chart:
        size, series = lab.setting.N, []
        first, places = math.sqrt((1 - 1 / size) / size**2), self.depths[: self.measured]
        for name, sees in SEEN.items():
            decay = (size - 1.0) ** -0.5 if sees == "response" else 1.0
            found = []
            for k in places:
                squares = Gradient(sees, blocks=seeds).squares(lab.at(k=k), seed_of(seed, k))
                found.append(np.sqrt(np.maximum(mean_interval(squares), 1e-9)))
            series.append(Series(name, "simulated", places, *np.array(found).T))
            series.append(Series(name, "predicted", self.depths, [first * decay ** (k - 1) for k in self.depths]))
        fixed = [(1 - 1 / size) * (size - 1.0) ** -k for k in self.depths]
        series.append(Series("one fixed table", "predicted", self.depths, fixed))
        note = (
            "Policies that see the next hop and the entry have zero gradient from k = 2 on. A policy that sees the "
            "whole prompt keeps its gradient, but learns only the prompts that it has seen, one by one. One fixed "
            "table: root mean square of its gain."
        )
        axes = Axis("hops k", ticks=tuple(map(float, self.depths))), Axis("norm of the gradient per visit", "log")
        return Chart("Gradient at the base model, by what a policy sees", *axes, tuple(series), note)


@dataclasses.dataclass(frozen=True)
class Learning:
    """Scores of tables and of networks over their budgets, with and without easier tasks."""

    updates: int = 40  # number of updates of REINFORCE on tables
    learners: tuple[Learner, ...] = (TABLES, NETWORK)  # registered agents
    points: int = 12  # number of points of their curves

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Train."""
        lines = []
        for name, share in SHARES.items():
            ascent = Ascent(share, updates=self.updates)
            runs = np.array([ascent.train(lab, seed_of(seed, run)) for run in range(seeds)])
            lines.append(measured(name, (1 + np.arange(self.updates)) * ascent.episodes, runs, style="band"))
        x, y = Axis("episodes"), Axis("score on the full task", range=(-0.05, 1.05))
        note = "REINFORCE on tables; single hops begin anywhere."
        charts = [Chart("Tables: what they learn from", x, y, tuple(lines), note)]
        first = lab.at(starts="first", N=4, k=3)
        for learner in self.learners:
            lines = [self._curve(first, name, agent, learner, seed, seeds) for name, agent in AGENTS.items()]
            title = f"{learner.name[0].upper()}{learner.name[1:]}: stage by stage, or at once"
            y = dataclasses.replace(y, range=(-0.35, 1.05))
            charts.append(Chart(title, x, y, tuple(lines), "Chains of 1, 2, 3 hops, all from the first."))
        return StudyResult(charts=tuple(charts), groups=(*SHARES, *AGENTS))

    def _curve(self, lab: Lab, name: str, agent: str, learner: Learner, seed: int, seeds: int) -> Series:
        def judge(policy: Any, run: int, point: int) -> float:
            return accuracy(lab, policy, lab.setting.k, seed_of(seed, run, point))

        runs, size = run_seeds(seed, seeds), lab.setting.N
        spent, shares = curves(lab, agent, runs, learner.budget, self.points, judge, learner.options)
        return measured(name, spent, (shares - 1 / size) / (1 - 1 / size), style="band")


@dataclasses.dataclass(frozen=True)
class Steps:
    """Accuracies on chains of each length after each stage."""

    learners: tuple[Learner, ...] = (TABLES, NETWORK)  # registered agents

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Train."""
        size, stages, charts = lab.setting.N, range(1, lab.setting.k + 1), []
        rows: list[tuple[Cell, ...]] = []
        for learner in self.learners:
            runs = run_seeds(seed, seeds)
            found = staircase(lab, runs, learner.budget, **learner.options)
            series = []
            for hops in stages:
                name = f"{hops} hop{'s' * (hops > 1)}"
                series.append(measured(name, stages, found[:, :, hops - 1]))
                theory = [1.0 if stage >= hops else 1 / size for stage in stages]
                series.append(Series(name, "predicted", stages, theory))
            for stage in stages:
                rows.append((learner.name, stage, *map(mean_interval, found[:, stage - 1].T)))
            axes = Axis("stages learnt", ticks=tuple(map(float, stages))), Axis("accuracy", range=(0.0, 1.05))
            note = "Theory: 1 up to the stage, 1/N beyond."
            charts.append(Chart(f"The staircase of {learner.name}", *axes, tuple(series), note))
        heads = (Column("policy"), Column("stage", "d"), *(Column(f"{hops} hops", ".2f") for hops in stages))
        return StudyResult(tables=(Table("Accuracy after each stage", heads, tuple(rows)),), charts=tuple(charts))


_SOURCE = "arXiv 2505.23683, learning from easy-to-hard data"
STUDIES: tuple[Study, ...] = (
    Study(
        id="barrier",
        source=_SOURCE,
        title="The barrier at the base model",
        text="The longer the chain, the flatter J is around the base model. How fast a policy's gradient vanishes with "
        "k depends on what it sees: at once, geometrically, or not at all.",
        run=Barrier(),
        seeds=8,
        parameters={"N": 3, "k": 4},
    ),
    Study(
        id="learning",
        source=_SOURCE,
        title="Easy before hard, for tables and networks",
        text="Training on single hops, alone or mixed with the full task, solves the full task; training on full tasks "
        "alone learns nothing within the same budget. A network that reads the whole prompt needs stages as tables do.",
        run=Learning(),
        seeds=3,
        parameters={"N": 6, "k": 4},
    ),
    Study(
        id="staircase",
        source=_SOURCE,
        title="The staircase",
        text="If all chains begin with the first hop, each stage adds one hop: accuracy is 1 up to the stage and 1/N "
        "beyond. A network does not answer untrained hops uniformly, so its accuracy there can differ from 1/N.",
        run=Steps(),
        seeds=3,
        parameters={"N": 4, "k": 3, "starts": "first"},
    ),
)
