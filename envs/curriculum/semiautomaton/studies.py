"""Figures on semiautomata: how fast machines part, and how far learners come with and without short words."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.curriculum.semiautomaton.claims import excess
from theorybench.envs.curriculum.semiautomaton.pairs import factorial_length, limit_agreement

#: Letters of the alphabets, other machines whose agreement is averaged, and episodes of each machine and length.
ALPHABETS, TWINS, EPISODES = (6, 50, 500, 4096), 8, 10_000
#: Lengths that are simulated; states of the table of horizons.
LENGTHS, STATES = (1, 2, 4, 6, 8, 10), (3, 4, 5, 6, 8, 12, 20, 50, 1000)
#: Word lengths at which learners are trained, and the episodes of a run.
TRAINED, BUDGET = (1, 2, 3, 4, 6, 8), 20_000
LEARNERS = {"REINFORCE, long words alone": "rlvr", "REINFORCE, by word length": "curriculum-rlvr"}
LIMIT = "fresh letters"
#: Policies that climb, or do not: hyper-parameters and episodes of a run. A network that is judged by its last claim
#: alone answers short words from the prompt and forgets its claims, hence reviews; without a KL penalty some are soon
#: sure of a wrong claim, and never see the right one.
NETWORK = {"policy": "transformer", "layers": 1, "kl": 0.1}
POLICIES: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "tables": ({}, {}, 8_000),
    "a transformer": (NETWORK, {"review": 0.5, "threshold": 0.95}, 24_000),
}
DIRECT, CLIMBING = "long words alone", "ever longer words"
#: Points of a curve, episodes that measure each of them, and the accuracy that counts as right.
POINTS, MEASURED, RIGHT = 20, 512, 0.95


def parting(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show the agreement of two machines above chance against the length of words, for several alphabets."""
    setting = lab.setting
    series: list[Series] = []
    lengths = np.arange(1, max(LENGTHS) + 1)
    for letters in ALPHABETS:
        name, there = f"{letters} letters", lab.at(m=letters, T=max(LENGTHS))
        found = [excess(there, LENGTHS, 1, EPISODES, seed * seeds + run)[0] for run in range(seeds)]
        series.append(measured(name, LENGTHS, np.array(found), style="simulated"))
        rng = np.random.default_rng(seed)
        twins = [there.oracle.twin(int(rng.integers(2**31))) for _ in range(TWINS)]
        exact = np.mean([there.oracle.agreement(twin) for twin in twins], axis=0)[1:] - 1 / setting.N
        series.append(Series(name, "predicted", lengths, exact))
    limit = [limit_agreement(setting.N, float(length)) - 1 / setting.N for length in lengths]
    series.append(Series(LIMIT, "predicted", lengths, limit))
    chart = Chart(
        f"Agreement of two machines of {setting.N} states, less 1/{setting.N}",
        Axis("letters of a word"),
        Axis("agreement above chance", "log"),
        tuple(series),
        note=(
            "Lines of alphabets are exact for uniform words, averaged over "
            f"{TWINS} machines with other private bits; the last line is the formula for letters that never come back. "
            "Points are counted in episodes of other machines, not of the same ones."
        ),
    )
    rows: list[tuple[Cell, ...]] = []
    for states in STATES:
        length = factorial_length(states)
        rows.append((states, length, states**2 * math.log(states), length / (states**2 * math.log(states))))
    columns = (Column("N", "d"), Column("length", ",.1f"), Column("N^2 ln N", ",.1f"), Column("ratio", ".3f"))
    note = "Exact in the limit of fresh letters. The ratio tends to 1 as 1 - 1/ln N does."
    table = Table("Word length at which agreement is 1/N! above chance", columns, tuple(rows), note)
    return StudyResult(tables=(table,), charts=(chart,), groups=(*(f"{m} letters" for m in ALPHABETS), LIMIT))


def lengths(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show the score of learners after the same budget against the length of words."""
    runs = run_seeds(seed, seeds)
    series: list[Series] = []
    rows: list[tuple[Cell, ...]] = []
    for name, agent in LEARNERS.items():
        scores = []
        for length in TRAINED:
            there = lab.at(T=length)
            scores.append([there.oracle.score(policy) for policy in there.train(agent, runs, BUDGET)])
            rows.append((name, length, float(np.mean(scores[-1])), sum(score >= 0.9 for score in scores[-1]), seeds))
        series.append(measured(name, TRAINED, np.array(scores).T))
    chart = Chart(
        f"Score after {BUDGET:,} episodes", Axis("letters of a word"), Axis("score", range=(-0.05, 1.05)), tuple(series)
    )
    columns = (Column("learner"), Column("T", "d"), Column("score"), Column("learnt", "d"), Column("runs", "d"))
    queries = ", ".join(f"{lab.at(T=length).oracle.direct_queries():,.0f}" for length in TRAINED)
    note = f"Learnt: a score of .9. Theory's episodes without short words: {queries}."
    table = Table("Runs that learnt the machine", columns, tuple(rows), note)
    return StudyResult(tables=(table,), charts=(chart,), groups=tuple(LEARNERS))


def networks(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show how tables and transformers fare on words of each length while they train, and after each rung."""
    setting = lab.setting
    runs, words, chance = run_seeds(seed, seeds), range(1, setting.T + 1), 1 / setting.N
    barriers, stairs = [], []
    rows: list[tuple[Cell, ...]] = []
    y = Axis("accuracy", range=(0.0, 1.05))
    for policy, (options, climbing, budget) in POLICIES.items():
        spent, direct = _accuracies(lab, "rlvr", runs, budget, options, (setting.T,))
        _, climbed = _accuracies(lab, "adaptive-curriculum", runs, budget, options | climbing, words)
        curves = [_runs(DIRECT, spent, direct[:, :, -1]), _runs(CLIMBING, spent, climbed[:, :, -1])]
        curves.append(Series("chance", "predicted", (spent[0], spent[-1]), (chance, chance)))
        title = f"{policy[0].upper()}{policy[1:]}: words of {setting.T} letters"
        barriers.append(Chart(title, Axis("episodes"), y, tuple(curves), points="median of runs", bars="all runs"))
        stairs.append(_staircase(policy, climbed, chance, y))
        for name, found in ((DIRECT, direct), (CLIMBING, climbed)):
            last = found[:, -1, -1]
            rows.append((policy, name, int((last >= RIGHT).sum()), seeds, float(last.mean()), float(last.min())))
    columns = (Column("policy"), Column("learner"), Column("learnt", "d"), Column("runs", "d"))
    note = f"Learnt: an accuracy of {RIGHT:g} on words of {setting.T} letters."
    table = Table("Runs that learnt the machine", (*columns, Column("mean"), Column("least")), tuple(rows), note)
    return StudyResult(tables=(table,), charts=(*barriers, *stairs), groups=(DIRECT, CLIMBING, "chance"))


def _accuracies(
    lab: Lab, agent: str, runs: range, budget: int, options: dict[str, Any], words: Sequence[int]
) -> tuple[list[int], np.ndarray]:
    """Train, and return the episodes of points on the way and the accuracies there, (runs, points, len(words))."""
    traces = [trace[-POINTS:] for trace in lab.trace(agent, runs, budget, points=POINTS, **options)]
    found = [
        [[lab.simulate(policy, MEASURED, run, stage=word).rewards.mean() for word in words] for _, policy in trace]
        for run, trace in zip(runs, traces, strict=True)
    ]
    return [episodes for episodes, _ in traces[0]], np.array(found)


def _runs(group: str, x: Sequence[float], values: np.ndarray) -> Series:
    """Return the median of runs (runs, places), between the least and the most."""
    return Series(group, "band", tuple(x), np.median(values, axis=0), values.min(axis=0), values.max(axis=0))


def _staircase(policy: str, found: np.ndarray, chance: float, y: Axis) -> Chart:
    """Draw accuracies on each length when a run is first right on each rung; rungs that no run reaches are left out."""
    right = found >= RIGHT
    ever, first = np.asarray(right.any(axis=1)), right.argmax(axis=1)  # (runs, rungs)
    after = {rung: found[ever[:, rung], first[ever[:, rung], rung]] for rung in np.flatnonzero(ever.any(axis=0))}
    rungs, series = tuple(rung + 1.0 for rung in after), []
    for word in range(found.shape[2]):
        group, each = f"{word + 1} letter{'s' * (word > 0)}", [part[:, word] for part in after.values()]
        middle, low, high = ([float(value(part)) for part in each] for value in (np.median, np.min, np.max))
        series.append(Series(group, "measured", rungs, middle, low, high))
    series.append(Series("chance", "predicted", rungs, [chance] * len(rungs)))
    theory = "the first rung teaches all" if policy == "tables" else "chance beyond the rung, where nothing is shared"
    note = (
        f"Theory: {theory}. Runs that are right on each rung: {', '.join(map(str, ever.sum(axis=0)))} of {len(found)}."
    )
    x = Axis("rungs climbed", ticks=rungs)
    return Chart(f"The staircase of {policy}", x, y, tuple(series), note, points="median of runs", bars="all runs")


STUDIES: tuple[Study, ...] = (
    Study(
        id="parting",
        source="arXiv 2510.04115, agreement of two semiautomata",
        title="How fast two machines part",
        text=(
            "Machines that share their transpositions agree less and less on longer words, by the factor 1 - 1/(N-1) a "
            "letter while letters are fresh. In small alphabets they come back, and what is told apart by a few "
            "letters stays so."
        ),
        run=parting,
        seeds=8,
        parameters={"N": 6, "family": "shuffle"},
    ),
    Study(
        id="lengths",
        source="arXiv 2510.04115, learning from outcomes",
        title="Learners against the length of words",
        text="Without short words the machine is out of reach after a few letters; with them length does not matter.",
        run=lengths,
        seeds=8,
        parameters={"N": 4, "m": 3},
    ),
    Study(
        id="networks",
        source="arXiv 2510.04115, learning from outcomes, and ours",
        title="Tables and networks: barrier and staircase",
        text=(
            "A transformer that sees the initial state, the word and its own claims stays at chance when long words "
            "alone are judged; with ever longer words most runs learn the machine. One table serves words of every "
            "length, so that its first rung is its last. A network climbs rung by rung, until it has seen that each "
            "letter is read alike: then longer words need little. Some stop at two or three letters, sure of a wrong "
            "claim, or with answers that they read off short words and not off their claims."
        ),
        run=networks,
        seeds=5,
        parameters={"N": 3, "T": 5},
    ),
)
