"""Figures of CyclicPreference: what learners lose to the best response, over cyclicity; rounds of self-play."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.preference.cyclic.experiments import Tally, exact_rounds
from theorybench.envs.preference.cyclic.games import exploitability

#: Cyclicities at which learners are trained, and at which theory is drawn.
MEASURED = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
DRAWN = tuple(np.round(np.linspace(0, 1, 101), 2).tolist())
#: Labels of a run, and of the fit.
LABELS = 100_000
FAVOURITE, OPTIMUM, THRESHOLD = "Bradley-Terry favourite", "optimum", "threshold c*"
#: Steps that end near the minimum where beta is small.
_GRADIENTS: dict[str, Any] = {"learning_rate": 0.3}
#: Learners, with what is not their default.
LEARNERS: Mapping[str, Mapping[str, Any]] = {
    "dpo-offline": _GRADIENTS,
    "dpo-on-policy": _GRADIENTS,
    "ipo": _GRADIENTS,
    "xpo": _GRADIENTS,
    "sppo": {},
    "nash-md": {"rounds": 400},
}
#: Rounds of self-play (a power of two: their shares of the labels are exact), their step, and labels of a run.
ROUNDS, STEP, SELF_PLAY_LABELS = 64, 0.5, 200_000


def cyclicity(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show exploitability, and the win rate of the von Neumann winner, of every learner over cyclicity."""
    names = ("exploitability", "nash_win_rate")
    values = {name: np.empty((seeds, len(MEASURED), 2)) for name in (FAVOURITE, *LEARNERS)}
    optima: list[float] = []
    for place, share in enumerate(MEASURED):
        there = lab.at(cyclicity=share)
        for name, own in values.items():
            if name == FAVOURITE:
                policies = [
                    there.oracle.pure(Tally.of(there, run, LABELS).favourites) for run in run_seeds(seed, seeds)
                ]
            else:
                policies = there.train(name, run_seeds(seed, seeds), LABELS, **LEARNERS[name])
            found = [there.oracle.evaluate(policy, names) for policy in policies]
            own[:, place] = [[each[metric] for metric in names] for each in found]
        optima.append(there.oracle.evaluate(there.oracle.optimal_policy, names)["exploitability"])
    oracle = lab.oracle
    margins = [round(oracle.margin(share), 9) for share in DRAWN]
    threshold = oracle.threshold
    # Preferences have 36 bits, theirs and the oracle's line are compared to 9 digits.
    lost = [
        measured(name, MEASURED, np.round(own[:, :, 0], 9), style="measured" if name == FAVOURITE else "band")
        for name, own in values.items()
    ]
    lost += [
        Series(FAVOURITE, "predicted", DRAWN, margins),
        Series(OPTIMUM, "predicted", MEASURED, optima),
        Series(THRESHOLD, "predicted", (threshold, threshold), (0.0, max(margins))),
    ]
    rates = [
        measured(name, MEASURED, np.round(own[:, :, 1], 9), style="measured" if name == FAVOURITE else "band")
        for name, own in values.items()
    ]
    rates += [
        Series(FAVOURITE, "predicted", DRAWN, [0.5] * len(DRAWN)),
        Series(THRESHOLD, "predicted", (threshold, threshold), (0.5, 1.0)),
    ]
    x = Axis("cyclicity c of the preferences", range=(-0.02, 1.02))
    charts = (
        Chart(
            "What the best response against each learner wins",
            x,
            Axis("exploitability, 1/2 - min P(pi > y)", range=(-0.02, 0.52)),
            tuple(lost),
            f"Line of the {FAVOURITE}: the oracle's margin. Optimum: the fixed point, beta = {lab.setting.beta:g}.",
        ),
        Chart(
            "How often the von Neumann winner beats each learner",
            x,
            Axis("P(Nash > pi)", range=(0.45, 1.0)),
            tuple(rates),
            "Above c* a share of 1/2 is no sign of a policy without fault.",
        ),
    )
    groups = (FAVOURITE, *LEARNERS, OPTIMUM, THRESHOLD)
    return StudyResult(tables=_tables(lab, values, optima), charts=charts, groups=groups, notes=_notes(lab, values))


def _tables(lab: Lab, values: Mapping[str, np.ndarray], optima: list[float]) -> tuple[Table, ...]:
    tables = []
    for number, title in enumerate(("Exploitability", "P(Nash > policy)")):
        rows: list[tuple[Cell, ...]] = []
        for place, share in enumerate(MEASURED):
            theory = (lab.oracle.margin(share), optima[place]) if number == 0 else (0.5,)
            own = [mean_interval(runs_of[:, place, number]) for runs_of in values.values()]
            rows.append((share, *theory, *own))
        heads = ("margin", OPTIMUM) if number == 0 else ("theory",)
        columns = (Column("c", "g"), *map(Column, (*heads, *values)))
        note = (
            f"Means of runs with three standard errors. Margin: of the Borda winner, 0 up to c* = "
            f"{lab.oracle.threshold:.3f}; {FAVOURITE}: of a fit to {LABELS:,} uniform pairs. Optimum: the fixed point "
            f"of the game with beta = {lab.setting.beta:g}."
        )
        tables.append(Table(title, columns, tuple(rows), note if number == 0 else ""))
    return tuple(tables)


def _notes(lab: Lab, values: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    cyclic = [place for place, share in enumerate(MEASURED) if share > lab.oracle.thresholds.max()]
    most = {name: float(own[:, cyclic, 0].mean(axis=0).max()) for name, own in values.items()}
    far = float(np.abs(values[FAVOURITE][:, cyclic, 1] - 0.5).max())
    learners = ", ".join(f"{name} {most[name]:.2f}" for name in LEARNERS)
    return (
        f"Above c* = {lab.oracle.threshold:.2f} the largest mean exploitability is: {learners}.",
        f"There P(Nash > {FAVOURITE}) is within {far:.1g} of one half.",
    )


def self_play(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show rounds of self-play with and without a mixture with the reference, beside the same without noise."""
    setting = lab.setting
    places = range(1, ROUNDS + 1)
    ways: dict[str, tuple[str, float, dict[str, Any]]] = {
        "sppo": ("sppo", 0.0, {"eta": STEP}),
        "nash-md, weight .1": ("nash-md", 0.1, {"eta": STEP, "mixture": 0.1}),
    }
    wins = setting.tables.wins
    lost: list[Series] = []
    far: list[Series] = []
    rows: list[tuple[Cell, ...]] = []

    def read(tables: np.ndarray) -> dict[str, np.ndarray]:
        means = np.cumsum(tables, axis=0) / np.arange(1, ROUNDS + 1)[:, None, None]
        nash = lab.oracle.nash_policy.table
        logs = np.log(np.where(nash > 0, nash, 1.0)) - np.log(tables)
        return {
            "last": np.array([exploitability(wins, own).mean() for own in tables]),
            "mean": np.array([exploitability(wins, own).mean() for own in means]),
            "distance": (nash * logs).sum(axis=2).mean(axis=1),
        }

    for name, (agent, weight, options) in ways.items():
        traces = lab.trace(agent, run_seeds(seed, seeds), SELF_PLAY_LABELS, points=ROUNDS, rounds=ROUNDS, **options)
        found = [read(np.array([lab.oracle.table(policy) for _, policy in trace])) for trace in traces]
        theory = read(exact_rounds(setting, [(weight, STEP)] * ROUNDS))
        for metric in ("last", "mean", "distance"):
            samples = np.array([each[metric] for each in found])
            chart = far if metric == "distance" else lost
            label = name if metric == "distance" else f"{name}, {metric}"
            chart.append(measured(label, places, samples, style="band"))
            chart.append(Series(label, "predicted", places, theory[metric]))
            at_end = mean_interval(samples[:, -1])
            rows.append((name if metric == "last" else "", metric, theory[metric][-1], at_end))
    x = Axis("round")
    charts = (
        Chart("Exploitability of the last policy and of the mean of all", x, Axis("exploitability"), tuple(lost)),
        Chart("Distance from the von Neumann winner", x, Axis("KL(Nash || pi_t), nats"), tuple(far)),
    )
    note = (
        f"After {ROUNDS} rounds of {SELF_PLAY_LABELS // ROUNDS:,} labels with eta = {STEP:g}; theory: the same rounds "
        "with exact win rates. Exploitability of the last policy and of the mean of all; distance in nats."
    )
    columns = (Column("learner"), Column("what"), Column("theory"), Column("runs"))
    table = Table("Rounds of self-play", columns, tuple(rows), note)
    return StudyResult(tables=(table,), charts=charts)


STUDIES: tuple[Study, ...] = (
    Study(
        id="cyclic-preference",
        source="arXiv 2312.00886, what reward models cannot express; arXiv 2405.00675; arXiv 2405.21046",
        title="Exploitability over cyclicity: Bradley-Terry learners and learners of the game",
        text=(
            "Up to c* the favourite of a Bradley-Terry fit to uniform pairs loses to nothing; above, the fit ranks as "
            "before and its favourite loses the oracle's margin to some response, while the von Neumann winner still "
            "beats it in half of the cases only. DPO, IPO and XPO, whose pairs are not uniform, have other favourites, "
            "which can be exploited below c* already; nash-md stays near the optimum of the game."
        ),
        run=cyclicity,
        seeds=5,
        parameters={"beta": 0.03, "scale": 4.0},
    ),
    Study(
        id="cyclic-self-play",
        source="arXiv 2405.00675, Theorem 4.1; arXiv 2312.00886, Theorem 1",
        title="Self-play circles, its mean converges",
        text=(
            "In a ring the policy of self-play moves away from the von Neumann winner round by round, along the line "
            "of the same rounds without noise; the mean of its policies gets near, and so does self-play against a "
            "mixture with the reference, up to what the mixture costs."
        ),
        run=self_play,
        seeds=8,
        parameters={"cyclicity": 1.0},
    ),
)
