"""Figures on sparse parity: what learning costs directly and by stages, and the staircase of a run by stages."""

import math

import numpy as np

from theorybench.envs.core.evidence.interval import mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.curriculum.parity.claims import LEARNT, Slope, StageSearch

#: Secret bits at which runs are trained, and at which theory is drawn.
DIRECT, STAGED, DRAWN = (1, 2, 3, 4, 5), (1, 2, 3, 4, 6, 8), (1, 2, 3, 4, 5, 6, 7, 8)
#: Episodes of a run on the full task at most, and of a stage; checkpoints of a run.
LIMIT, SHARE, POINTS = 60_000, 1_600, 64
FULL, STAGES, SEARCH = "REINFORCE, full task", "REINFORCE, by stages", "search by stages"
LEAST = "least, full task"


def arrivals(lab: Lab, agent: str, seeds: range, budget: int) -> np.ndarray:
    """Return the episodes after which each run scores `LEARNT`, float64 (seeds,), infinite where it never does."""
    times = []
    for trace in lab.trace(agent, seeds, budget, points=POINTS):
        reached = (spent for spent, policy in trace if lab.oracle.score(policy) >= LEARNT)
        times.append(next(reached, math.inf))
    return np.array(times, np.float64)


def cost(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show the episodes to learn the task against k."""
    runs = run_seeds(seed, seeds)
    series: list[Series] = []
    rows: list[tuple[Cell, ...]] = []
    for name, agent, places in ((FULL, "rlvr", DIRECT), (STAGES, "curriculum-rlvr", STAGED)):
        times = {}
        for k in places:
            times[k] = arrivals(lab.at(k=k), agent, runs, LIMIT if agent == "rlvr" else SHARE * k)
            finite = times[k][np.isfinite(times[k])]
            middle = float(np.median(times[k]))
            rows.append((name, k, len(finite), seeds, middle if math.isfinite(middle) else None))
        drawn = [k for k in places if np.isfinite(times[k]).all()]
        if drawn:
            series.append(measured(name, drawn, np.array([times[k] for k in drawn]).T))
        late = [k for k in places if k not in drawn]
        if late:
            series.append(Series(name, "censored", late, [LIMIT] * len(late)))
    series.append(Series(LEAST, "predicted", DRAWN, [lab.at(k=k).oracle.direct_queries() for k in DRAWN]))
    search = StageSearch()
    found = [search.measure(there, seed) for there in (lab.at(k=k) for k in STAGED)]
    y, low, high = np.array(found).T
    series.append(Series(SEARCH, "simulated", STAGED, y, low, high))
    series.append(Series(SEARCH, "predicted", DRAWN, [lab.at(k=k).oracle.curriculum_queries() for k in DRAWN]))
    chart = Chart(
        "Episodes to 90 % of the score",
        Axis("secret bits k"),
        Axis("episodes", "log"),
        tuple(series),
        note=(
            f"Runs on the full task have {LIMIT:,} episodes, those by stages {SHARE:,} a stage. Where some run did not "
            "arrive, the budget is drawn. Least: 4.5 * 4^k, to see at three standard errors how a row should lean."
        ),
    )
    columns = (
        Column("learner"),
        Column("k", "d"),
        Column("arrived", "d"),
        Column("runs", "d"),
        Column("median", ",.0f"),
    )
    note = "The median counts runs that never arrive as the slowest; empty where it is one of these."
    table = Table("Runs that arrived", columns, tuple(rows), note)
    return StudyResult(tables=(table,), charts=(chart,), groups=(FULL, STAGES, LEAST, SEARCH))


def staircase(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show the success at every stage along a run by stages, and the gradient at the uniform policy."""
    setting = lab.setting
    runs, stages = run_seeds(seed, seeds), range(1, setting.k + 1)
    names = [f"{j} bit{'s' if j > 1 else ''}" for j in stages]
    traces = lab.trace("curriculum-rlvr", runs, SHARE * setting.k, points=POINTS)
    episodes = [spent for spent, _ in traces[0]]
    wanted = [f"stage_{j}/success" for j in stages]
    values = np.array([[list(map(lab.oracle.evaluate(p).get, wanted)) for _, p in trace] for trace in traces], float)
    series = [measured(name, episodes, values[:, :, j], style="band") for j, name in enumerate(names)]
    course = Chart("Success by stages", Axis("episodes"), Axis("success", range=(0.45, 1.02)), tuple(series))
    rows: list[tuple[Cell, ...]] = []
    for j in stages:
        slope = Slope(j)
        rows.append((j, slope.predicted(lab.oracle), slope.measure(lab, seed)))
    columns = (Column("stage", "d"), Column("theory", ".4f"), Column("measured", ".6f"))
    note = "At the uniform policy, from score-function estimates: two independent halves of a sample are multiplied."
    norms = Table("Squared norm of the outcome's gradient", columns, tuple(rows), note)
    direct = [2 * lab.oracle.evaluate(p)["objective"] - 1 for p in lab.train("rlvr", runs, SHARE * setting.k)]
    mean, low, high = mean_interval(np.array(direct))
    told = f"On the full task alone the same budget brings a score of {mean:.3f} ({low:.3f} to {high:.3f})."
    return StudyResult(tables=(norms,), charts=(course,), notes=(told,), groups=tuple(names))


STUDIES: tuple[Study, ...] = (
    Study(
        id="parity-cost",
        source="learning parities from outcomes, directly and with claims on the way",
        title="Episodes to learn the parity of k secret bits",
        text=(
            "On the full task nothing points anywhere before chance has put all positions near the right table: the "
            "cost grows about fourfold with each secret bit. By stages each bit adds the same."
        ),
        run=cost,
        seeds=8,
    ),
    Study(
        id="parity-staircase",
        source="learning parities from outcomes, directly and with claims on the way",
        title="A run by stages",
        text="Each stage lifts one step off chance, and the longer parities stay there until it is their turn.",
        run=staircase,
        seeds=8,
        parameters={"k": 6},
    ),
)
