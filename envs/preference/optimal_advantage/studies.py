"""Figures about A*-PO's two stages on one prompt of OptimalAdvantage: sampled points over exact curves.

Theory is `optimal_value` and `advantage_regression` beside it; points are counted in
roll-outs of fixed policies, cut into as many parts as there are runs.
"""

from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import mean_interval
from theorybench.envs.core.evidence.lab import Lab
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.preference.optimal_advantage.experiments import (
    ONE_PROMPT,
    PROBES,
    on_path,
    parabola_vertex,
    sampled_variances,
)
from theorybench.envs.preference.optimal_advantage.optimal_value import estimate_moments, estimated_value, optimal_value
from theorybench.envs.preference.optimal_advantage.pass_studies import PASS_STUDY
from theorybench.envs.preference.optimal_advantage.regression import best_value, gradient_variance

#: Chances of the reference, each a whole number of 20 responses.
CHANCES = (0.05, 0.1, 0.25, 0.5)
#: Samples of stage 1: where points stand, where theory is drawn, and of the table.
SIZES, TABLE_SIZE = (1, 2, 4, 8, 16, 32, 64, 128), 8
DRAWN_SIZES = tuple(range(1, 17)) + tuple(range(18, 33, 2)) + tuple(range(36, 65, 4)) + tuple(range(72, 129, 8))
#: Temperatures of the table; the figure has the setting's own.
BETAS = (0.1, 0.5)
#: Responses of each run to each prompt: a multiple of the largest size.
RESPONSES = 2**16
#: Bias that counts as small.
SMALL = 0.05

#: Policies between the reference (0) and the optimum (1), by their tilt.
TILTS = (0.0, 0.25, 0.5, 0.75, 1.0)
DRAWN_TILTS = tuple(i / 40 for i in range(41))
#: V-hat at which points stand, and where theory is drawn.
VALUES = (0.0, 0.3, 0.6, 0.9, 1.2)
DRAWN_VALUES = tuple(i / 20 for i in range(25))
#: Responses from which each run measures variances.
PART = 2**14


def value_bias(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show bias and spread of V-hat against N, for several chances of the reference."""
    setting = lab.setting
    bias: list[Series] = []
    spread: list[Series] = []
    rows: list[tuple[Cell, ...]] = []
    notes = []
    for number, p in enumerate(CHANCES):
        there = lab.at(accuracy=p)
        key = _key(seed, number)
        played = there.simulate(there.oracle.reference_policy, seeds * RESPONSES, key)
        rewards, name = played.rewards.reshape(seeds, -1), f"p = {p:g}"
        exact = np.array([estimate_moments(p, n, setting.beta) for n in DRAWN_SIZES])
        exact[:, 0] -= optimal_value(p, setting.beta)
        counted = np.stack([_moments(rewards, n, setting.beta) for n in SIZES])
        counted[:, 0] -= optimal_value(p, setting.beta)
        for place, series in enumerate((bias, spread)):
            series.append(measured(name, SIZES, counted[:, place].T, style="simulated"))
            series.append(Series(name, "predicted", DRAWN_SIZES, exact[:, place].tolist()))
        rows += [_row(p, beta, rewards) for beta in BETAS]
        enough = next((n for n in range(1, 2**12) if _bias(p, n, setting.beta) > -SMALL), None)
        notes.append(f"At p = {p:g} and beta = {setting.beta:g} the bias is smaller than {SMALL:g} from N = {enough}.")
    samples = Axis("samples N of stage 1", "log", ticks=SIZES)
    charts = (
        Chart(f"Bias of V-hat, beta = {setting.beta:g}", samples, Axis("mean V-hat - V*"), tuple(bias)),
        Chart(f"Spread of V-hat, beta = {setting.beta:g}", samples, Axis("deviation of V-hat"), tuple(spread)),
    )
    return StudyResult(tables=(_value_table(rows),), charts=charts, notes=tuple(notes))


def _value_table(rows: list[tuple[Cell, ...]]) -> Table:
    heads = ("V*", "none right", "mean", "mean counted", "deviation", "deviation counted")
    columns = (Column("p", "g"), Column("beta", "g"), *(Column(head, ".4f") for head in heads))
    note = (
        "p is the chance that a response of the reference is right. None right: the chance (1 - p)^N that V-hat is 0. "
        "Numbers are theory's, unless counted in roll-outs."
    )
    return Table(f"V-hat from N = {TABLE_SIZE} samples", columns, tuple(rows), note)


def _row(p: float, beta: float, rewards: np.ndarray) -> tuple[Cell, ...]:
    mean, deviation = estimate_moments(p, TABLE_SIZE, beta)
    means, deviations = (mean_interval(counted) for counted in _moments(rewards, TABLE_SIZE, beta))
    value = float(optimal_value(p, beta))
    return (p, beta, value, (1 - p) ** TABLE_SIZE, mean, means, deviation, deviations)


def _moments(rewards: np.ndarray, samples: int, beta: float) -> np.ndarray:
    """Give mean and deviation of the runs' V-hat, rewards (runs, responses) cut into groups: float64 (2, runs)."""
    values = estimated_value(rewards.reshape(len(rewards), -1, samples), beta)
    return np.stack([values.mean(axis=1), values.std(axis=1, ddof=1)])


def _bias(p: float, samples: int, beta: float) -> float:
    return estimate_moments(p, samples, beta)[0] - float(optimal_value(p, beta))


def stage_two_variance(lab: Lab, seed: int, seeds: int) -> StudyResult:
    """Show the variance of the gradient of stage 2 against V-hat, from the reference to the optimum."""
    setting = lab.setting
    rewards, beta, unit = setting.tables.rewards, setting.beta, 4 * setting.beta**2
    star = float(optimal_value(setting.chances, beta)[0])
    likely = estimate_moments(float(setting.chances[0]), TABLE_SIZE, beta)[0]
    series: list[Series] = []
    rows: list[tuple[Cell, ...]] = []
    vertices, ends = [], []
    for number, tilt in enumerate(TILTS):
        probs, name = on_path(setting, tilt).table, _name(tilt)
        asked = np.concatenate([VALUES, PROBES])
        heights = sampled_variances(lab, tilt, asked, seeds * PART, _key(seed, number), parts=seeds)
        exact = [float(gradient_variance(rewards, probs, beta, value)[0]) / unit for value in DRAWN_VALUES]
        series.append(measured(name, VALUES, heights[:, : len(VALUES)] / unit, style="simulated"))
        series.append(Series(name, "predicted", DRAWN_VALUES, exact))
        vertices.append(parabola_vertex(heights[:, len(VALUES) :]))
        best = float(best_value(rewards, probs, beta)[0])
        at = [float(gradient_variance(rewards, probs, beta, value)[0]) / unit for value in (0.0, best, likely, star)]
        ends.append(at)
        success = float((probs * rewards).sum())
        rows.append((name, success, best, mean_interval(vertices[-1]), *at))
    curve = [float(best_value(rewards, on_path(setting, tilt).table, beta)[0]) for tilt in DRAWN_TILTS]
    moving = (
        measured("best V-hat", TILTS, np.array(vertices).T, style="simulated"),
        Series("best V-hat", "predicted", DRAWN_TILTS, curve),
    )
    about = f"p = {setting.chances[0]:g}, beta = {beta:g}, V* = {star:.3f}."
    path = Axis("tilt of the policy: 0 the reference, 1 the optimum")
    charts = (
        Chart(
            "Variance of the gradient of stage 2", Axis("V-hat"), Axis("variance / (2 beta)^2"), tuple(series), about
        ),
        Chart("The V-hat of least variance", path, Axis("best V-hat"), moving, f"From p at tilt 0 to V*: {about}"),
    )
    heads = ("P(right)", "best V-hat", "best counted", "at 0", "at best", f"at {likely:.3f}", f"at V* = {star:.3f}")
    note = (
        f"Variances in units of (2 beta)^2, theory's. {likely:.3f} is the mean of V-hat from N = {TABLE_SIZE} samples. "
        "A policy of tilt t is pi_ref e^(t r / beta) / Z."
    )
    table = Table("Which V-hat is best?", (Column("policy"), *(Column(h, ".4f") for h in heads)), tuple(rows), note)
    notes = (
        f"At the reference the best V-hat is p = {setting.chances[0]:.3f}, and V* gives {ends[0][-1] / ends[0][0]:.2f} "
        "times the variance of V-hat = 0.",
        f"At the optimum V* leaves no variance, and V-hat = 0 leaves {ends[-1][0]:.3f}.",
    )
    return StudyResult(tables=(table,), charts=charts, notes=notes)


def _name(tilt: float) -> str:
    return {0.0: "reference", 1.0: "optimum"}.get(tilt, f"tilt {tilt:g}")


def _key(seed: int, number: int) -> int:
    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0])


def _study(id: str, part: str, title: str, text: str, run: Any) -> Study:
    return Study(
        id=f"advantage-{id}",
        source=f"arXiv 2505.20686, {part}",
        title=title,
        text=text,
        run=run,
        parameters=ONE_PROMPT,
    )


STUDIES: tuple[Study, ...] = (
    _study(
        "v-hat-bias",
        "stage 1, ours",
        "V-hat of stage 1: bias and spread against the number of samples",
        "V-hat is the optimal value at the observed share of right responses. Where none of N responses is right it is "
        "0, so that it is biased low, and scatters as much, until N is several times 1 / p.",
        value_bias,
    ),
    _study(
        "gradient-variance",
        "stage 2, ours",
        "Variance of the gradient of stage 2 against V-hat, from the reference to the optimum",
        "The expected gradient does not depend on V-hat; its variance is a parabola in it. The best V-hat is p at the "
        "reference and V* at the optimum alone, where the parabola touches 0.",
        stage_two_variance,
    ),
    PASS_STUDY,
)
