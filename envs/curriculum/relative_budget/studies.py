"""Figures on relative budgets: what learners gain, what one step gains, and how many samples a step needs."""

import math
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.curriculum.relative_budget.law import TokenLaw
from theorybench.envs.curriculum.relative_budget.oracle import KAPPA
from theorybench.envs.curriculum.relative_budget.samples import TOGETHER, base_law, base_rewards, sample_sizes
from theorybench.envs.curriculum.relative_budget.steps import one_step

#: Relative budgets at which agents are trained, and those of theory's lines: multiples of .05, where K / p = 20 makes
#: whole horizons of them.
BUDGETS = (0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0)
LINE = tuple(sorted({*BUDGETS, 0.25, 0.35, 0.4, 0.45, 0.6, 0.8, 0.9, 1.2, 1.7, 2.5, 3.0, 3.5, 5.0, 6.0, 7.0}))
#: Episodes of a run, and of each of its updates.
EPISODES, BATCH = 3_200, 64
#: Learning rates of REINFORCE and of GRPO; temperature of A*-PO.
RATES, SCALED, BETA = (1.0, 4.0), (0.1, 0.4), 0.1
#: One step: budgets, learning rate, and episodes of the batch.
STEP_BUDGETS, STEP_RATE, STEP_EPISODES = (0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.0, 8.0), 0.02, 2048
#: Sub-steps whose sample sizes are drawn; simulations of 4,096 episodes in a block; tails that are counted.
LENGTHS, PARTS, COUNTED = (1, 2, 4, 8), 2, 100
_XI = Axis("relative budget xi, deficient to ample", "log", ticks=(0.2, 0.5, 1, 2, 4, 8))


def regimes(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show the score of learners after the same episodes against the relative budget, over what theory says of each."""
    runs, updates = run_seeds(seed, seeds), EPISODES // BATCH
    labs = {xi: lab.at(xi=xi) for xi in LINE}
    series: dict[str, list[Series]] = {}
    rows: list[tuple[Cell, ...]] = []

    def add(name: str, agent: str, options: Any, theory: Any) -> None:
        scores = [
            [labs[xi].oracle.score(policy) for policy in labs[xi].train(agent, runs, EPISODES, **options(labs[xi]))]
            for xi in BUDGETS
        ]
        line = [labs[xi].oracle.score(theory(labs[xi].oracle)) for xi in LINE]
        series[name] = [measured(name, BUDGETS, np.transpose(scores)), Series(name, "predicted", LINE, line)]
        predicted = dict(zip(LINE, line, strict=True))
        best = int(np.argmax(np.mean(scores, axis=1)))
        rows.append((name, BUDGETS[best], float(np.mean(scores[best])), LINE[int(np.argmax(line))], max(line)))
        rows[-1] += (float(np.mean(scores[-1])), predicted[BUDGETS[-1]])

    plain: dict[str, Any] = {"optimizer": "sgd", "episodes_per_update": BATCH}
    for rate in RATES:
        own = {**plain, "learning_rate": rate}
        add(f"RLVR, rate {rate:g}", "rlvr", lambda _, own=own: own, lambda o, rate=rate: o.ascent(rate, updates))
    for rate in SCALED:
        group = {**plain, "group_size": BATCH, "loss_type": "dr_grpo"}
        add(
            f"GRPO, rate {rate:g}",
            "grpo",
            lambda own, rate=rate, group=group: {**group, "learning_rate": rate * own.setting.horizon},
            lambda o, rate=rate: o.ascent(rate, updates, standardised=True),
        )
    warm = {**plain, "beta_1": BETA, "beta_2": BETA, "reference_samples": 512, "learning_rate": 1 / BETA}
    add(f"A*-PO, beta {BETA:g}", "astar-po", lambda _: warm, lambda o: o.regularised_table(BETA))
    same, axis = f"after {EPISODES:,} episodes, K = {lab.setting.K}", Axis("score", range=(-0.05, 1.05))
    *rates, regularised = series
    three = (rates[0], rates[len(RATES)], regularised)
    charts = (
        Chart(
            f"Three regimes: score {same}",
            _XI,
            axis,
            tuple(drawn for name in three for drawn in series[name]),
            note=(
                "Lines: the expected gradient of a table on sub-steps, followed for as many updates, for RLVR and GRPO "
                "(in groups so large that their deviation is sd(R)); the optimum of J - beta KL among such tables for "
                f"A*-PO. GRPO's loss is summed over tokens. Its groups of {BATCH} hold few solutions, or none, in "
                "deficient budgets, and A*-PO has not come to its end there."
            ),
        ),
        Chart(
            f"The learning rate: score {same}",
            _XI,
            axis,
            tuple(drawn for name in rates for drawn in series[name]),
            note="A higher rate reaches further into both ends; at neither rate does GRPO fall in ample budgets.",
        ),
    )
    columns = (
        Column("learner"),
        Column("best xi", "g"),
        Column("score"),
        Column("theory's best xi", "g"),
        Column("theory's score"),
        Column(f"score at {BUDGETS[-1]:g}"),
        Column("theory's"),
    )
    table = Table("Where learners do best", columns, tuple(rows))
    return StudyResult(charts=charts, tables=(table,), groups=(*three, *rates))


def steps(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show what one gradient step gains: at a fixed KL divergence, and as a score for each unit of learning rate."""
    labs = {xi: lab.at(xi=xi) for xi in LINE if xi >= min(STEP_BUDGETS)} | {xi: lab.at(xi=xi) for xi in STEP_BUDGETS}
    line = sorted(labs)
    fixed: dict[str, list[Any]] = {"rlvr": [], "grpo": []}
    scores: dict[str, list[Any]] = {"rlvr": [], "grpo": []}
    for agent in fixed:
        for xi in STEP_BUDGETS:
            oracle = labs[xi].oracle
            rate = STEP_RATE * (math.sqrt(oracle.law.variance) if agent == "grpo" else 1.0)
            gains, divergences = one_step(labs[xi], agent, seed, seeds, rate, STEP_EPISODES)
            fixed[agent].append(gains / np.sqrt(2 * divergences))
            scores[agent].append(gains / rate / (oracle.optimal_value - oracle.reference_value))
    oracles = [labs[xi].oracle for xi in line]
    deviations = [math.sqrt(oracle.law.variance) for oracle in oracles]
    gaps = [oracle.optimal_value - oracle.reference_value for oracle in oracles]
    norms = np.array([oracle.small_step.squared_norm for oracle in oracles])
    names = {"rlvr": "RLVR", "grpo": "GRPO"}
    gain = Chart(
        "Gain of one step at the same small KL divergence kappa",
        _XI,
        Axis("gain / sqrt(2 kappa)"),
        (
            Series("any policy: sd(R)", "predicted", line, deviations),
            *(measured(names[agent], STEP_BUDGETS, np.transpose(values)) for agent, values in fixed.items()),
            *(Series(name, "predicted", line, [o.small_step.gain for o in oracles]) for name in names.values()),
        ),
        note=(
            "The line of RLVR and GRPO is the same: dividing by a deviation changes how far a step goes, not where. "
            f"The noise of {STEP_EPISODES:,} episodes adds to the divergence, so that points lie a little below."
        ),
    )
    score = Chart(
        "Score that one step gains, for each unit of the learning rate",
        _XI,
        Axis("score / learning rate"),
        (
            *(measured(names[agent], STEP_BUDGETS, np.transpose(values)) for agent, values in scores.items()),
            Series("RLVR", "predicted", line, norms / gaps),
            Series("GRPO", "predicted", line, norms / np.multiply(deviations, gaps)),
        ),
        note="RLVR falls as 1/xi in ample budgets; GRPO, which divides by the group's deviation, does not.",
    )
    return StudyResult(charts=(gain, score), groups=("RLVR", "GRPO"))


def samples(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show how many samples a step needs against the relative budget, and tell where they are fewest."""
    series: list[Series] = []
    rows: list[tuple[Cell, ...]] = []
    grid = np.round(np.arange(0.05, 8.0001, 0.05), 2)
    for number in LENGTHS:
        name, own = f"K = {number}", lab.at(K=number)
        laws = {xi: base_law(own.setting, xi) for xi in LINE}
        known = [xi for xi in LINE if math.isfinite(laws[xi].sample_size(KAPPA))]
        series.append(Series(name, "predicted", known, [laws[xi].sample_size(KAPPA) for xi in known]))
        counted = [xi for xi in BUDGETS if laws[xi].tail(KAPPA) * PARTS * TOGETHER >= COUNTED]
        found = [sample_sizes(base_rewards(own.at(xi=xi), seeds, PARTS, seed)) for xi in counted]
        series.append(measured(name, counted, np.transpose(found), style="simulated"))
        exact = [TokenLaw.negative_binomial(number, 0.02, max(number, round(xi * number / 0.02))) for xi in grid]
        sizes = np.array([law.sample_size(KAPPA) for law in exact])
        peak, least = (float(grid[int(place)]) for place in (np.argmax([x.variance for x in exact]), np.argmin(sizes)))
        ratios = [float(sizes[np.searchsorted(grid, xi)] / sizes.min()) for xi in (0.3, 6.0)]
        rows.append((number, peak, least, float(sizes.min()), *ratios))
    chart = Chart(
        f"Samples of one step, p = {lab.setting.p:g}",
        _XI,
        Axis("n(xi)", "log"),
        tuple(series),
        note=(
            "n = 1 / (sqrt(kappa) sd(R) P[R >= E R + sqrt(kappa) sd(R)]), kappa = 1/4. Points: by moments and tails of "
            f"{PARTS * TOGETHER:,} simulated responses each, where these hold {COUNTED} of the tail."
        ),
        points="mean of samples",
    )
    columns = (
        Column("K", "d"),
        Column("Var[R] peaks at", ".2f"),
        Column("n is least at", ".2f"),
        Column("least n", ".1f"),
        Column("n(.3) / least", ",.1f"),
        Column("n(6) / least", ".1f"),
    )
    table = Table("Exact, at p = .02, on a grid of .05", columns, tuple(rows))
    return StudyResult(tables=(table,), charts=(chart,), groups=tuple(f"K = {number}" for number in LENGTHS))


_SOURCE = "arXiv 2602.01523"
STUDIES: tuple[Study, ...] = (
    Study(
        id="regimes",
        source=f"{_SOURCE}, the three regimes",
        title="Three regimes of the relative budget",
        text=(
            "In deficient budgets nobody finds solutions, in balanced ones all learn, and in ample ones rewards differ "
            "less and less: RLVR slows down at the same learning rate, A*-PO changes less at the same temperature, and "
            "GRPO, which divides by the group's deviation, does neither. A higher rate moves all of that to the left."
        ),
        run=regimes,
        seeds=6,
        parameters={"A": 5, "p": 0.2},
    ),
    Study(
        id="steps",
        source=f"{_SOURCE}, gain of one step",
        title="What one step gains",
        text=(
            "At the same KL divergence a step gains in proportion to sd(R), most in balanced budgets; a table on "
            "sub-steps sees less of it in deficient ones."
        ),
        run=steps,
        seeds=8,
        parameters={"A": 5, "p": 0.2},
    ),
    Study(
        id="samples",
        source=f"{_SOURCE}, sample size",
        title="How many samples a step needs",
        text="Ever more as the budget gets deficient, the more so for many sub-steps; fewest at xi = 1.4 to 1.6.",
        run=samples,
        seeds=6,
        parameters={"A": 5, "p": 0.2},
    ),
)
