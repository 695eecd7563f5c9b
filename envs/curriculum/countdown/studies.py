"""Figures about search on Countdown: the value of given moves, and the cost of more numbers.

Lines are the solver's dynamic programming; points are estimated from rollouts.
"""

import dataclasses

import numpy as np

from theorybench.envs.core.evidence.lab import Lab, seed_of
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.curriculum.countdown.experiments import rollouts_to_win


@dataclasses.dataclass(frozen=True)
class StageSuccess:
    """The base model's success against the number of remaining moves, for prompts of several sizes."""

    counts: tuple[int, ...] = (3, 4, 5)  # the numbers of numbers of a prompt
    episodes: int = 2**13  # number of episodes of each run at each stage

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Simulate the base model."""
        series: list[Series] = []
        rows: list[tuple[Cell, ...]] = []
        for number, count in enumerate(self.counts):
            there, name, stages = lab.at(numbers=count), f"{count} numbers", range(1, count)
            success, policy = there.oracle.stage_success, there.oracle.reference_policy
            counted = np.empty((seeds, count - 1))
            for stage in stages:
                drawn = there.simulate(policy, seeds * self.episodes, seed_of(seed, number, stage), stage=stage)
                counted[:, stage - 1] = drawn.rewards.reshape(seeds, -1).mean(axis=1)
            series.append(Series(name, "predicted", list(stages), success.mean(axis=0)))
            series.append(measured(name, stages, counted, style="simulated"))
            p = success[:, -1]
            rows.append((count, len(p), *(float(np.quantile(p, q)) for q in (0.0, 0.5, 1.0)), float(np.mean(1 / p))))
        columns = ("numbers", "prompts", "least p", "median p", "largest p", "mean of 1/p")
        heads = tuple(map(Column, columns, ("d", "d", ".2e", ".2e", ".2e", ".0f")))
        note = "More numbers offer more moves, but also more ways to the target: p falls slowly."
        x = Axis("moves that are left", ticks=tuple(range(1, max(self.counts))))
        return StudyResult(
            tables=(Table("Base success of the prompts", heads, tuple(rows), note),),
            charts=(Chart("Success of uniform moves", x, Axis("success", "log"), tuple(series)),),
        )


@dataclasses.dataclass(frozen=True)
class SearchGrowth:
    """Rollouts that a search needs, direct and by stages, against the number of moves."""

    counts: tuple[int, ...] = (3, 4, 5)  # numbers of numbers of a prompt at which searches are simulated
    drawn: tuple[int, ...] = (2, 3, 4, 5)  # those at which theory is drawn, including `counts`

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Search."""
        oracles, moves = [lab.at(numbers=count).oracle for count in self.drawn], [count - 1 for count in self.drawn]
        theory = {
            "direct": [oracle.search_episodes() for oracle in oracles],
            "by stages": [oracle.staged_search_episodes() for oracle in oracles],
        }
        found: dict[str, dict[int, np.ndarray]] = {name: {} for name in theory}  # mean over prompts, (seeds,)
        for number, count in enumerate(self.counts):
            there, key = lab.at(numbers=count), seed_of(seed, number)
            reference, memory = there.oracle.reference_policy, there.oracle.memory_policy
            found["direct"][count] = rollouts_to_win(there, reference, count - 1, seeds, key).mean(axis=0)
            costs = [rollouts_to_win(there, memory(k), k, seeds, key + 1) for k in range(1, count)]
            found["by stages"][count] = np.sum(costs, axis=0).mean(axis=0)
        series: list[Series] = []
        for name, line in theory.items():
            series.append(Series(name, "predicted", moves, line))
            samples = np.stack([found[name][count] for count in self.counts], axis=1)
            series.append(measured(name, [count - 1 for count in self.counts], samples, style="simulated"))
        rows: list[tuple[Cell, ...]] = []
        for place, count in enumerate(self.drawn):
            cells: list[Cell] = []
            for name, line in theory.items():
                cells += [line[place], float(found[name][count].mean()) if count in found[name] else None]
            rows.append((count, *cells))
        heads = ("numbers", "direct: 1/p", "direct: counted", "by stages: sum of 1/q", "by stages: counted")
        columns = tuple(Column(head, "d" if head == "numbers" else ".0f") for head in heads)
        title, x = "Rollouts to solve a prompt", Axis("moves of a solution", ticks=tuple(moves))
        factor = np.exp(np.polyfit(moves, np.log(theory["direct"]), 1)[0])
        power = np.polyfit(np.log(moves), np.log(theory["by stages"]), 1)[0]
        return StudyResult(
            tables=(Table(title, columns, tuple(rows), "Prompts are the hardest of eight drawn ones."),),
            charts=(Chart(title, x, Axis("rollouts", "log"), tuple(series), points="mean of searches"),),
            notes=(
                f"Each further move multiplies the cost of direct search by {factor:.1f}; "
                f"by stages it grows as the number of moves to the power {power:.1f}.",
            ),
        )


STUDIES: tuple[Study, ...] = (
    Study(
        id="countdown-rungs",
        source="dynamic programming over multisets",
        title="The value of given moves",
        text="Each stage gives one move of the solution less: success of uniform moves, exact and estimated.",
        run=StageSuccess(),
        seeds=8,
    ),
    Study(
        id="countdown-search",
        source="arXiv 2511.07372, on Countdown",
        title="Direct search and search by stages",
        text="If solutions are rare, direct search needs about the product of the numbers of legal moves, and search "
        "from the last move to the first about their sum.",
        run=SearchGrowth(),
        parameters={"prompts": 8, "candidates": 8, "min_target": 1000, "max_target": 9999},
        seeds=64,
    ),
)
