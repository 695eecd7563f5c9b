"""What theory says of relative budgets, as tests that run.

Predictions come from the negative binomial law of T and from exact gradients. Measurements step the setting's own
dynamics or train agents; intervals are three standard errors wide on each side.
"""

from typing import Any

from theorybench.envs.core.evidence.claim import Claim
from theorybench.envs.curriculum.relative_budget.samples import BestStep, LeastSize, SizeRatio, Tilted
from theorybench.envs.curriculum.relative_budget.steps import LearntTilt, ScoreRatio, TableStep


def _claim(
    id: str, source: str, statement: str, falsified_by: str, study: Any, formula: str, tolerance: float, **setting: Any
) -> Claim:
    return Claim(
        id=f"relative-budget-{id}",
        source=f"arXiv 2602.01523, {source}",
        statement=statement,
        predicted=study.predicted,
        measure=study.measure,
        tolerance=tolerance,
        falsified_by=falsified_by,
        formula=formula,
        parameters=setting,
    )


_TEN: dict[str, Any] = {"A": 10, "p": 0.1}
_FIVE: dict[str, Any] = {"A": 5, "p": 0.2}
_LATTICE = "since the tail moves by a whole token where an estimate does"

CLAIMS: tuple[Claim, ...] = (
    _claim(
        "deficient",
        f"sample size; tolerance: 2, {_LATTICE}",
        "At xi = .3 one step needs many times the samples that it needs at 1.5",
        "a reward that does not count tokens, or a base model that does not begin anew at each sub-step",
        SizeRatio(0.3, 1.5, (4, 1)),
        "n(.3) / n(1.5), n = 1 / (sqrt(kappa) sd(R) P[R >= E R + sqrt(kappa) sd(R)]), kappa = 1/4",
        2.0,
        **_TEN,
    ),
    _claim(
        "balanced",
        f"sample size; tolerance: .02, {_LATTICE}",
        "The samples that one step needs are fewest at a relative budget of about 1.5",
        "a reward that does not count tokens",
        LeastSize(),
        "where a parabola through ln n over ln xi turns, at five budgets from .8 to 2.8",
        0.02,
        **_TEN,
    ),
    _claim(
        "ample",
        f"sample size; tolerance: .02, {_LATTICE}",
        "In ample budgets the samples that one step needs grow in proportion to xi",
        "a reward that does not count tokens",
        SizeRatio(16.0, 8.0),
        "n(16) / n(8)",
        0.02,
        **_FIVE,
    ),
    _claim(
        "tilt",
        "tilts of the base model; tolerance: none beyond the interval",
        "Each tilt exp(-T/(2H)) of the base model's solutions adds almost 1/(2K) to the relative budget",
        "solutions that the horizon cuts off",
        Tilted(),
        "(1 - p) (1 - e^(-4 eta)) H / (4 K), eta = 1/(2H), in units of 1/(2K): the mean of four tilts",
        0.0,
        xi=1.0,
        **_TEN,
    ),
    _claim(
        "stationary",
        "tilts of the base model; tolerance: none beyond the interval",
        "The tilted solutions take the right action as often late as early: the policy is stationary",
        "solutions that the horizon cuts off",
        Tilted(stationary=True),
        "0: the chance late over the chance early, less 1",
        0.0,
        xi=1.0,
        **_TEN,
    ),
    _claim(
        "learnt-tilt",
        "tilts of the base model; tolerance: .002, for solutions beyond the horizon, 1 in 10^4, and rewards of stage 1",
        "A*-PO at temperature 2 learns one tilt, with a table on sub-steps",
        "another temperature, or a relative budget where the horizon cuts solutions off",
        LearntTilt(),
        "2 H (1 - p) (1 - e^(-1/(2H))), in units of 1/(2K)",
        0.002,
        xi=4.0,
        **_FIVE,
    ),
    _claim(
        "best-step",
        "one step; tolerance: .005, for the divergence is not infinitely small",
        "The best step at a small KL divergence kappa gains sqrt(2 kappa) sd(R)",
        "a step that sees less than the state, such as sub-steps alone",
        BestStep((0.5,), parts=30),
        "1, in units of sqrt(2 kappa) sd(R)",
        0.005,
        **_TEN,
    ),
    _claim(
        "best-step-peak",
        "one step; tolerance: .005, for the divergence is not infinitely small",
        "So it gains most where Var[R] peaks",
        "a reward that does not count tokens",
        BestStep((0.7, 1.0, 1.4, 2.0, 2.8)),
        "where a parabola through ln sd(R) over ln xi turns, at five budgets from .7 to 2.8",
        0.005,
        **_TEN,
    ),
    _claim(
        "table-step",
        "one step; tolerance: .01, since the noise of a batch adds to the divergence",
        "In deficient budgets a table on sub-steps gains less: it cannot tell early tokens from late ones",
        "an ample budget, or a step that is not along the gradient",
        TableStep(fixed=True),
        "|g|^2 / sqrt(g F g) of the expected gradient g, F Fisher's matrix, in units of sd(R)",
        0.01,
        xi=0.5,
        **_FIVE,
    ),
    _claim(
        "gradient",
        "one step; tolerance: .01, for the step is not infinitely small",
        "In ample budgets one step of REINFORCE gains Var[R] times the learning rate",
        "advantages that are standardised, or a deficient budget",
        TableStep(fixed=False),
        "1, in units of Var[R]",
        0.01,
        xi=4.0,
        **_FIVE,
    ),
    _claim(
        "rlvr-falls",
        "one step; tolerance: none beyond the interval",
        "So in ample budgets its score falls as 1/xi at the same learning rate",
        "advantages that are standardised",
        ScoreRatio("rlvr"),
        "1/2, xi = 8 in units of xi = 4",
        0.0,
        **_FIVE,
    ),
    _claim(
        "grpo-flat",
        "one step; tolerance: .01, for the step is not infinitely small",
        "GRPO divides by the group's standard deviation, and its score does not fall",
        "advantages that are not standardised",
        ScoreRatio("grpo"),
        "1, xi = 8 in units of xi = 4",
        0.01,
        **_FIVE,
    ),
)
