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

_claim = ClaimMaker("inference", "arXiv 2602.01603")


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
    _claim(
        "one-step",
        f"{_COLLAPSE}; tolerance: rounding",
        "With N = 1 one exact prox step without proximity (L = 0) reaches the optimum",
        "N = 2, where the first variation depends on the policy",
        OneStep(),
        1e-9,
        "0 of J* - J_ref is left",
        samples=1,
    ),
    _claim(
        "plain",
        f"{_COLLAPSE}; tolerance: rewards are rounded to 36 bits",
        "With N = 1 non-linear GRPO trains the same policies as GRPO",
        "N = 4 in the learner",
        SamePolicies((("nonlinear-grpo", _PLAIN), ("grpo", {}))),
        1e-6,
        "0",
        samples=1,
    ),
    _claim(
        "smoothness",
        f"{_PROX}, constant L; tolerance: second differences",
        "Best-of-4 of a criterion that is passed or failed bends by L = 1.2656 relative to KL at worst, and no more",
        "L without the factor N - 1",
        Sharpness(),
        1e-4,
        "L = (N - 1) (1 - 1/N)^(N - 1)",
        num_points=2,
        num_criteria=1,
        tilt=2.0,
    ),
    _claim(
        "prox-bound",
        _PROX,
        "Exact prox steps never are farther from J* than the theorem says, in 60 random settings at 60 steps each "
        "(that L is the best constant is another claim)",
        "L four times too small, in steps and bound",
        BoundHolds(),
        0.0,
        "J* - J <= beta KL(pi* || pi_0) / ((1 + beta/L)^T - 1)",
    ),
    _claim(
        "derivative",
        "estimates of the first variation; tolerance: the next order in 1/M",
        "The squared error in the span of the first variation from M responses falls as 1/M",
        "the error in place of its square; or responses of another policy",
        ErrorRate(),
        0.04,
        "-1, the slope in logarithms",
    ),
    _claim(
        "compromise",
        f"{_OPPOSED}; tolerance: the interior point's distance from the corner",
        "The naive optimum, N = 1, is the point y = 1/2",
        "N = 2, whose optimum is uniform",
        Compromise(),
        1e-9,
        "1 at y = 1/2",
        **FREE,
        samples=1,
    ),
    _claim(
        "closed-form",
        f"{_OPPOSED}; tolerance: the root of J's accuracy",
        "At midpoints of the grid the optimum's distribution function is the closed form, for N = 2, 3, 4, 8, 16",
        _WRONG_POWER,
        ClosedForm(),
        1e-6,
        "F(y) = y^a / (y^a + (1 - y)^a), a = 1 / (N - 1)",
        beta=0.0,
        tilt=-1.0,
    ),
    _claim(
        "grid",
        f"{_OPPOSED}; tolerance: at the ends the density has no bound, which a fine grid sees more of",
        "The optimum on a grid of n points approaches that of the continuum as 1/n, in the mean over y",
        _WRONG_POWER,
        GridRate(),
        0.1,
        "-1, the slope in logarithms",
        **FREE,
    ),
    _claim(
        "u-shape",
        _OPPOSED,
        "For N = 3 to 16 the optimum's probabilities fall up to y = 1/2 and rise from there",
        "N = 2, where they are all equal",
        UShaped(),
        0.0,
        "1, the share of N",
        **FREE,
    ),
    _claim(
        "gain",
        f"{_OPPOSED}; measured by playing best-of-4 out",
        "The aligned optimum is worth .0193 more than the uniform reference, played out",
        "best of 3 in place of 4, or responses of another policy",
        PlayedGain("reference"),
        0.0,
        "J* - J_ref, J* by the closed form",
        **FREE,
    ),
    _claim(
        "naive-loss",
        f"{_OPPOSED}; measured by playing best-of-4 out",
        "The aligned optimum is worth .204 more than the naive one, played out",
        "best of 3 in place of 4, or responses of another policy",
        PlayedGain("plain"),
        0.0,
        "J* - J(naive optimum)",
        **FREE,
    ),
    _claim(
        "learner",
        f"{_OPPOSED}; {_LEARNING}",
        "Non-linear GRPO ends at the aligned optimum",
        "a learner that is paid the reward",
        LearnedValue("nonlinear-grpo", True, {**LARGE, "learning_rate": 0.03}),
        0.002,
        "J*",
        **FREE,
    ),
    _claim(
        "naive-learner",
        f"{_OPPOSED}; {_LEARNING}",
        "GRPO ends at the naive optimum, far below the uniform reference",
        "a learner that knows of inference",
        LearnedValue("grpo", False, LARGE),
        0.002,
        "J(naive optimum) = 3/4",
        **FREE,
    ),
    _claim(
        "learner-kl",
        f"objective with KL term; {_LEARNING}",
        "With a KL term and a reference that prefers small y, non-linear GRPO ends at the aligned optimum",
        "a learner that is paid the reward",
        LearnedValue("nonlinear-grpo", True, {**LARGE, "learning_rate": 0.03}),
        0.0045,
        "J*",
    ),
    _claim(
        "naive-learner-kl",
        f"objective with KL term; {_LEARNING}",
        "There a learner with the exact KL term that is unaware of inference ends at pi_ref e^(r / beta) / Z",
        "a learner that knows of inference",
        LearnedValue("rloo", False, {}),
        0.0045,
        "J(pi_ref e^(r / beta) / Z)",
    ),
)
