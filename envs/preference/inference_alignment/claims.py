"""What arXiv 2602.01603 says of InferenceAlignment, as tests that run."""

from typing import Any

from theorybench.envs.core.evidence.claim import Claim, ClaimMaker
from theorybench.envs.preference.inference_alignment.experiments import (
    BoundHolds,
    ErrorRate,
    LearnedValue,
    OneStep,
    PlayedGain,
    SamePolicies,
    Sharpness,
)
from theorybench.envs.preference.inference_alignment.law import ClosedForm, Compromise, GridRate, UShaped

claim = ClaimMaker("inference", "arXiv 2602.01603")


#: No KL term, and a uniform reference: opposed criteria of equal weight have a closed form.
FREE: dict[str, Any] = {"beta": 0.0, "tilt": 0.0}
#: Large batches, so that noise does not move the policy's ends.
LARGE: dict[str, Any] = {"episodes_per_update": 256, "group_size": 256}
#: The same learner in its plain form.
_PLAIN: dict[str, Any] = {"penalty": "k3", "group_size": 8}

_COLLAPSE = "best-of-1 is plain alignment"
_PROX = "convergence of non-linear GRPO"
_OPPOSED = "inference-aware and naive alignment differ, two opposed criteria"
_WRONG_POWER = "a = 1 / N in place of 1 / (N - 1)"
_LEARNING = "tolerance: a tenth of J* - J_ref, noise of finite batches and steps"

CLAIMS: tuple[Claim, ...] = (
    claim(
        "one-step",
        OneStep(),
        source="best-of-1 is plain alignment",
        statement="With N = 1 one exact prox step without proximity (L = 0) reaches the optimum",
        falsified_by="N = 2, where the first variation depends on the policy",
        formula="0 of J* - J_ref is left",
        tolerance=1e-9,
        tolerance_reason="rounding",
        parameters={"samples": 1},
    ),
    claim(
        "plain",
        SamePolicies((("nonlinear-grpo", _PLAIN), ("grpo", {}))),
        source="best-of-1 is plain alignment",
        statement="With N = 1 non-linear GRPO trains the same policies as GRPO",
        falsified_by="N = 4 in the learner",
        formula="0",
        tolerance=1e-6,
        tolerance_reason="rewards are rounded to 36 bits",
        parameters={"samples": 1},
    ),
    claim(
        "smoothness",
        Sharpness(),
        source="convergence of non-linear GRPO, constant L",
        statement="Best-of-4 of a criterion that is passed or failed bends by L = 1.2656 relative to KL at "
        "worst, and no more",
        falsified_by="L without the factor N - 1",
        formula="L = (N - 1) (1 - 1/N)^(N - 1)",
        tolerance=1e-4,
        tolerance_reason="second differences",
        parameters={"num_points": 2, "num_criteria": 1, "tilt": 2.0},
    ),
    claim(
        "prox-bound",
        BoundHolds(),
        source="convergence of non-linear GRPO",
        statement="Exact prox steps never are farther from J* than the theorem says, in 60 random settings at 60 "
        "steps each "
        "(that L is the best constant is another claim)",
        falsified_by="L four times too small, in steps and bound",
        formula="J* - J <= beta KL(pi* || pi_0) / ((1 + beta/L)^T - 1)",
    ),
    claim(
        "derivative",
        ErrorRate(),
        source="estimates of the first variation",
        statement="The squared error in the span of the first variation from M responses falls as 1/M",
        falsified_by="the error in place of its square; or responses of another policy",
        formula="-1, the slope in logarithms",
        tolerance=0.04,
        tolerance_reason="the next order in 1/M",
    ),
    claim(
        "compromise",
        Compromise(),
        source="inference-aware and naive alignment differ, two opposed criteria",
        statement="The naive optimum, N = 1, is the point y = 1/2",
        falsified_by="N = 2, whose optimum is uniform",
        formula="1 at y = 1/2",
        tolerance=1e-9,
        tolerance_reason="the interior point's distance from the corner",
        parameters={**FREE, "samples": 1},
    ),
    claim(
        "closed-form",
        ClosedForm(),
        source="inference-aware and naive alignment differ, two opposed criteria",
        statement="At midpoints of the grid the optimum's distribution function is the closed form, for N = 2, "
        "3, 4, 8, 16",
        falsified_by=_WRONG_POWER,
        formula="F(y) = y^a / (y^a + (1 - y)^a), a = 1 / (N - 1)",
        tolerance=1e-6,
        tolerance_reason="the root of J's accuracy",
        parameters={"beta": 0.0, "tilt": -1.0},
    ),
    claim(
        "grid",
        GridRate(),
        source="inference-aware and naive alignment differ, two opposed criteria",
        statement="The optimum on a grid of n points approaches that of the continuum as 1/n, in the mean over y",
        falsified_by=_WRONG_POWER,
        formula="-1, the slope in logarithms",
        tolerance=0.1,
        tolerance_reason="at the ends the density has no bound, which a fine grid sees more of",
        parameters={**FREE},
    ),
    claim(
        "u-shape",
        UShaped(),
        source="inference-aware and naive alignment differ, two opposed criteria",
        statement="For N = 3 to 16 the optimum's probabilities fall up to y = 1/2 and rise from there",
        falsified_by="N = 2, where they are all equal",
        formula="1, the share of N",
        parameters={**FREE},
    ),
    claim(
        "gain",
        PlayedGain("reference"),
        source="inference-aware and naive alignment differ, two opposed criteria; measured by playing best-of-4 out",
        statement="The aligned optimum is worth .0193 more than the uniform reference, played out",
        falsified_by="best of 3 in place of 4, or responses of another policy",
        formula="J* - J_ref, J* by the closed form",
        parameters={**FREE},
    ),
    claim(
        "naive-loss",
        PlayedGain("plain"),
        source="inference-aware and naive alignment differ, two opposed criteria; measured by playing best-of-4 out",
        statement="The aligned optimum is worth .204 more than the naive one, played out",
        falsified_by="best of 3 in place of 4, or responses of another policy",
        formula="J* - J(naive optimum)",
        parameters={**FREE},
    ),
    claim(
        "learner",
        LearnedValue("nonlinear-grpo", True, {**LARGE, "learning_rate": 0.03}),
        source="inference-aware and naive alignment differ, two opposed criteria",
        statement="Non-linear GRPO ends at the aligned optimum",
        falsified_by="a learner that is paid the reward",
        formula="J*",
        tolerance=0.002,
        tolerance_reason="a tenth of J* - J_ref, noise of finite batches and steps",
        parameters={**FREE},
    ),
    claim(
        "naive-learner",
        LearnedValue("grpo", False, LARGE),
        source="inference-aware and naive alignment differ, two opposed criteria",
        statement="GRPO ends at the naive optimum, far below the uniform reference",
        falsified_by="a learner that knows of inference",
        formula="J(naive optimum) = 3/4",
        tolerance=0.002,
        tolerance_reason="a tenth of J* - J_ref, noise of finite batches and steps",
        parameters={**FREE},
    ),
    claim(
        "learner-kl",
        LearnedValue("nonlinear-grpo", True, {**LARGE, "learning_rate": 0.03}),
        source="objective with KL term",
        statement="With a KL term and a reference that prefers small y, non-linear GRPO ends at the aligned optimum",
        falsified_by="a learner that is paid the reward",
        formula="J*",
        tolerance=0.0045,
        tolerance_reason="a tenth of J* - J_ref, noise of finite batches and steps",
    ),
    claim(
        "naive-learner-kl",
        LearnedValue("rloo", False, {}),
        source="objective with KL term",
        statement="There a learner with the exact KL term that is unaware of inference ends at pi_ref e^(r / beta) / Z",
        falsified_by="a learner that knows of inference",
        formula="J(pi_ref e^(r / beta) / Z)",
        tolerance=0.0045,
        tolerance_reason="a tenth of J* - J_ref, noise of finite batches and steps",
    ),
)
