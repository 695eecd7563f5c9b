"""Figures on semiautomata: how fast machines part, and how far learners come with and without short words."""

import math
from typing import Any

import numpy as np

from theorybench.envs.core.claim import Lab
from theorybench.envs.core.study import Axis, Cell, Chart, Column, Exhibit, Series, Study, Table, measured
from theorybench.envs.curriculum.semiautomaton import Semiautomaton
from theorybench.envs.curriculum.semiautomaton_claims import excess
from theorybench.envs.curriculum.semiautomaton_pairs import factorial_length, limit_agreement

#: Letters of the alphabets, other machines whose agreement is averaged, and episodes of each machine and length.
ALPHABETS, TWINS, EPISODES = (6, 50, 500, 4096), 8, 10_000
#: Lengths that are simulated; states of the table of horizons.
LENGTHS, STATES = (1, 2, 4, 6, 8, 10), (3, 4, 5, 6, 8, 12, 20, 50, 1000)
#: Word lengths at which learners are trained, and the episodes of a run.
TRAINED, BUDGET = (1, 2, 3, 4, 6, 8), 20_000
LEARNERS = {"REINFORCE, long words alone": "rlvr", "REINFORCE, by word length": "curriculum-rlvr"}
LIMIT = "fresh letters"
#: Networks that read the whole prompt: learners, hyper-parameters, episodes of a run, points of a curve, and episodes
#: that measure each of them. Without a KL penalty some are soon sure of a wrong claim, and never see the right one.
NETWORKS = {"long words alone": "rlvr", "ever longer words": "adaptive-curriculum"}
NETWORK = {"policy": "transformer", "kl": 0.05}
NETWORK_BUDGET, POINTS, MEASURED = 16_000, 8, 1024


def parting(setting: Semiautomaton, lab: Lab, seed: int, seeds: int) -> Exhibit:
    """Show the agreement of two machines above chance against the length of words, for several alphabets."""
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
    return Exhibit(tables=(table,), charts=(chart,), groups=(*(f"{m} letters" for m in ALPHABETS), LIMIT))


def lengths(setting: Semiautomaton, lab: Lab, seed: int, seeds: int) -> Exhibit:
    """Show the score of learners after the same budget against the length of words."""
    runs = range(seed * seeds, (seed + 1) * seeds)
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
    return Exhibit(tables=(table,), charts=(chart,), groups=tuple(LEARNERS))


def networks(setting: Semiautomaton, lab: Lab, seed: int, seeds: int) -> Exhibit:
    """Show how transformers fare on the full task while they train, and afterwards on words of each length."""
    runs, words = range(seed * seeds, (seed + 1) * seeds), range(1, setting.T + 1)
    curves, stairs = [], []
    for name, agent in NETWORKS.items():
        traces = [trace[-POINTS:] for trace in lab.trace(agent, runs, NETWORK_BUDGET, points=POINTS, **NETWORK)]

        def accuracy(policy: Any, length: int) -> float:
            return float(lab.simulate(policy, MEASURED, seed, stage=length).rewards.mean())

        found = [[accuracy(policy, setting.T) for _, policy in trace] for trace in traces]
        curves.append(measured(name, [episodes for episodes, _ in traces[0]], np.array(found), style="band"))
        last = [[accuracy(trace[-1][1], length) for length in words] for trace in traces]
        stairs.append(measured(name, words, np.array(last)))
    chance = 1 / setting.N
    ends = NETWORK_BUDGET / POINTS, NETWORK_BUDGET
    curves.append(Series("chance", "predicted", ends, (chance, chance)))
    stairs.append(Series("chance", "predicted", words, [chance] * setting.T))
    y = Axis("accuracy", range=(0.0, 1.05))
    first = Chart(f"Transformers on words of {setting.T} letters", Axis("episodes"), y, tuple(curves))
    second = Chart(
        f"Words of each length after {NETWORK_BUDGET:,} episodes", Axis("letters of a word"), y, tuple(stairs)
    )
    return Exhibit(charts=(first, second), groups=(*NETWORKS, "chance"))


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
        title="Networks: barrier and staircase",
        text=(
            "A transformer that sees the initial state, the word and its own claims stays at chance when long words "
            "alone are judged. With ever longer words most runs learn the machine: a run that goes on rightly from a "
            "claim of its own needs little for each further letter. Some stop at two letters, sure of a wrong claim."
        ),
        run=networks,
        seeds=3,
        parameters={"N": 3, "T": 5},
    ),
)
