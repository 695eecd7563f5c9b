"""The separation figure of PreferenceBandit: labels that learners need, over the coverage of their initial policy.

For an error eps, in the Sigma_pi* norm squared, theory predicts:

- offline: tr(Sigma* I(pi_init)^-1) / eps labels, about 12 cosh^2(theta_init) / eps;
- on-policy: `rounds` times max(n*, floor / eps): a first batch above the threshold n* and a last one at the floor. A
  separated coordinate ends near |theta_i| = 7, where the ridge balances the m pairs that agree:
  2 m e^(-2 |theta_i|) = 1e-6 |theta_i - theta_init| for beta = 1. That is an error of 30 to 55, so the mean over R
  runs is small only if no run has a separated coordinate. n* is the batch at which this has probability 1/2, that is
  P(separated) is about ln 2 / R;
- hybrid: two rounds of tr(Sigma* I_hyb^-1) / eps, for any theta_init.

Source: arXiv 2601.08421.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import Interval
from theorybench.envs.core.evidence.lab import Lab
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, StudyResult, Table
from theorybench.envs.preference.bandit.experiments import final_values
from theorybench.envs.preference.bandit.oracle import PreferenceBanditOracle

#: Ratio of neighbouring budgets.
STEP = math.sqrt(2)
#: Number of bootstrap samples of the runs, and one minus the confidence level, that of three standard errors.
RESAMPLINGS, OUTSIDE = 2000, 0.0027


@dataclasses.dataclass(frozen=True)
class Learner:
    """An agent, and the number of labels per round that it needs in theory."""

    agent: str  # registered name
    rounds: int  # rounds of equal size
    #: (oracle, eps, runs whose mean error must fall below eps) -> labels per round
    batch: Callable[[PreferenceBanditOracle, float, int], float]
    #: (oracle, eps, runs) -> factor by which the true budget may exceed the first budget that passes
    luck: Callable[[PreferenceBanditOracle, float, int], float] = lambda oracle, error, seeds: 1.0

    def predicted(self, oracle: PreferenceBanditOracle, error: float, seeds: int) -> float:
        """Return the total number of labels at which theory's mean error of `seeds` runs falls below `error`."""
        return self.rounds * self.batch(oracle, error, seeds)

    def measure(self, lab: Lab, error: float, seed: int, seeds: int) -> Interval:
        """Find the total number of labels at which the mean error of `seeds` runs falls below `error`.

        Budgets grow by factors of `STEP`. The search begins near theory's budget, goes down to one that fails and from
        there up to the first that passes; the crossing is interpolated between these two, linearly in logarithms.

        Returns:
            The crossing and its bootstrap interval over runs, which covers at least the range from the budget that
            fails to the one that passes, times `luck`.
        """
        found: dict[int, np.ndarray] = {}

        def fails(step: int) -> bool:
            if step not in found:
                found[step] = self.errors(lab, _labels(step), seed, seeds)
            return bool(found[step].mean() >= error)

        step = round(math.log(self.predicted(lab.oracle, error, seeds) / self.rounds, STEP)) - 1
        while step > 0 and not fails(step):
            step -= 1
        while fails(step):
            step += 1
        tried = [place for place in sorted(found) if place <= step]
        labels = np.array([self.rounds * _labels(place) for place in tried], np.float64)
        errors = np.stack([found[place] for place in tried])
        drawn = np.random.default_rng([seed, 1]).integers(seeds, size=(RESAMPLINGS, seeds))
        again = [crossing(labels, means, error) for means in errors[:, drawn].mean(axis=2).T]
        low, high = np.quantile(again, [OUTSIDE / 2, 1 - OUTSIDE / 2])
        value = crossing(labels, errors.mean(axis=1), error)
        luck = self.luck(lab.oracle, error, seeds)
        return Interval(value, float(min(low, *labels[-2:])), float(max(high, luck * labels[-1])))

    def errors(self, lab: Lab, labels: int, seed: int, seeds: int) -> np.ndarray:
        """Train with this number of labels per round; return the errors of the runs at their end, (seeds,)."""
        return final_values(lab, self.agent, seed, seeds, labels, "error", rounds=self.rounds)


def _labels(step: int) -> int:
    return max(1, round(STEP**step))


def crossing(labels: np.ndarray, errors: np.ndarray, level: float) -> float:
    """Return the labels at which errors first fall below a level.

    Points are interpolated linearly in logarithms. Beyond the ends errors fall as 1 / labels, for at most one `STEP`.

    Args:
        labels: increasing, (n,).
        errors: positive, (n,).
        level: positive.
    """
    x, y = np.log(labels), np.log(errors / level)
    right = int(np.argmax(y < 0)) if (y < 0).any() else len(y)
    if 0 < right < len(y):
        share = y[right - 1] / (y[right - 1] - y[right])
        return math.exp(x[right - 1] + share * (x[right] - x[right - 1]))
    end, most = (0 if right == 0 else -1), math.log(STEP)
    return math.exp(x[end] + min(max(y[end], -most), most))


def _threshold_or_floor(oracle: PreferenceBanditOracle, error: float, seeds: int) -> float:
    return max(oracle.transition.batch_threshold(math.log(2) / seeds), oracle.floor(error))


def _luck(oracle: PreferenceBanditOracle, error: float, seeds: int) -> float:
    """Return the factor for runs in which no separation happened although it could have.

    A budget passes with probability `OUTSIDE` / 2 where P(separated) is as large as (1 - P)^R allows.
    """
    passes, likely = oracle.transition.batch_threshold(1 - (OUTSIDE / 2) ** (1 / seeds)), math.log(2) / seeds
    return max(1.0, oracle.transition.batch_threshold(likely) / max(passes, oracle.floor(error)))


GROUPS = OFFLINE, ON_POLICY, HYBRID = "offline", "on-policy", "hybrid"
LEARNERS = {
    OFFLINE: Learner("dpo-offline", 1, lambda oracle, error, seeds: oracle.offline_variance(error)),
    ON_POLICY: Learner("dpo-on-policy", 3, _threshold_or_floor, _luck),
    HYBRID: Learner("dpo-hybrid", 2, lambda oracle, error, seeds: oracle.hybrid_floor(error)),
}


def _start(oracle: PreferenceBanditOracle) -> float:
    return oracle.evaluate(oracle.initial_policy, ["coverage"])["coverage"]


@dataclasses.dataclass(frozen=True)
class Separation:
    """The labels that each learner needs, over the coverage of its initial policy."""

    error: float = 0.02  # the error to reach
    limit: int = 500_000  # largest number of labels of a run
    #: values of theta_init at which labels are measured
    inits: tuple[float, ...] = (0.3, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 6.5)
    #: values of theta_init at which theory is drawn
    drawn: tuple[float, ...] = tuple(sorted({0.3, 6.5, *(i / 4 for i in range(2, 26))}))
    learners: Mapping[str, Learner] = dataclasses.field(default_factory=lambda: LEARNERS)  # the learners by name

    def run(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Measure the labels of each learner from each initial policy, where theory predicts at most the limit."""
        labs = {init: lab.at(theta_init=init) for init in self.drawn}
        starts = {init: _start(there.oracle) for init, there in labs.items()}
        theory = {
            (name, init): learner.predicted(there.oracle, self.error, seeds)
            for name, learner in self.learners.items()
            for init, there in labs.items()
        }
        counted = {
            (name, init): learner.measure(labs[init], self.error, seed, seeds)
            for name, learner in self.learners.items()
            for init in self.inits
            if theory[name, init] <= self.limit
            or learner.errors(labs[init], self.limit // learner.rounds, seed, seeds).mean() < self.error
        }
        series: list[Series] = []
        for name in self.learners:
            inits = [init for init in self.inits if (name, init) in counted]
            points = np.array([counted[name, init] for init in inits])
            series.append(Series(name, "measured", [starts[init] for init in inits], *points.T))
            series.append(Series(name, "predicted", list(starts.values()), [theory[name, init] for init in self.drawn]))
            above = [starts[init] for init in self.inits if init not in inits]
            series += [Series(name, "censored", above, [self.limit] * len(above))] if above else []
        rows = []
        for init in self.inits:
            row: list[Cell] = [init, starts[init]]
            for name in self.learners:
                own = counted.get((name, init))
                row += [theory[name, init], own if own else f"> {self.limit:,}"]
            rows.append(tuple(row))
        x = Axis("coverage C of the initial policy", "log", ticks=tuple(10.0**i for i in range(6)))
        y = Axis("labels of a run, in all", "log", ticks=tuple(10.0**i for i in range(3, 9)))
        title = f"Labels until the mean error is below {self.error:g}"
        labels = (Column(f"{name}, {text}", ",.0f") for name in self.learners for text in ("theory", "runs"))
        where = f"where the mean error of {seeds} runs crosses {self.error:g}"
        heads = (Column("theta_init", "g"), Column("C", ",.1f"), *labels)
        return StudyResult(
            tables=(Table(title, heads, tuple(rows), self._method(seeds)),),
            charts=(Chart(title, x, y, tuple(series), points=where, bars="bootstrap interval"),),
            notes=(
                *self._not_reached(starts, counted, seeds),
                *self._measured_readings(starts, counted),
                *self._readings(starts, theory),
            ),
            groups=GROUPS,
        )

    def _method(self, seeds: int) -> str:
        return (
            "Error is ||theta - theta*||^2 in the Sigma_pi* norm. Theory is the leading order in 1 / labels; for "
            f"on-policy three rounds of the floor's labels or of the threshold's, at which none of {seeds} runs has a "
            f"separation with probability 1/2. Runs: where the mean error of {seeds} runs crosses {self.error:g}, "
            f"between the last budget that fails and the first that passes; budgets grow by factors of {STEP:.2f}. "
            "Intervals contain both budgets and the 99.7 % bootstrap interval. On-policy's extend further upwards: "
            f"even a budget at which separations are likely passes, with none in {seeds} runs, once in 700 times."
        )

    def _not_reached(self, starts: dict[float, float], counted: dict[tuple[str, float], Any], seeds: int) -> list[str]:
        """Describe which points are bounds, and why."""
        notes = []
        for name in self.learners:
            missing = [starts[init] for init in self.inits if (name, init) not in counted]
            if missing:
                notes.append(
                    f"From C = {min(missing):,.0f} on {name} needs more than {self.limit:,} labels, as predicted: "
                    f"with this many the mean error of {seeds} runs is above {self.error:g}. How many more was not "
                    "measured."
                )
        return notes

    def _measured_readings(self, starts: dict[float, float], counted: dict[tuple[str, float], Any]) -> list[str]:
        """Describe the runs at the largest C at which every learner is measured."""
        shared = [init for init in self.inits if all((name, init) in counted for name in self.learners)]
        if not shared:
            return []
        *labels, hybrid = (counted[name, shared[-1]][0] for name in self.learners)
        ratios = " and ".join(f"{own / hybrid:,.0f} ({name})" for own, name in zip(labels, self.learners, strict=False))
        return [f"At C = {starts[shared[-1]]:,.0f} runs need {ratios} times the labels of the hybrid."]

    def _readings(self, starts: dict[float, float], theory: dict[tuple[str, float], float]) -> list[str]:
        """Describe the theoretical lines at their two ends."""

        def against(name: str, init: float, digits: int) -> str:
            ratios = [(theory[other, init] / theory[name, init], other) for other in self.learners if other != name]
            several = " and ".join(f"{ratio:,.{digits}f} ({other})" for ratio, other in ratios)
            return f"At C = {starts[init]:,.0f} theory's labels over those of {name} are {several}"

        return [
            f"{against(OFFLINE, self.inits[0], 2)}: offline fits all its labels, the others those of the last round.",
            f"{against(HYBRID, self.inits[-1], 0)}.",
        ]
