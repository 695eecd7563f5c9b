"""Figures of arXiv 2601.08421 on PreferenceBandit: rounds, offline against on-policy, the transition, the separation.

All learning is exact, in the linear softmax class; theory is Fisher information and the binomial law of the oracle.
Batches that are meant to be above the threshold have n*(1e-5) labels, so that no run has a separated coordinate.
"""

import math
from collections.abc import Callable
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
from theorybench.envs.preference.bandit.separation import GROUPS, OFFLINE, ON_POLICY, separation
from theorybench.envs.preference.bandit.training import SAFE, courses, first_round_error

#: theta_init of the course of training, and its rounds.
INITS, ROUNDS = (1.0, 2.0, 3.0, 4.0), 5
#: theta_init of the comparison at equal labels, and its rounds.
OFFLINE_INITS, OFFLINE_ROUNDS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0), 6
#: Labels of a round in the gaussian geometry, and how many times as many runs it has: a small ratio needs them.
GAUSSIAN_LABELS, GAUSSIAN_RUNS = 2000, 4
#: theta_init of the transition, labels of a round over n*(DELTA), coverage that counts as improved.
TRANSITION_INITS, DELTA, LEVEL = (2.0, 3.0, 4.0), 0.1, 2.0
SHARES = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5)
DRAWN_SHARES = tuple(sorted({*SHARES, *np.geomspace(0.1, 2, 40).tolist()}))
#: Rounds after which the two ridges are compared, theta_init there, and labels of a round over n*(DELTA).
RIDGE_ROUNDS, RIDGE_INIT, RIDGE_SHARES = 4, 3.0, (0.1, 0.35, 0.5, 0.75, 1.0)
FLOOR = "floor"
_FIRST = "Dash at round 1: the binomial law of separate coordinates. Floor: tr(Sigma* I(pi*)^-1)."
_PARITY = "Below 1 pooled offline labels are better."


def rounds(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show error and coverage after each round of on-policy DPO."""
    places = range(ROUNDS + 1)
    error: list[Series] = []
    cover: list[Series] = []
    rows: list[tuple[Cell, ...]] = []
    floor = lab.oracle.floor(1)
    for init in INITS:
        there, name = lab.at(theta_init=init), f"theta_init {init:g}"
        n = math.ceil(there.oracle.batch_threshold(SAFE))
        metrics = ("error", "coverage")
        start = there.oracle.evaluate(there.oracle.initial_policy, metrics)
        runs = courses(there, "dpo-on-policy", seed, seeds, n, metrics, rounds=ROUNDS)
        first = np.broadcast_to([start[metric] for metric in metrics], (seeds, 1, len(metrics)))
        values = np.concatenate([first, runs], axis=1)
        error.append(measured(name, places, n * values[:, :, 0], style="band"))
        error.append(Series(name, "predicted", (1,), (first_round_error(there.oracle.transition, n),)))
        cover.append(measured(name, places, values[:, :, 1], style="band"))
        for t in places[1:]:
            theory = there.oracle.offline_variance(1) if t == 1 else floor if t >= 3 else None
            law = first_round_error(there.oracle.transition, n) if t == 1 else None
            sampler, after = values[:, t - 1, 1].mean() if t > 1 else start["coverage"], values[:, t, 1]
            labels = n if t == 1 else None
            own = _mean(n * values[:, t, 0]), sampler, _mean(after)
            rows.append((name if t == 1 else "", labels, t, theory, law, *own))
    error.append(Series(FLOOR, "predicted", places, [floor] * len(places)))
    cover.append(Series(FLOOR, "predicted", places, [1.0] * len(places)))
    x = Axis("round t", ticks=tuple(places))
    charts = (
        Chart("Error after round t, times its n labels", x, Axis("n x error", "log"), tuple(error), _FIRST),
        Chart("Coverage after round t", x, Axis("C(pi_t)", "log"), tuple(cover)),
    )
    heads = (("start", "d"), ("n", ",d"), ("round", "d"), ("Fisher", ".2f"), ("law", ".2f"), ("runs", ".2f"))
    columns = (*(Column(*head) for head in heads), Column("C that sampled", ".2f"), Column("C after", ".2f"))
    note = (
        "Error is ||theta_t - theta*||^2 in the Sigma* norm; means of runs with three standard errors. Fisher "
        f"information says tr(Sigma* I(pi_init)^-1) of round 1 and the floor {floor:.2f} of rounds 3 and later; round "
        "2 is sampled by each run's own policy. In round 1 a coordinate has some 40 informative pairs, where the "
        "binomial law of its estimate is a tenth above Fisher information. The floor is the leading order in 1 / n: "
        "at n = 179 means stay a fifth above it, at 1,063 3 %. At theta_init 1 most informative pairs differ in "
        "several coordinates, which the law does not know."
    )
    table = Table("Error per round, times its labels", columns, tuple(rows), note)
    return StudyResult(tables=(table,), charts=charts)


def offline(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show errors of offline and on-policy DPO at equal labels, over theta_init and in the gaussian geometry."""
    errors: dict[str, list[np.ndarray]] = {OFFLINE: [], ON_POLICY: []}
    theory: dict[str, list[float]] = {OFFLINE: [], ON_POLICY: []}
    ratios, rows = [], []
    gaussian = lab.at(geometry="gaussian", num_responses=16)
    places = [(f"{init:g}", lab.at(theta_init=init)) for init in OFFLINE_INITS]
    for name, there in [*places, ("gaussian", gaussian)]:
        oracle = there.oracle
        n = GAUSSIAN_LABELS if there is gaussian else math.ceil(oracle.batch_threshold(SAFE))
        runs = GAUSSIAN_RUNS * seeds if there is gaussian else seeds
        total = n * OFFLINE_ROUNDS
        pooled = total * courses(there, "dpo-offline", seed, runs, total, ["error"])[:, -1, 0]
        moving = total * courses(there, "dpo-on-policy", seed, runs, n, ["error"], rounds=OFFLINE_ROUNDS)[:, -1, 0]
        expected = oracle.offline_variance(1), OFFLINE_ROUNDS * oracle.floor(1)
        ratio = ratio_of_means(pooled, moving)
        coverage = oracle.evaluate(oracle.initial_policy, ["coverage"])["coverage"]
        own = (expected[0], _mean(pooled), expected[1], _mean(moving))
        rows.append((name, coverage, total, *own, expected[0] / expected[1], Interval(*ratio)))
        if there is not gaussian:
            ratios.append(ratio)
            for group, own_errors, value in zip(errors, (pooled, moving), expected, strict=True):
                errors[group].append(own_errors)
                theory[group].append(value)
    series: list[Series] = []
    for group, samples in errors.items():
        series.append(measured(group, OFFLINE_INITS, np.stack(samples, axis=1)))
        series.append(Series(group, "predicted", OFFLINE_INITS, theory[group]))
    x = Axis("theta_init, in every coordinate", ticks=(1, 2, 3, 4))
    value, low, high = np.array(ratios).T
    line = np.divide(theory[OFFLINE], theory[ON_POLICY])
    both = (
        Series("ratio", "measured", OFFLINE_INITS, value, low, high),
        Series("ratio", "predicted", OFFLINE_INITS, line),
    )
    charts = (
        Chart("Error times all labels", x, Axis("labels x error", "log"), tuple(series)),
        Chart("Error of offline over error of on-policy", x, Axis("ratio of mean errors", "log"), both, _PARITY),
    )
    kinds = [f"{what}, {how}" for what in (OFFLINE, ON_POLICY, "ratio") for how in ("theory", "runs")]
    heads = ("C", "labels", *kinds)
    formats = (".1f", ",d", ",.1f", ",.1f", ".1f", ".1f", ".3f", ".3f")
    columns = (Column("theta_init"), *map(Column, heads, formats))
    share = gaussian.oracle.offline_variance(1) / gaussian.oracle.floor(1)
    note = (
        "Errors ||theta - theta*||^2 in the Sigma* norm, times all labels, with three standard errors. Offline pools "
        f"them; on-policy, in {OFFLINE_ROUNDS} rounds, keeps the last round alone, whose n is small at theta_init 1: "
        "there the next order in 1 / n adds a fifth. In the gaussian geometry C is mild, and the variance of offline "
        f"labels is {share:.1f} times the floor, less than the number of rounds: offline wins ({GAUSSIAN_RUNS} times "
        "as many runs)."
    )
    table = Table("Errors at equal labels", columns, tuple(rows), note)
    return StudyResult(tables=(table,), charts=charts, groups=GROUPS)


def transition(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show the chance of good coverage against the batch size: after one round, and after more with either ridge."""
    series: list[Series] = []
    rows: list[tuple[Cell, ...]] = []
    for init in TRANSITION_INITS:
        there, name = lab.at(theta_init=init), f"theta_init {init:g}"
        found = np.array([_improved(there, share, seed, seeds) for share in SHARES])
        series.append(Series(name, "measured", SHARES, *found.T))
        law = [there.oracle.improvement_probability(_labels(there, share), LEVEL) for share in DRAWN_SHARES]
        series.append(Series(name, "predicted", DRAWN_SHARES, law))
        for share, own in zip(SHARES, found, strict=True):
            n = _labels(there, share)
            theory = there.oracle.improvement_probability(n, LEVEL), 1 - there.oracle.separation_probability(n)
            rows.append((name if share == SHARES[0] else "", share, n, theory[0], Interval(*own), theory[1]))
    ridges, later, notes = _ridges(lab.at(theta_init=RIDGE_INIT), seed, seeds)
    x = Axis(f"labels n of a round over the threshold n*({DELTA:g})", "log", ticks=(0.1, 0.2, 0.5, 1, 2))
    title = f"Runs with coverage C <= {LEVEL:g} after one round"
    y = Axis("share of runs", range=(-0.03, 1.03))
    marks: dict[str, Any] = {"points": "share of runs", "bars": "Wilson interval of three standard errors"}
    charts = (
        Chart(title, x, y, tuple(series), "The three laws coincide on this axis.", **marks),
        Chart(f"After {RIDGE_ROUNDS} rounds, theta_init {RIDGE_INIT:g}: two ridges", x, y, tuple(ridges), **marks),
    )
    heads = (("n / n*", "g"), ("n", ",d"), ("law", ".3f"), ("runs", ".3f"), ("no coordinate separated", ".3f"))
    note = (
        f"n* is n*({DELTA:g}), with which some coordinate is separated in a share of at most {DELTA:g} of the runs. "
        "The law takes a pair as informative about one coordinate alone; at theta_init 2 one informative pair in six "
        "differs in another coordinate as well. Good coverage is rarer than the absence of separation: a coordinate "
        "with 9 wins in 10 pairs is not separated, yet its C is 2.6."
    )
    table = Table(title, (Column("start"), *(Column(*head) for head in heads)), tuple(rows), note)
    return StudyResult(tables=(table, later), charts=charts, notes=notes)


def _improved(lab: Lab, share: float, seed: int, seeds: int, **options: Any) -> Interval:
    """Count runs whose coverage is good after the last round, with their interval."""
    runs = courses(lab, "dpo-on-policy", seed, seeds, _labels(lab, share), ["coverage"], **options)
    return share_interval(runs[:, -1, 0] <= LEVEL)


def _labels(lab: Lab, share: float) -> int:
    return math.ceil(share * lab.oracle.batch_threshold(DELTA))


def _ridges(lab: Lab, seed: int, seeds: int) -> tuple[list[Series], Table, tuple[str, ...]]:
    """Compare ridges to theta_t and to the reference after some rounds."""
    found = {
        ridge: np.array([_improved(lab, s, seed, seeds, rounds=RIDGE_ROUNDS, ridge_to=ridge) for s in RIDGE_SHARES])
        for ridge in ("current", "reference")
    }
    names = {"current": "ridge to theta_t", "reference": "ridge to the reference"}
    series = [Series(names[ridge], "measured", RIDGE_SHARES, *values.T) for ridge, values in found.items()]
    law = [1 - lab.oracle.separation_probability(_labels(lab, share)) for share in DRAWN_SHARES]
    series.append(Series(names["current"], "predicted", DRAWN_SHARES, law))
    theory = [1 - lab.oracle.separation_probability(_labels(lab, share)) for share in RIDGE_SHARES]
    cells = [[Interval(*own) for own in found[ridge]] for ridge in names]
    heads = (("n / n*", "g"), ("no coordinate separated", ".3f"), *((name, ".3f") for name in names.values()))
    title = f"Runs with C <= {LEVEL:g} after {RIDGE_ROUNDS} rounds, theta_init {RIDGE_INIT:g}"
    table = Table(title, tuple(Column(*head) for head in heads), tuple(zip(RIDGE_SHARES, theory, *cells, strict=True)))
    worst = float(found["reference"][:, 0].min())
    note = (
        "With a ridge to the reference a coordinate without information returns to 0 and is explored again, whatever "
        f"the batch: after {RIDGE_ROUNDS} rounds at least {worst:.2f} of the runs have good coverage at every n here."
    )
    return series, table, (note,)


def _mean(samples: np.ndarray) -> Interval:
    return mean_interval(samples)


def _study(id: str, part: str, title: str, text: str, run: Callable[[Lab, int, int], StudyResult], seeds: int) -> Study:
    return Study(
        id=f"preference-{id}", source=f"arXiv 2601.08421, {part}", title=title, text=text, run=run, seeds=seeds
    )


STUDIES: tuple[Study, ...] = (
    _study(
        "rounds",
        "convergence above the batch threshold",
        "Error and coverage per round of on-policy DPO",
        "One round above the batch threshold brings coverage from hundreds to about 1; from the third round on the "
        "error is at the floor of the optimum's own pairs, wherever learning started.",
        rounds,
        50,
    ),
    _study(
        "offline",
        "separation of offline and on-policy learning",
        "Offline against on-policy DPO at equal labels, over theta_init",
        "The error of pooled labels grows with cosh^2(theta_init); that of moving labels does not. Where coverage is "
        "mild, pooling wins.",
        offline,
        50,
    ),
    _study(
        "transition",
        "coverage improvement",
        "The phase transition in the batch size",
        "Coverage improves in one round from about n* labels on, and hardly ever far below: a coordinate whose "
        "informative pairs all agree runs away, and never returns.",
        transition,
        200,
    ),
    _study(
        "separation",
        "separation of offline, on-policy and hybrid learning",
        "Total labels to an error, over the coverage of the initial policy",
        "From large C offline labels grow as C / eps and on-policy labels as C; the hybrid's designed pairs cost the "
        "same from everywhere. At C near 1 offline is cheapest.",
        separation,
        20,
    ),
)
