"""Figures of arXiv 2511.07372 on ReasoningTree: exponential or linear, what a verifier tells, and ladders."""

import math

import numpy as np

from theorybench.envs.core.evidence.interval import WIDTH, mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.curriculum.learning import episodes_to_learn
from theorybench.envs.curriculum.reasoning_tree.claims import (
    ACCURACY,
    ParityTests,
    QueryGrowth,
    Search,
    depth_ladder,
    hint_ladder,
    log_statistic,
)
from theorybench.envs.curriculum.reasoning_tree.setting import ReasoningTree

#: Lengths of S: searched and learnt on the full task, on ladders, and those of theory's lines.
DIRECT, LEARNT, STAGED, DRAWN = (1, 2, 3, 4), (1, 3, 5, 6), (1, 2, 4, 6, 8, 12), tuple(range(1, 13))
#: Searches at each point; episodes of a run on the full task at most, and of one on a ladder for each rung.
TRIALS, LIMIT, SHARE = 400, 60_000, 2_000
SEARCHES = {"search, full task": DIRECT, "search, rung by rung": STAGED}
LEARNERS = {"REINFORCE, full task": ("rlvr", LEARNT), "REINFORCE, rung by rung": ("adaptive-curriculum", STAGED)}
#: Confirmations m of the parity verifier; the small tree all of whose chains are tested; how often each of them is.
CONFIRMATIONS, SMALL, BLOCKS = (1, 2, 3, 4, 6, 8, 10), {"d": 3, "L": 3}, 400
#: Chance that a search with the parity verifier ends at a wrong chain; lengths of its table.
DELTA, COSTED = 0.1, (1, 2, 3, 4, 6, 8)
#: Episodes of learning curves, their points, and responses by which a policy is looked into.
BUDGET, POINTS, RESPONSES = 12_000, 24, 4_096
#: Ladders of learning curves, by name.
LADDERS = {"stages": ("curriculum-rlvr", "depth"), "hints": ("curriculum-rlvr", "hint"), "full task": ("rlvr", "")}


def length(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show the reward queries of searches and of learners against L, in training and at test time."""
    runs = run_seeds(seed, seeds)
    training = _searches(lab, None, seed)
    rows: list[tuple[Cell, ...]] = []
    for name, (agent, places) in LEARNERS.items():
        times = {}
        for L in places:
            budget = LIMIT if agent == "rlvr" else SHARE * (L + 1)
            times[L] = episodes_to_learn(lab.at(L=L), agent, runs, budget)
            middle = float(np.median(times[L]))
            rows.append((name, L, int(np.isfinite(times[L]).sum()), seeds, middle if math.isfinite(middle) else None))
        drawn = [L for L in places if np.isfinite(times[L]).all()]
        if drawn:
            training.append(measured(name, drawn, np.array([times[L] for L in drawn]).T))
        late = [L for L in places if L not in drawn]
        if late:
            training.append(Series(name, "censored", late, [LIMIT] * len(late)))
    axes = Axis("length L of the hidden path", ticks=(1, 2, 4, 6, 8, 10, 12)), Axis("reward queries", "log", (1, 1e10))
    charts = (
        Chart(
            "Training: queries until S is known",
            *axes,
            tuple(training),
            note=(
                f"Search: mean of {TRIALS} rejection samplers; theory (d+1)^(L+1) and (L+1)(d+1), d = {lab.setting.d}. "
                f"REINFORCE: episodes to a score of {ACCURACY:g}, if all runs arrive."
            ),
        ),
        Chart(
            f"Test time: queries that solve {100 * ACCURACY:g} % of attempts",
            *axes,
            tuple(_searches(lab, ACCURACY, seed)),
            note="On one prompt, from the base model. Theory: quantiles of one geometric variable, or of L + 1.",
            points="quantile of searches",
        ),
    )
    columns = (Column("learner"), *(Column(name, "d") for name in ("L", "arrived", "runs")), Column("median", ",.0f"))
    note = (
        f"Runs on the full task have {LIMIT:,} episodes, others {SHARE:,} for each rung. The median counts runs that "
        "never arrive as the slowest; empty where it is one of these."
    )
    table = Table("Runs that arrived", columns, tuple(rows), note)
    return StudyResult(tables=(table,), charts=charts, groups=(*SEARCHES, *LEARNERS))


def _searches(lab: Lab, quantile: float | None, seed: int) -> list[Series]:
    """Return means of the queries of searches, or a quantile, against L, with theory's lines."""
    series, law = [], QueryGrowth("length", quantile).law
    for way, (name, places) in enumerate(SEARCHES.items()):
        found = []
        for L in places:
            there = lab.at(L=L)
            search = Search(there, TRIALS, None if quantile is None else L)
            rungs = depth_ladder(there.setting, 1 if way else L + 1)
            found.append(log_statistic(search.climb(rungs, _key(seed, way, L, quantile is None)), quantile))
        log, error = np.array(found).T
        ends = (np.exp(log + side * WIDTH * error) for side in (-1, 1))
        series.append(Series(name, "simulated", places, np.exp(log), *ends))
        line = [law(lab.setting.d, L, 1 if way else L + 1) for L in DRAWN]
        series.append(Series(name, "predicted", DRAWN, line))
    return series


def verifiers(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show what the parity verifier lets pass, and what agents learn from it and from the exact one."""
    setting = lab.setting
    small = lab.at(**SMALL, verifier="parity")
    wrong = "wrong chain"
    passes: list[tuple[float, float, float]] = []
    tests: list[tuple[float, float, float]] = []
    for m in CONFIRMATIONS:
        for survival, values in ((True, passes), (False, tests)):
            values.append(ParityTests(m, survival, BLOCKS).measure(small, _key(seed, m, survival)))
    laws = [[ParityTests(m, survival).predicted(setting) for m in CONFIRMATIONS] for survival in (True, False)]
    x = Axis("prompts m that a chain has to pass", ticks=CONFIRMATIONS)
    every = f"all wrong chains of d = L = {SMALL['d']}, {BLOCKS} times each"
    charts = [
        Chart(
            "Share of wrong chains that pass",
            x,
            Axis("share", "log"),
            (Series(wrong, "simulated", CONFIRMATIONS, *zip(*passes, strict=True)), _line(wrong, laws[0])),
            note="Theory: 2^-m. The exact verifier passes none.",
            points=f"mean over {every}",
        ),
        Chart(
            "Queries to test a chain until it fails",
            x,
            Axis("queries", range=(0, 10.5)),
            (
                Series(wrong, "simulated", CONFIRMATIONS, *zip(*tests, strict=True)),
                _line(wrong, laws[1]),
                _line("right chain", list(CONFIRMATIONS)),
            ),
            note="Theory: 2 - 2^(1-m) for a wrong chain, and m for a right one.",
            points=f"mean over {every}",
        ),
    ]
    runs = run_seeds(seed, seeds)
    rows: list[tuple[Cell, ...]] = []
    for verifier in ("exact", "parity"):
        there, series = lab.at(verifier=verifier), []
        for name in ("stages", "full task"):
            agent, _ = LADDERS[name]
            traces = [trace[-POINTS:] for trace in there.trace(agent, runs, BUDGET, points=POINTS)]
            rewards = [[there.oracle.evaluate(policy)["objective"] for _, policy in trace] for trace in traces]
            series.append(measured(name, [spent for spent, _ in traces[0]], np.array(rewards), style="band"))
            looks = [_look(there, trace[-1][1], _key(seed, run)) for run, trace in zip(runs, traces, strict=True)]
            last = (np.array(rewards)[:, -1], *np.array(looks).T)
            rows.append((verifier, name, *(mean_interval(values) for values in last)))
        if verifier == "parity":
            ends = series[0].x[0], series[0].x[-1]
            series.append(Series("any chain of L picks", "predicted", ends, (0.5, 0.5)))
        axes = Axis("episodes"), Axis("expected reward", range=(-0.02, 1.05))
        charts.append(Chart(f"REINFORCE under the {verifier} verifier, L = {setting.L}", *axes, tuple(series)))
    heads = ("expected reward", "chains of L picks", "right ones among them")
    learnt = Table(
        "What the reward certifies",
        (Column("verifier"), Column("learner"), *map(Column, heads)),
        tuple(rows),
        f"Shares of {RESPONSES:,} responses of each run, after {BUDGET:,} episodes. Right: S with the exact verifier, "
        "some order of S with parity. Under parity the reward is the share of chains of L picks times 1/2, and as much "
        "again where they are right. Where no run has such chains the last column is 0.",
    )
    return StudyResult(
        tables=(learnt, _search_costs(setting, lab)),
        charts=tuple(charts),
        groups=(wrong, "right chain", "stages", "full task", "any chain of L picks"),
    )


def _line(name: str, values: list[float]) -> Series:
    return Series(name, "predicted", CONFIRMATIONS, values)


def _look(lab: Lab, policy: object, key: int) -> tuple[float, float]:
    """Return the share of a policy's responses that have L picks and EOS, and the share of S among those."""
    setting: ReasoningTree = lab.setting
    path = setting.tables.path
    played = lab.simulate(policy, RESPONSES, key)
    whole = (played.lengths == setting.num_stages) & (played.actions[:, -1] == setting.d)
    picks = played.actions[whole, :-1]
    if setting.verifier == "exact":
        right = (picks == path[:-1]).all(axis=1)
    else:
        parities = np.eye(setting.d, dtype=np.int64)[picks].sum(axis=1) % 2
        right = (parities == np.bincount(path[:-1], minlength=setting.d) % 2).all(axis=1)
    return float(whole.mean()), float(right.mean()) if len(right) else 0.0


def _search_costs(setting: ReasoningTree, lab: Lab) -> Table:
    """Return what theory says that searches cost with either verifier."""
    rows: list[tuple[Cell, ...]] = []
    for L in COSTED:
        exact, parity = (lab.at(L=L, verifier=verifier).oracle for verifier in ("exact", "parity"))
        direct = (exact.direct_queries(), parity.confirmations(DELTA), parity.parity_queries(DELTA))
        rows.append((L, *direct, exact.curriculum_queries()))
    heads = ("exact, full task", "parity: m", "parity, full task", "exact, rung by rung")
    note = (
        f"Means, d = {setting.d}. With parity random chains of L picks are tested on m fresh prompts, so that no wrong "
        f"one passes with probability {1 - DELTA:g}; any of the L! orders of S will do."
    )
    return Table(
        "Queries of searches for S", (Column("L", "d"), *(Column(h, ",.0f") for h in heads)), tuple(rows), note
    )


def ladders(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show what ladders of stages and of hints cost, what longer rungs do, and how REINFORCE climbs both."""
    setting = lab.setting
    by_length, increments = [], tuple(range(1, setting.num_stages + 1))
    for way, (name, ladder) in enumerate((("stages", depth_ladder), ("hints", hint_ladder))):
        found = []
        for L in STAGED:
            there = lab.at(L=L)
            found.append(mean_interval(Search(there, TRIALS).climb(ladder(there.setting, 1), _key(seed, way, L))))
        by_length += [Series(name, "simulated", STAGED, *zip(*found, strict=True))]
        by_length += [Series(name, "predicted", DRAWN, [lab.at(L=L).oracle.curriculum_queries() for L in DRAWN])]
    counted = increments[:-1]
    found = [mean_interval(Search(lab, TRIALS).climb(depth_ladder(setting, p), _key(seed, 2, p))) for p in counted]
    by_increment = (
        Series("stages", "simulated", counted, *zip(*found, strict=True)),
        Series("stages", "predicted", increments, [lab.oracle.curriculum_queries(p) for p in increments]),
    )
    runs, curves = run_seeds(seed, seeds), []
    for name, (agent, curriculum) in LADDERS.items():
        options = {"curriculum": curriculum} if curriculum else {}
        traces = [trace[-POINTS:] for trace in lab.trace(agent, runs, BUDGET, points=POINTS, **options)]
        scores = [[lab.oracle.score(policy) for _, policy in trace] for trace in traces]
        curves.append(measured(name, [spent for spent, _ in traces[0]], np.array(scores), style="band"))
    charts = (
        Chart(
            "Search: ever longer stages, ever shorter hints",
            Axis("length L of the hidden path", ticks=(1, 2, 4, 6, 8, 10, 12)),
            Axis("reward queries", range=(0, 85)),
            tuple(by_length),
            note=f"Theory: (L+1)(d+1) for both, d = {setting.d}: one line lies on the other.",
            points=f"mean of {TRIALS} searches",
        ),
        Chart(
            f"Search: new picks on each rung, L = {setting.L}",
            Axis("picks p of a rung", ticks=increments),
            Axis("reward queries", "log"),
            by_increment,
            note=f"Theory: (d+1)^p for each rung of p picks. p = {setting.num_stages} is the full task at once.",
            points=f"mean of {TRIALS} searches",
        ),
        Chart(
            f"REINFORCE on both ladders, L = {setting.L}",
            Axis("episodes"),
            Axis("score on the full task", range=(-0.05, 1.05)),
            tuple(curves),
            note="Each rung has an equal share of the episodes: the score jumps on the last. Stages and hints lie on "
            "each other; on the full task few runs ever meet a reward.",
        ),
    )
    return StudyResult(charts=charts, groups=tuple(LADDERS))


def _key(*labels: int) -> int:
    return int(np.random.SeedSequence(labels).generate_state(1)[0])


_SOURCE = "arXiv 2511.07372"
STUDIES: tuple[Study, ...] = (
    Study(
        id="reasoning-tree-length",
        source=f"{_SOURCE}, with and without a curriculum, in training and at test time",
        title="Exponential or linear in the length of the chain",
        text=(
            "On the full task every further pick multiplies the reward queries by d + 1; rung by rung it adds d + 1. "
            "The same holds for a search at test time, which trains nothing. REINFORCE needs more on each rung, but no "
            "more for the later ones; on the full task it waits for its first rewards as long as the search."
        ),
        run=length,
        seeds=5,
        parameters={"d": 4, "L": 4},
    ),
    Study(
        id="reasoning-tree-verifiers",
        source=f"{_SOURCE}, parity",
        title="A verifier that sees one bit",
        text=(
            "Parity pays half of what is wrong, so that it takes m prompts to be sure of a chain, though hardly more "
            "than two to be rid of one. Agents learn quickly to give chains of the right length, which pays 1/2, and "
            "on the full task no more: their reward says nothing about S."
        ),
        run=verifiers,
        seeds=8,
    ),
    Study(
        id="reasoning-tree-ladders",
        source=f"{_SOURCE}, depth-increasing and hint-decreasing curricula, and the size of their steps",
        title="Which ladder, and how steep",
        text=(
            "Stages that grow and hints that shrink cost the same. What counts is how much is new on a rung: each pick "
            "more multiplies its cost, and one pick at a time is cheapest."
        ),
        run=ladders,
        seeds=8,
        parameters={"d": 4, "L": 5},
    ),
)
