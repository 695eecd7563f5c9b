"""Figures of CyclicPreference: exploitability of learners over cyclicity, and rounds of self-play."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.preference.cyclic.experiments import MirrorDescent, exact_rounds, favourite, reading

#: Cyclicities at which theory is drawn.
DRAWN = tuple(np.round(np.linspace(0, 1, 101), 2).tolist())
FAVOURITE, OPTIMUM, THRESHOLD = "Bradley-Terry favourite", "optimum", "threshold c*"
METRICS = ("exploitability", "nash_win_rate")
#: Steps large and many enough to get near the minimum where beta is small; as many for every learner that takes them.
_GRADIENTS: dict[str, Any] = {"learning_rate": 0.3, "gradient_steps": 1200}
#: Rounds enough to get near the fixed point: with six of them `ipo` scores -.7 at c = .45, with these .7.
_ROUNDS: dict[str, Any] = {**_GRADIENTS, "rounds": 60}
#: Learners, with the hyper-parameters that are not their defaults.
LEARNERS: dict[str, dict[str, Any]] = {
    "dpo-offline": _GRADIENTS,
    "dpo-on-policy": _ROUNDS,
    "ipo": _ROUNDS,
    "xpo": _ROUNDS,
    "sppo": {},
    "nash-md": {"rounds": 400},
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class OverCyclicity:
    """Exploitability, and the win rate of the von Neumann winner, of every learner over cyclicity."""

    places: tuple[float, ...] = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)  # cyclicities at which learners are trained
    labels: int = 100_000  # of a run, and of the fit
    learners: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=lambda: LEARNERS)

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Train the learners and show both metrics."""
        runs = run_seeds(seed, seeds)
        values = {name: np.empty((seeds, len(self.places), 2)) for name in (FAVOURITE, *self.learners)}
        optima: list[float] = []
        for place, share in enumerate(self.places):
            there = lab.at(cyclicity=share)
            for name, own in values.items():
                if name == FAVOURITE:
                    policies = [favourite(there, run, self.labels) for run in runs]
                else:
                    policies = there.train(name, runs, self.labels, **self.learners[name])
                found = [there.oracle.evaluate(policy, METRICS) for policy in policies]
                own[:, place] = [[each[metric] for metric in METRICS] for each in found]
            optima.append(there.oracle.evaluate(there.oracle.optimal_policy, METRICS)["exploitability"])
        return StudyResult(
            tables=self._tables(lab, values, optima),
            charts=self._charts(lab, values, optima),
            groups=(FAVOURITE, *self.learners, OPTIMUM, THRESHOLD),
            notes=self._notes(lab, values),
        )

    def _charts(self, lab: Lab, values: Mapping[str, np.ndarray], optima: list[float]) -> tuple[Chart, ...]:
        margins = [round(lab.oracle.margin(share), 9) for share in DRAWN]
        at = (lab.oracle.threshold, lab.oracle.threshold)
        lost: list[Series] = []
        rates: list[Series] = []
        for name, own in values.items():
            for number, series in enumerate((lost, rates)):
                # Preferences have 36 bits: their values and the oracle's line are compared to 9 digits.
                rounded = np.round(own[:, :, number], 9)
                series.append(measured(name, self.places, rounded, style="measured" if name == FAVOURITE else "band"))
        x = Axis("cyclicity c of the preferences", range=(-0.02, 1.02))
        return (
            Chart(
                "What the best response against each learner wins",
                x,
                Axis("exploitability, 1/2 - min P(pi > y)", range=(-0.02, 0.52)),
                (
                    *lost,
                    Series(FAVOURITE, "predicted", DRAWN, margins),
                    Series(OPTIMUM, "predicted", self.places, optima),
                    Series(THRESHOLD, "predicted", at, (0.0, max(margins))),
                ),
                f"Line of the {FAVOURITE}: the oracle's margin. Optimum: the fixed point, beta = {lab.setting.beta:g}.",
            ),
            Chart(
                "How often the von Neumann winner beats each learner",
                x,
                Axis("P(Nash > pi)", range=(0.45, 1.0)),
                (
                    *rates,
                    Series(FAVOURITE, "predicted", DRAWN, [0.5] * len(DRAWN)),
                    Series(THRESHOLD, "predicted", at, (0.5, 1.0)),
                ),
                "Above c* a share of 1/2 does not show that a policy cannot be exploited.",
            ),
        )

    def _tables(self, lab: Lab, values: Mapping[str, np.ndarray], optima: list[float]) -> tuple[Table, ...]:
        lost: list[tuple[Cell, ...]] = []
        rates: list[tuple[Cell, ...]] = []
        for place, share in enumerate(self.places):
            own = [[mean_interval(runs[:, place, number]) for runs in values.values()] for number in range(2)]
            lost.append((share, lab.oracle.margin(share), optima[place], *own[0]))
            rates.append((share, 0.5, *own[1]))
        note = (
            "Means of runs with 99.7 % intervals. Margin: of the Borda winner, 0 up to c* = "
            f"{lab.oracle.threshold:.3f}; {FAVOURITE}: of a fit to {self.labels:,} uniform pairs. Optimum: the fixed "
            f"point of the game with beta = {lab.setting.beta:g}."
        )
        return (
            Table("Exploitability", _columns("margin", OPTIMUM, *values), tuple(lost), note),
            Table("P(Nash > policy)", _columns("theory", *values), tuple(rates)),
        )

    def _notes(self, lab: Lab, values: Mapping[str, np.ndarray]) -> tuple[str, ...]:
        cyclic = [place for place, share in enumerate(self.places) if share > lab.oracle.thresholds.max()]
        most = {name: float(own[:, cyclic, 0].mean(axis=0).max()) for name, own in values.items()}
        far = float(np.abs(values[FAVOURITE][:, cyclic, 1] - 0.5).max())
        learners = ", ".join(f"{name} {most[name]:.2f}" for name in self.learners)
        return (
            f"Above c* = {lab.oracle.threshold:.2f} the largest mean exploitability is: {learners}.",
            f"There P(Nash > {FAVOURITE}) is within {far:.1g} of one half.",
        )


def _columns(*heads: str) -> tuple[Column, ...]:
    return Column("c", "g"), *map(Column, heads)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelfPlay:
    """Rounds of self-play with and without a mixture with the reference, beside the same rounds without noise."""

    rounds: int = 64  # number of rounds, a power of two: see `MirrorDescent`
    step: float = 0.5  # eta
    labels: int = 200_000  # of a run

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Train the learners; show exploitability and the distance from the von Neumann winner after each round."""
        places = range(1, self.rounds + 1)
        lost: list[Series] = []
        far: list[Series] = []
        rows: list[tuple[Cell, ...]] = []

        def curve(tables: np.ndarray, metric: str) -> list[float]:
            return [reading(lab.oracle, tables[:place], metric) for place in places]

        for name, agent, weight in (("sppo", "sppo", 0.0), ("nash-md, weight .1", "nash-md", 0.1)):
            runs = MirrorDescent(agent, weight, self.step, self.rounds, self.labels, seeds).tables(lab, seed)
            exact = exact_rounds(lab.setting, [(weight, self.step)] * self.rounds)
            for metric, chart, label in (
                ("last", lost, f"{name}, last"),
                ("mean", lost, f"{name}, mean"),
                ("distance", far, name),
            ):
                theory, samples = curve(exact, metric), np.array([curve(tables, metric) for tables in runs])
                chart.append(measured(label, places, samples, style="band"))
                chart.append(Series(label, "predicted", places, theory))
                rows.append((name if metric == "last" else "", metric, theory[-1], mean_interval(samples[:, -1])))
        x = Axis("round")
        charts = (
            Chart("Exploitability of the last policy and of the mean of all", x, Axis("exploitability"), tuple(lost)),
            Chart("Distance from the von Neumann winner", x, Axis("KL(Nash || pi_t), nats"), tuple(far)),
        )
        note = (
            f"After {self.rounds} rounds of {self.labels // self.rounds:,} labels with eta = {self.step:g}; theory: "
            "the same rounds with exact win rates. Exploitability of the last policy and of the mean of all; distance "
            "in nats."
        )
        columns = (Column("learner"), Column("what"), Column("theory"), Column("runs"))
        return StudyResult(tables=(Table("Rounds of self-play", columns, tuple(rows), note),), charts=charts)


STUDIES: tuple[Study, ...] = (
    Study(
        id="cyclic-preference",
        source="arXiv 2312.00886, what reward models cannot express; arXiv 2405.00675; arXiv 2405.21046",
        title="Exploitability over cyclicity: Bradley-Terry learners and learners of the game",
        text=(
            "Up to c* the favourite of a Bradley-Terry fit to uniform pairs loses to no response. Above c* the fit "
            "ranks as before and its favourite loses to some response by the oracle's margin, yet the von Neumann "
            "winner still beats it in only half of the comparisons. DPO, IPO and XPO, whose pairs are not uniform, "
            "have other favourites, which can be exploited even below c*; nash-md stays near the optimum of the game."
        ),
        run=OverCyclicity(),
        seeds=5,
        parameters={"beta": 0.03, "scale": 4.0},
    ),
    Study(
        id="cyclic-self-play",
        source="arXiv 2405.00675, Theorem 4.1; arXiv 2312.00886, Theorem 1",
        title="Self-play cycles; the mean of its policies converges",
        text=(
            "In a ring the policy of self-play moves away from the von Neumann winner round by round, as it does in "
            "the same rounds without noise. The mean of its policies comes close to the winner, and so does self-play "
            "against a mixture with the reference, up to the bias of the mixture."
        ),
        run=SelfPlay(),
        seeds=8,
        parameters={"cyclicity": 1.0},
    ),
)
