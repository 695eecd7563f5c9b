"""Figures about search on Countdown: what moves that are given are worth, and what more numbers cost.

Lines are the solver's dynamic programming; points are counted in games.
"""

import numpy as np

from theorybench.envs.core.evidence.lab import Lab
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.curriculum.countdown.claims import plays_to_win

#: Games of each run, at each rung.
GAMES = 2**13
#: Numbers of the two figures: where points stand, and where theory is drawn.
COUNTS, DRAWN = (3, 4, 5), (2, 3, 4, 5)
#: The rare prompts of the figure about search.
RARE = {"prompts": 8, "candidates": 8, "min_target": 1000, "max_target": 9999}


def rungs(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show the base model's success against the moves that are left, for several numbers of numbers."""
    series: list[Series] = []
    rows: list[tuple[Cell, ...]] = []
    for number, count in enumerate(COUNTS):
        there, name = lab.at(numbers=count), f"{count} numbers"
        oracle, stages = there.oracle, range(1, count)
        exact = oracle.stage_success.mean(axis=0)
        counted = np.empty((seeds, count - 1))
        for stage in stages:
            key = _key(seed, number, stage)
            plays = there.simulate(oracle.reference_policy, seeds * GAMES, key, stage=stage)
            counted[:, stage - 1] = plays.rewards.reshape(seeds, -1).mean(axis=1)
        series.append(Series(name, "predicted", list(stages), exact))
        series.append(measured(name, stages, counted, style="simulated"))
        p = oracle.stage_success[:, -1]
        rows.append((count, len(p), *(float(np.quantile(p, q)) for q in (0.0, 0.5, 1.0)), float(np.mean(1 / p))))
    columns = ("numbers", "prompts", "least p", "median p", "largest p", "mean of 1/p")
    formats = ("d", "d", ".2e", ".2e", ".2e", ".0f")
    return StudyResult(
        tables=(
            Table(
                "Base success of the prompts",
                tuple(Column(*pair) for pair in zip(columns, formats, strict=True)),
                tuple(rows),
                "More numbers offer more moves, but also more ways to the target: p falls slowly.",
            ),
        ),
        charts=(
            Chart(
                "Success of uniform moves",
                Axis("moves that are left", ticks=tuple(range(1, max(COUNTS)))),
                Axis("success", "log"),
                tuple(series),
            ),
        ),
    )


def queries(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show the plays that a search needs, direct and by stages, against the number of moves."""
    exact = [lab.at(numbers=count).oracle for count in DRAWN]
    moves = [count - 1 for count in DRAWN]
    direct = [oracle.search_plays() for oracle in exact]
    staged = [oracle.staged_search_plays() for oracle in exact]
    points: dict[str, list[np.ndarray]] = {"direct": [], "by stages": []}
    for number, count in enumerate(COUNTS):
        there, key = lab.at(numbers=count), _key(seed, number)
        oracle, last = there.oracle, count - 1
        points["direct"].append(plays_to_win(there, oracle.reference_policy, last, seeds, key).mean(axis=0))
        by_rung = [plays_to_win(there, oracle.memory_policy(k), k, seeds, key + 1) for k in range(1, count)]
        points["by stages"].append(np.sum(by_rung, axis=0).mean(axis=0))
    series: list[Series] = []
    for name, line in (("direct", direct), ("by stages", staged)):
        series.append(Series(name, "predicted", moves, line))
        series.append(
            measured(name, [count - 1 for count in COUNTS], np.stack(points[name], axis=1), style="simulated")
        )
    rows: list[tuple[Cell, ...]] = []
    for count, one, other in zip(DRAWN, direct, staged, strict=True):
        counted: list[Cell] = [None, None]
        if count in COUNTS:
            at = COUNTS.index(count)
            counted = [float(points[name][at].mean()) for name in ("direct", "by stages")]
        rows.append((count, one, counted[0], other, counted[1]))
    heads = ("numbers", "direct: 1/p", "direct: counted", "by stages: sum of 1/q", "by stages: counted")
    growth = np.polyfit(moves, np.log(direct), 1)[0], np.polyfit(np.log(moves), np.log(staged), 1)[0]
    return StudyResult(
        tables=(
            Table(
                "Plays to solve a prompt",
                tuple(Column(head, "d" if head == "numbers" else ".0f") for head in heads),
                tuple(rows),
                "Prompts are the hardest of eight drawn ones.",
            ),
        ),
        charts=(
            Chart(
                "Plays to solve a prompt",
                Axis("moves of a solution", ticks=tuple(moves)),
                Axis("plays", "log"),
                tuple(series),
                points="mean of searches",
            ),
        ),
        notes=(
            f"A move more multiplies the direct search by {np.exp(growth[0]):.1f}; "
            f"by stages it grows as the number of moves to the power {growth[1]:.1f}.",
        ),
    )


def _key(*labels: int) -> int:
    return int(np.random.SeedSequence(labels).generate_state(1)[0])


STUDIES = (
    Study(
        id="countdown-rungs",
        source="dynamic programming over multisets",
        title="What given moves are worth",
        text="Each rung of the ladder gives one move of a solution less: success of uniform moves, exact and counted.",
        run=rungs,
        seeds=8,
    ),
    Study(
        id="countdown-search",
        source="arXiv 2511.07372, on Countdown",
        title="Direct search and search by stages",
        text="Where solutions are rare a direct search grows with the product of the numbers of legal moves, and one "
        "from the last move to the first with their sum.",
        run=queries,
        parameters=RARE,
        seeds=64,
    ),
)
