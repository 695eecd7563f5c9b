"""What arXiv 2505.20686 says of OptimalAdvantage, as tests that run.

See `theorybench.envs.preference.optimal_advantage.experiments` for what is predicted and how it is measured, and
`pass_at_k` for what is true of "A*-PO cannot exceed the reference policy's Pass@K".
"""

from typing import Any

from theorybench.envs.core.evidence.claim import Claim, ClaimMaker
from theorybench.envs.preference.optimal_advantage.experiments import (
    ONE_PROMPT,
    Estimate,
    LeastVariance,
    MeanGradient,
    OffPolicy,
    OnPolicy,
    PassGain,
    Solved,
    VarianceAtOptimalValue,
)
from theorybench.envs.preference.optimal_advantage.optimal_value import optimal_value
from theorybench.envs.preference.optimal_advantage.pass_experiments import Filtered, OneAgainst, Tries, Unmoved

#: One prompt with 1 of 10 responses right, and a temperature at which P* = .858 leaves room on both sides.
WARM: dict[str, Any] = {**ONE_PROMPT, "num_responses": 10, "beta": 0.25}


_claim = ClaimMaker("advantage", "arXiv 2505.20686")


def _gradient(value: float) -> Claim:
    return _claim(
        f"gradient-{value:g}",
        "stage 2, our analysis; tolerance: none",
        f"On-policy the expected gradient of stage 2 is -2 beta grad J at V-hat = {value:g} as at any other: its "
        "component along -grad J, at a policy with random logits",
        "responses of the reference in place of the policy's own",
        MeanGradient(value),
        0.0,
        "2 beta |grad J|",
        {},
    )


def _least(id: str, statement: str, tilt: float) -> Claim:
    return _claim(
        f"variance-{id}",
        "stage 2, our analysis; tolerance: next order in 1 / episodes of a part, and rounding",
        statement,
        "responses of another policy, or a verifier that errs",
        LeastVariance(tilt),
        1e-4,
        "E[(r - beta ln(pi / pi_ref)) w] / E w, w = |grad ln pi|^2",
        ONE_PROMPT,
    )


def _ratio(id: str, statement: str, tilt: float) -> Claim:
    return _claim(
        f"variance-{id}",
        "stage 2, our analysis; tolerance: rounding",
        statement,
        "responses of another policy, or a verifier that errs",
        VarianceAtOptimalValue(tilt),
        1e-9,
        "(E[(V* - u)^2 w] - |E u g|^2) / (E[u^2 w] - |E u g|^2), u = r - beta ln(pi / pi_ref), g = grad ln pi",
        ONE_PROMPT,
    )


CLAIMS: tuple[Claim, ...] = (
    _gradient(0.0),
    _gradient(0.3),
    _gradient(5.0),
    _least("at-reference", "At the reference the gradient of stage 2 varies least with V-hat = p, far from V*", 0.0),
    _least("between", "Halfway to the optimum the best V-hat has moved most of the way to V*", 0.5),
    _least("at-optimum", "At the optimum the best V-hat is V*", 1.0),
    _ratio(
        "of-reference",
        "At the reference V-hat = V* is worse than V-hat = 0 where V* > 2 p: the variance over that at 0",
        0.0,
    ),
    _ratio("of-optimum", "At the optimum V-hat = V* leaves no variance at all: the variance over that at 0", 1.0),
    _claim(
        "off-policy",
        "stage 2, our contrast; tolerance: next order in 1 / episodes of a sample",
        "On responses of the reference, V-hat = 0 in place of V* moves the minimiser of stage 2 far from P* = .858",
        "responses of the policy itself, or V-hat = V*",
        OffPolicy(lambda p, beta: 0.0),
        5e-4,
        "argmin over s of p (a - 1)^2 + (1 - p) b^2, a = beta ln(s / p), b = beta ln((1 - s) / (1 - p))",
        WARM,
    ),
    _claim(
        "off-policy-exact",
        "stage 2; tolerance: the numerical minimiser's",
        "On the same responses V-hat = V* leaves it at the optimum",
        "a V-hat that is not V*, or a verifier that errs",
        OffPolicy(optimal_value),
        1e-5,
        "P* = p e^(1/beta) / (1 + p (e^(1/beta) - 1))",
        WARM,
    ),
    _claim(
        "on-policy",
        "stage 2; tolerance: the step size of the optimiser",
        "On its own responses A*-PO ends at the optimum, though its V-hat is 0 or 1 (N = 1) and V* = .462",
        "stage 2 on responses of the reference",
        OnPolicy(),
        0.003,
        "P* = p e^(1/beta) / (1 + p (e^(1/beta) - 1))",
        {**WARM, "num_prompts": 8},
    ),
    _claim(
        "value-mean",
        "stage 1, our analysis; tolerance: none",
        "V-hat from N = 8 responses is biased low at p = .1, beta = .1, where V* = .770: its mean",
        "responses of a policy that is better than the reference",
        Estimate(moment=0),
        0.0,
        "sum over k of Bin(k; N, p) beta ln(1 + k (e^(1/beta) - 1) / N)",
        ONE_PROMPT,
    ),
    _claim(
        "value-spread",
        "stage 1, our analysis; tolerance: next order in 1 / estimates of a part",
        "V-hat from those N = 8 responses scatters by more than its bias: its standard deviation",
        "responses of a policy that is better than the reference",
        Estimate(moment=1),
        5e-4,
        "square root of the variance of beta ln(1 + k (e^(1/beta) - 1) / N), k ~ Bin(N, p)",
        ONE_PROMPT,
    ),
    _claim(
        "ceiling",
        "prompts that are never solved; tolerance: none",
        "Prompts with p > 0 are solved sooner or later after A*-PO, the others never",
        "prompts that have a right response after all, or a learner that gives some of them up",
        Solved(),
        0.0,
        "share of prompts with p > 0",
        {},
    ),
    _claim(
        "pass-1",
        "pass@K; tolerance: the step size of the optimiser",
        "At one try A*-PO gains on the reference what the optimum does",
        "a learner that does not leave the reference",
        PassGain(k=1, groups=4096),
        0.002,
        "E[P* - p]",
        {"beta": 0.5},
    ),
    _claim(
        "pass-128",
        "pass@K; tolerance: none",
        "At 128 tries nearly all of that gain is gone, for the reference has come near the ceiling",
        "a learner that gives up some of the prompts that the reference solves",
        PassGain(k=128, groups=256),
        0.0,
        "E[(1 - p)^128 - (1 - P*)^128]",
        {"beta": 0.5},
    ),
    _claim(
        "hopeless",
        "pass@K, our analysis; tolerance: rounding",
        "On prompts with p = 0 a table stays at the reference, so that pass@K is 0 for every K: the largest distance",
        "parameters that prompts share, or a verifier that errs",
        Unmoved(),
        1e-9,
        "0",
        {},
    ),
    _claim(
        "tries",
        "pass@K, our analysis; tolerance: the step size of the optimiser",
        "On prompts with p > 0 one try after A*-PO is worth many tries of the reference, at most e^(1/beta)",
        "a learner that does not leave the reference",
        Tries(),
        0.2,
        "1 + V* / (beta ln(1 / (1 - p)))",
        {**WARM, "num_prompts": 8},
    ),
    _claim(
        "pass-1-over-8",
        "pass@K, our analysis; tolerance: the step size of the optimiser",
        "On prompts of many p one try after A*-PO is better than 8 tries of the reference: pass@1 less pass@8",
        "a learner that does not leave the reference, or one of a larger beta",
        OneAgainst(k=8),
        0.002,
        "E[P* - 1 + (1 - p)^8]",
        {"num_prompts": 8, "num_responses": 10, "beta": 0.25},
    ),
    _claim(
        "filter",
        "pass@K, our analysis; tolerance: the step size of the optimiser",
        "A table that drops prompts of which none of 8 samples was right comes near pass@9 of the reference, .6126, "
        "and does not exceed it, however small beta is: its pass@1",
        "a table that learns what was dropped as well, or one that learns nothing",
        Filtered(samples=8, k=1),
        0.003,
        "1 - q^9 - (1 - q^8) (1 - P*), q = 1 - p",
        {**WARM, "num_prompts": 8, "beta": 0.1},
    ),
)
