"""Figures of arXiv 2601.08421 on PreferenceBandit: rounds, offline against on-policy, the transition, the separation.

All learners solve exactly in the linear softmax class; theory is the oracle's Fisher information and binomial law.
Batches above the threshold have n*(1e-5) labels, so practically no run has a separated coordinate.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import Interval, mean_interval, ratio_of_means, share_interval
from theorybench.envs.core.evidence.lab import Lab
from theorybench.envs.core.evidence.study import (
    Axis,
    Cell,
    Chart,
    Column,
    Series,
    Study,
    StudyResult,
    Table,
    measured,
)
from theorybench.envs.preference.bandit.experiments import final_values, learning_curves, offline_ratio, safe_batch
from theorybench.envs.preference.bandit.separation import GROUPS, OFFLINE, ON_POLICY, Separation
from theorybench.envs.preference.bandit.transition import Transition

FLOOR = "floor"


@dataclasses.dataclass(frozen=True)
class Rounds:
    """Error and coverage after each round of on-policy DPO."""

    inits: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)  # values of theta_init at which learning starts
    rounds: int = 5  # number of rounds

    def run(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Train, and measure both after each round."""
        places = range(self.rounds + 1)
        error: list[Series] = []
        cover: list[Series] = []
        rows: list[tuple[Cell, ...]] = []
        floor = lab.oracle.floor(1)
        for init in self.inits:
            there, name = lab.at(theta_init=init), f"theta_init {init:g}"
            n = safe_batch(there.oracle)
            metrics = ("error", "coverage")
            start = there.oracle.evaluate(there.oracle.initial_policy, metrics)
            runs = learning_curves(there, "dpo-on-policy", seed, seeds, n, metrics, rounds=self.rounds)
            first = np.broadcast_to([start[metric] for metric in metrics], (seeds, 1, len(metrics)))
            values = np.concatenate([first, runs], axis=1)
            error.append(measured(name, places, n * values[:, :, 0], style="band"))
            error.append(Series(name, "predicted", (1,), (there.oracle.transition.first_round_error(n),)))
            cover.append(measured(name, places, values[:, :, 1], style="band"))
            for t in places[1:]:
                theory = there.oracle.offline_variance(1) if t == 1 else floor if t >= 3 else None
                law = there.oracle.transition.first_round_error(n) if t == 1 else None
                sampler, after = values[:, t - 1, 1].mean() if t > 1 else start["coverage"], values[:, t, 1]
                labels = n if t == 1 else None
                own = mean_interval(n * values[:, t, 0]), sampler, mean_interval(after)
                rows.append((name if t == 1 else "", labels, t, theory, law, *own))
        error.append(Series(FLOOR, "predicted", places, [floor] * len(places)))
        cover.append(Series(FLOOR, "predicted", places, [1.0] * len(places)))
        x = Axis("round t", ticks=tuple(places))
        about = "Dash at round 1: the binomial law of separate coordinates. Floor: tr(Sigma* I(pi*)^-1)."
        charts = (
            Chart("Error after round t, times its n labels", x, Axis("n x error", "log"), tuple(error), about),
            Chart("Coverage after round t", x, Axis("C(pi_t)", "log"), tuple(cover)),
        )
        heads = (("start", "d"), ("n", ",d"), ("round", "d"), ("Fisher", ".2f"), ("law", ".2f"), ("runs", ".2f"))
        columns = (*(Column(*head) for head in heads), Column("C that sampled", ".2f"), Column("C after", ".2f"))
        note = (
            "Error is ||theta_t - theta*||^2 in the Sigma* norm; means of runs with 99.7 % intervals. Fisher "
            f"information predicts tr(Sigma* I(pi_init)^-1) in round 1 and the floor {floor:.2f} from round 3 on; "
            "round 2 is sampled by each run's own policy. In round 1 a coordinate has some 40 informative pairs, for "
            "which the binomial law of its estimate is 10 % above Fisher information. The floor is the leading order "
            "in 1 / n: at n = 179 means stay 20 % above it, at 1,063 3 %. At theta_init 1 most informative pairs "
            "differ in several coordinates, which the law ignores."
        )
        table = Table("Error per round, times its labels", columns, tuple(rows), note)
        return StudyResult(tables=(table,), charts=charts)


@dataclasses.dataclass(frozen=True)
class Offline:
    """Errors of offline and on-policy DPO at equal labels, over theta_init and in the gaussian geometry."""

    inits: tuple[float, ...] = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)  # values of theta_init at which learning starts
    rounds: int = 6  # number of rounds of on-policy DPO
    gaussian_labels: int = 2000  # labels per round in the gaussian geometry
    gaussian_runs: int = 4  # factor by which it has more runs, since its ratio is close to 1

    def run(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Train both with equally many labels."""
        errors: dict[str, list[np.ndarray]] = {OFFLINE: [], ON_POLICY: []}
        theory: dict[str, list[float]] = {OFFLINE: [], ON_POLICY: []}
        ratios, rows = [], []
        gaussian = lab.at(geometry="gaussian", num_responses=16)
        places = [(f"{init:g}", lab.at(theta_init=init)) for init in self.inits]
        for name, there in [*places, ("gaussian", gaussian)]:
            oracle = there.oracle
            ratio_of = offline_ratio(seeds, rounds=self.rounds)
            if there is gaussian:
                ratio_of = dataclasses.replace(
                    ratio_of, seeds=self.gaussian_runs * seeds, labels=lambda _: self.gaussian_labels
                )
            total = ratio_of.labels(oracle) * self.rounds
            pooled, moving = (total * errors_of for errors_of in ratio_of.values(there, seed))
            expected = oracle.offline_variance(1), self.rounds * oracle.floor(1)
            ratio = ratio_of_means(pooled, moving)
            coverage = oracle.evaluate(oracle.initial_policy, ["coverage"])["coverage"]
            own = (expected[0], mean_interval(pooled), expected[1], mean_interval(moving))
            rows.append((name, coverage, total, *own, expected[0] / expected[1], ratio))
            if there is not gaussian:
                ratios.append(ratio)
                for group, own_errors, value in zip(errors, (pooled, moving), expected, strict=True):
                    errors[group].append(own_errors)
                    theory[group].append(value)
        series: list[Series] = []
        for group, samples in errors.items():
            series.append(measured(group, self.inits, np.stack(samples, axis=1)))
            series.append(Series(group, "predicted", self.inits, theory[group]))
        x = Axis("theta_init, in every coordinate", ticks=(1, 2, 3, 4))
        value, low, high = np.array(ratios).T
        line = np.divide(theory[OFFLINE], theory[ON_POLICY])
        about = "Below 1 pooled offline labels are better."
        both = (
            Series("ratio", "measured", self.inits, value, low, high),
            Series("ratio", "predicted", self.inits, line),
        )
        charts = (
            Chart("Error times all labels", x, Axis("labels x error", "log"), tuple(series)),
            Chart("Error of offline over error of on-policy", x, Axis("ratio of mean errors", "log"), both, about),
        )
        kinds = [f"{what}, {how}" for what in (OFFLINE, ON_POLICY, "ratio") for how in ("theory", "runs")]
        heads = ("C", "labels", *kinds)
        formats = (".1f", ",d", ",.1f", ",.1f", ".1f", ".1f", ".3f", ".3f")
        columns = (Column("theta_init"), *map(Column, heads, formats))
        share = gaussian.oracle.offline_variance(1) / gaussian.oracle.floor(1)
        note = (
            "Errors ||theta - theta*||^2 in the Sigma* norm, times all labels, with 99.7 % intervals. Offline "
            f"pools them; on-policy, in {self.rounds} rounds, uses only the last round, whose n is small at "
            "theta_init 1: there the next order in 1 / n adds 20 %. In the gaussian geometry C is mild, and the "
            f"variance of offline labels is {share:.1f} times the floor, less than the number of rounds: offline wins "
            f"({self.gaussian_runs} times as many runs)."
        )
        table = Table("Errors at equal labels", columns, tuple(rows), note)
        return StudyResult(tables=(table,), charts=charts, groups=GROUPS)


@dataclasses.dataclass(frozen=True)
class PhaseTransition:
    """The probability of good coverage against the batch size: after one round, and after more with either ridge."""

    inits: tuple[float, ...] = (2.0, 3.0, 4.0)  # values of theta_init at which learning starts
    delta: float = 0.1  # labels per round are given in units of n*(delta)
    level: float = 2.0  # largest coverage that counts as improved
    #: labels per round over n* at which runs are measured
    shares: tuple[float, ...] = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5)
    #: labels per round over n* at which theory is drawn
    drawn: tuple[float, ...] = tuple(sorted({0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, *np.geomspace(0.1, 2, 40).tolist()}))
    ridge_rounds: int = 4  # number of rounds after which the two ridges are compared
    ridge_init: float = 3.0  # theta_init of that comparison
    ridge_shares: tuple[float, ...] = (0.1, 0.35, 0.5, 0.75, 1.0)  # labels per round over n* of that comparison

    def run(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Train at each batch size; compare the ridges."""
        series: list[Series] = []
        rows: list[tuple[Cell, ...]] = []
        for init in self.inits:
            there, name = lab.at(theta_init=init), f"theta_init {init:g}"
            found = np.array([self._improved(there, share, seed, seeds) for share in self.shares])
            series.append(Series(name, "measured", self.shares, *found.T))
            laws: Transition = there.oracle.transition
            law = [laws.improvement_probability(self._labels(laws, share), self.level) for share in self.drawn]
            series.append(Series(name, "predicted", self.drawn, law))
            for share, own in zip(self.shares, found, strict=True):
                n = self._labels(laws, share)
                theory = laws.improvement_probability(n, self.level), 1 - laws.separation_probability(n)
                rows.append((name if share == self.shares[0] else "", share, n, theory[0], Interval(*own), theory[1]))
        ridges, later, notes = self._ridges(lab.at(theta_init=self.ridge_init), seed, seeds)
        x = Axis(f"labels n of a round over the threshold n*({self.delta:g})", "log", ticks=(0.1, 0.2, 0.5, 1, 2))
        title = f"Runs with coverage C <= {self.level:g} after one round"
        y = Axis("share of runs", range=(-0.03, 1.03))
        later_title = f"After {self.ridge_rounds} rounds, theta_init {self.ridge_init:g}: two ridges"
        marks: dict[str, Any] = {"points": "share of runs", "bars": "exact 99.7 % intervals"}
        charts = (
            Chart(title, x, y, tuple(series), "The three laws coincide on this axis.", **marks),
            Chart(later_title, x, y, tuple(ridges), **marks),
        )
        heads = (("n / n*", "g"), ("n", ",d"), ("law", ".3f"), ("runs", ".3f"), ("no coordinate separated", ".3f"))
        note = (
            f"n* is n*({self.delta:g}), with which at most a fraction {self.delta:g} of runs has a separated "
            "coordinate. The law treats a pair as informative about one coordinate only; at theta_init 2 one "
            "informative pair in six differs in another coordinate as well. Good coverage is rarer than the absence "
            "of separation: a coordinate with 9 wins in 10 pairs is not separated, yet its C is 2.6."
        )
        table = Table(title, (Column("start"), *(Column(*head) for head in heads)), tuple(rows), note)
        return StudyResult(tables=(table, later), charts=charts, notes=notes)

    def _improved(self, lab: Lab, share: float, seed: int, seeds: int, **options: Any) -> Interval:
        """Return the share of runs whose coverage is good after the last round, with its interval."""
        n = self._labels(lab.oracle.transition, share)
        return share_interval(final_values(lab, "dpo-on-policy", seed, seeds, n, "coverage", **options) <= self.level)

    def _labels(self, laws: Transition, share: float) -> int:
        return math.ceil(share * laws.batch_threshold(self.delta))

    def _ridges(self, lab: Lab, seed: int, seeds: int) -> tuple[list[Series], Table, tuple[str, ...]]:
        """Compare ridges to theta_t and to the reference after `ridge_rounds` rounds."""
        found = {
            ridge: np.array(
                [
                    self._improved(lab, s, seed, seeds, rounds=self.ridge_rounds, ridge_to=ridge)
                    for s in self.ridge_shares
                ]
            )
            for ridge in ("current", "reference")
        }
        names = {"current": "ridge to theta_t", "reference": "ridge to the reference"}
        series = [Series(names[ridge], "measured", self.ridge_shares, *values.T) for ridge, values in found.items()]
        laws: Transition = lab.oracle.transition
        law = [1 - laws.separation_probability(self._labels(laws, share)) for share in self.drawn]
        series.append(Series(names["current"], "predicted", self.drawn, law))
        theory = [1 - laws.separation_probability(self._labels(laws, share)) for share in self.ridge_shares]
        cells = [[Interval(*own) for own in found[ridge]] for ridge in names]
        heads = (("n / n*", "g"), ("no coordinate separated", ".3f"), *((name, ".3f") for name in names.values()))
        title = f"Runs with C <= {self.level:g} after {self.ridge_rounds} rounds, theta_init {self.ridge_init:g}"
        table = Table(
            title, tuple(Column(*head) for head in heads), tuple(zip(self.ridge_shares, theory, *cells, strict=True))
        )
        worst = float(found["reference"][:, 0].min())
        note = (
            "With a ridge to the reference a coordinate without information returns to 0 and is explored again, "
            f"for any batch size: after {self.ridge_rounds} rounds at least {worst:.2f} of the runs have good coverage "
            "at every n in the table."
        )
        return series, table, (note,)


STUDIES: tuple[Study, ...] = (
    Study(
        id="preference-rounds",
        source="arXiv 2601.08421, convergence above the batch threshold",
        title="Error and coverage per round of on-policy DPO",
        text="One round above the batch threshold reduces C from hundreds to about 1; from the third round on the "
        "error is at the floor of the optimum's own pairs, from any initial policy.",
        run=Rounds().run,
        seeds=50,
    ),
    Study(
        id="preference-offline",
        source="arXiv 2601.08421, separation of offline and on-policy learning",
        title="Offline against on-policy DPO at equal labels, over theta_init",
        text="The error of pooled offline labels grows with cosh^2(theta_init); that of on-policy labels does not. "
        "Where C is small, pooling wins.",
        run=Offline().run,
        seeds=50,
    ),
    Study(
        id="preference-transition",
        source="arXiv 2601.08421, coverage improvement",
        title="The phase transition in the batch size",
        text="Coverage improves in one round from about n* labels on, and hardly ever far below: the estimate of a "
        "coordinate whose informative pairs all agree diverges and never returns.",
        run=PhaseTransition().run,
        seeds=200,
    ),
    Study(
        id="preference-separation",
        source="arXiv 2601.08421, separation of offline, on-policy and hybrid learning",
        title="Total labels to an error, over the coverage of the initial policy",
        text="For large C the labels of offline learning grow as C / eps and those of on-policy learning as C; the "
        "hybrid's designed pairs need the same number for every C. For C near 1 offline learning needs the fewest.",
        run=Separation().run,
        seeds=20,
    ),
)
