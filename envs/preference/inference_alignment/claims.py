"""Statements of arXiv 2602.01603 about InferenceAlignment, as executable claims."""

import dataclasses
import functools
from typing import Any

from theorybench.envs.core.evidence.claim import Claim, ClaimMaker
from theorybench.envs.core.evidence.experiments import Computed, TrainedMetric, metric_of
from theorybench.envs.preference.inference_alignment.experiments import (
    SampledGain,
    difference_of_learners,
    error_rate,
    left_after_one_step,
    share_below_bound,
    sharpest_bend,
)
from theorybench.envs.preference.inference_alignment.law import (
    distance_from_closed_form,
    grid_slope,
    mass_at_middle,
    u_shaped_share,
)

#: Large batches, so that noise does not move the policy's ends.
LARGE: dict[str, Any] = {"episodes_per_update": 256, "group_size": 256}
#: The same learner in its plain form, and GRPO.
_ALIKE: Any = (("nonlinear-grpo", {"penalty": "k3", "group_size": 8}), ("grpo", {}))

_COLLAPSE = "best-of-1 is plain alignment"
_PROX = "convergence of non-linear GRPO"
_OPPOSED = "inference-aware and naive alignment differ, two opposed criteria"
_WRONG_POWER = "a = 1 / N in place of 1 / (N - 1)"

claim = ClaimMaker("inference", "arXiv 2602.01603")
#: No KL term, and a uniform reference: opposed criteria of equal weight have a closed form.
free = dataclasses.replace(claim, parameters={"beta": 0.0, "tilt": 0.0}, words={"source": _OPPOSED})
sampled = dataclasses.replace(
    free,
    words={
        "source": f"{_OPPOSED}; measured by sampling best-of-4",
        "falsified_by": "best of 3 in place of 4, or responses of another policy",
    },
)
#: What the claims about learners, without and with a KL term, have in common.
_NOISE = {"tolerance_reason": "a tenth of J* - J_ref, noise of finite batches and steps"}
free_learner = dataclasses.replace(free, words={"source": _OPPOSED, "tolerance": 0.002, **_NOISE})
kl_learner = dataclasses.replace(claim, words={"source": "objective with KL term", "tolerance": 0.0045, **_NOISE})


def _learnt(agent: str, end: str, **hyperparameters: Any) -> TrainedMetric:
    """Compare the objective that an agent reaches with that of a policy of the oracle."""
    return TrainedMetric(
        agent=agent,
        metric="objective",
        prediction=lambda oracle: metric_of(oracle, getattr(oracle, end), "objective"),
        budget=40_000,
        seeds=8,
        hyperparameters=hyperparameters,
    )


CLAIMS: tuple[Claim, ...] = (
    claim(
        "one-step",
        Computed(value=left_after_one_step, prediction=lambda oracle: 0.0),
        source=_COLLAPSE,
        statement="With N = 1 one exact prox step without proximity (L = 0) reaches the optimum",
        falsified_by="N = 2, where the first variation depends on the policy",
        formula="0 of J* - J_ref is left",
        tolerance=1e-9,
        tolerance_reason="rounding",
        parameters={"samples": 1},
    ),
    claim(
        "plain",
        Computed(value=functools.partial(difference_of_learners, learners=_ALIKE), prediction=lambda oracle: 0.0),
        source=_COLLAPSE,
        statement="With N = 1 non-linear GRPO trains the same policies as GRPO",
        falsified_by="N = 4 in the learner",
        formula="0",
        tolerance=1e-6,
        tolerance_reason="rewards are rounded to 36 bits",
        parameters={"samples": 1},
    ),
    claim(
        "smoothness",
        Computed(value=sharpest_bend, prediction=lambda oracle: oracle.smoothness),
        source=f"{_PROX}, constant L",
        statement="Best-of-4 of a binary criterion is L-smooth relative to KL with L = 1.2656, and with no smaller "
        "constant",
        falsified_by="L without the factor N - 1",
        formula="L = (N - 1) (1 - 1/N)^(N - 1)",
        tolerance=1e-4,
        tolerance_reason="second differences",
        parameters={"num_points": 2, "num_criteria": 1, "tilt": 2.0},
    ),
    claim(
        "prox-bound",
        Computed(value=share_below_bound, prediction=lambda oracle: 1.0),
        source=_PROX,
        statement="Exact prox steps are never farther from J* than the theorem's bound, in 60 random settings with 60 "
        "steps each (another claim tests that L is the best constant)",
        falsified_by="L four times too small, in steps and bound",
        formula="J* - J <= beta KL(pi* || pi_0) / ((1 + beta/L)^T - 1)",
    ),
    claim(
        "derivative",
        error_rate(),
        source="estimates of the first variation",
        statement="The squared error in the span of the first variation from M responses falls as 1/M",
        falsified_by="the error in place of its square; or responses of another policy",
        formula="-1, the slope in logarithms",
        tolerance=0.04,
        tolerance_reason="the next order in 1/M",
    ),
    free(
        "compromise",
        Computed(value=mass_at_middle, prediction=lambda oracle: 1.0),
        statement="The naive optimum, for N = 1, is the point y = 1/2",
        falsified_by="N = 2, whose optimum is uniform",
        formula="1 at y = 1/2",
        tolerance=1e-9,
        tolerance_reason="the interior point's distance from the corner",
        parameters={"samples": 1},
    ),
    claim(
        "closed-form",
        Computed(value=distance_from_closed_form, prediction=lambda oracle: 0.0),
        source=_OPPOSED,
        statement="At midpoints of the grid the optimum's distribution function is the closed form, for N = 2, "
        "3, 4, 8, 16",
        falsified_by=_WRONG_POWER,
        formula="F(y) = y^a / (y^a + (1 - y)^a), a = 1 / (N - 1)",
        tolerance=1e-6,
        tolerance_reason="the root of J's accuracy",
        parameters={"beta": 0.0, "tilt": -1.0},
    ),
    free(
        "grid",
        Computed(value=grid_slope, prediction=lambda oracle: -1.0),
        statement="The optimum on a grid of n points approaches that of the continuum as 1/n, in the mean over y",
        falsified_by=_WRONG_POWER,
        formula="-1, the slope in logarithms",
        tolerance=0.1,
        tolerance_reason="at the ends the density has no bound, which a fine grid sees more of",
    ),
    free(
        "u-shape",
        Computed(value=u_shaped_share, prediction=lambda oracle: 1.0),
        statement="For N = 3 to 16 the optimum's probabilities fall up to y = 1/2 and rise from there",
        falsified_by="N = 2, where they are all equal",
        formula="1, the share of N",
    ),
    sampled(
        "gain",
        SampledGain("reference"),
        statement="The aligned optimum is worth .0193 more than the uniform reference, by sampling",
        formula="J* - J_ref, J* by the closed form",
    ),
    sampled(
        "naive-loss",
        SampledGain("plain"),
        statement="The aligned optimum is worth .204 more than the naive one, by sampling",
        formula="J* - J(naive optimum)",
    ),
    free_learner(
        "learner",
        _learnt("nonlinear-grpo", "optimal_policy", learning_rate=0.03, **LARGE),
        statement="Non-linear GRPO converges to the aligned optimum",
        falsified_by="a learner that maximises the reward",
        formula="J*",
    ),
    free_learner(
        "naive-learner",
        _learnt("grpo", "plain_optimum", **LARGE),
        statement="GRPO converges to the naive optimum, far below the uniform reference",
        falsified_by="an inference-aware learner",
        formula="J(naive optimum) = 3/4",
    ),
    kl_learner(
        "learner-kl",
        _learnt("nonlinear-grpo", "optimal_policy", learning_rate=0.03, **LARGE),
        statement="With a KL term and a reference that prefers small y, non-linear GRPO reaches the aligned optimum",
        falsified_by="a learner that maximises the reward",
        formula="J*",
    ),
    kl_learner(
        "naive-learner-kl",
        _learnt("rloo", "plain_optimum"),
        statement="There a learner with the exact KL term that ignores inference converges to pi_ref e^(r / beta) / Z",
        falsified_by="an inference-aware learner",
        formula="J(pi_ref e^(r / beta) / Z)",
    ),
)
