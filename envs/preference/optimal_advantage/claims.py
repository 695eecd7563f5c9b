"""Statements of arXiv 2505.20686 about OptimalAdvantage, as executable claims.

`theorybench.envs.preference.optimal_advantage.experiments` defines what is predicted and measured; `pass_at_k` derives
to what extent "A*-PO cannot exceed the reference policy's Pass@K" is true.
"""

import functools
from typing import Any

from theorybench.envs.core.evidence.claim import Claim, ClaimMaker
from theorybench.envs.preference.optimal_advantage.experiments import (
    Training,
    distance_from_reference,
    estimate,
    filtered,
    least_variance,
    mean_gradient,
    off_policy,
    one_against,
    pass_gain,
    solved_share,
    success,
    tries_worth,
    variance_at_optimal_value,
)
from theorybench.envs.preference.optimal_advantage.optimal_value import optimal_value
from theorybench.envs.preference.optimal_advantage.sampling import ONE_PROMPT

#: One prompt with 1 of 10 responses right, and a temperature at which P* = .858 is well inside (p, 1).
WARM: dict[str, Any] = {**ONE_PROMPT, "num_responses": 10, "beta": 0.25}


claim = ClaimMaker("advantage", "arXiv 2505.20686")


_variance = functools.partial(
    claim,
    source="stage 2, our analysis",
    falsified_by="responses of another policy, or a noisy verifier",
    parameters=ONE_PROMPT,
)
_least = functools.partial(
    _variance,
    formula="E[(r - beta ln(pi / pi_ref)) w] / E w, w = |grad ln pi|^2",
    tolerance=1e-4,
    tolerance_reason="next order in 1 / (episodes per part), and rounding",
)
_ratio = functools.partial(
    _variance,
    formula="(E[(V* - u)^2 w] - |E u g|^2) / (E[u^2 w] - |E u g|^2), u = r - beta ln(pi / pi_ref), g = grad ln pi",
    tolerance=1e-9,
    tolerance_reason="rounding",
)


def _gradient(value: float) -> Claim:
    return claim(
        f"gradient-{value:g}",
        mean_gradient(value),
        source="stage 2, our analysis",
        statement=f"On-policy the expected gradient of stage 2 at V-hat = {value:g}, as at every other, is "
        "-2 beta grad J: its component along -grad J, at a policy with random logits",
        falsified_by="responses of the reference in place of the policy's own",
        formula="2 beta |grad J|",
    )


CLAIMS: tuple[Claim, ...] = (
    _gradient(0.0),
    _gradient(0.3),
    _gradient(5.0),
    _least(
        "variance-at-reference",
        least_variance(tilt=0.0),
        statement="At the reference the gradient of stage 2 has the least variance at V-hat = p, far from V*",
    ),
    _least(
        "variance-between",
        least_variance(tilt=0.5),
        statement="Halfway to the optimum the best V-hat has moved most of the way to V*",
    ),
    _least("variance-at-optimum", least_variance(tilt=1.0), statement="At the optimum the best V-hat is V*"),
    _ratio(
        "variance-of-reference",
        variance_at_optimal_value(tilt=0.0),
        statement="At the reference V-hat = V* has more variance than V-hat = 0 if V* > 2 p: ratio of variances",
    ),
    _ratio(
        "variance-of-optimum",
        variance_at_optimal_value(tilt=1.0),
        statement="At the optimum the variance at V-hat = V* is zero: ratio of variances at V* and at 0",
    ),
    claim(
        "off-policy",
        off_policy(lambda p, beta: 0.0),
        source="stage 2; the contrast is ours",
        statement="On responses of the reference, V-hat = 0 in place of V* moves the minimiser of stage 2 far "
        "from P* = .858",
        falsified_by="responses of the policy itself, or V-hat = V*",
        formula="argmin over s of p (a - 1)^2 + (1 - p) b^2, a = beta ln(s / p), b = beta ln((1 - s) / (1 - p))",
        tolerance=5e-4,
        tolerance_reason="next order in 1 / (episodes per sample)",
        parameters=WARM,
    ),
    claim(
        "off-policy-exact",
        off_policy(optimal_value),
        source="stage 2",
        statement="On responses of the reference, the minimiser of stage 2 with V-hat = V* is the optimum",
        falsified_by="a V-hat other than V*, or a noisy verifier",
        formula="P* = p e^(1/beta) / (1 + p (e^(1/beta) - 1))",
        tolerance=1e-5,
        tolerance_reason="accuracy of the numerical minimiser",
        parameters=WARM,
    ),
    claim(
        "on-policy",
        success(Training(samples=1, updates=800, learning_rate=0.01, seeds=16)),
        source="stage 2",
        statement="On its own responses A*-PO converges to the optimum, although V-hat is 0 or 1 (N = 1) and V* = .462",
        falsified_by="stage 2 on responses of the reference",
        formula="P* = p e^(1/beta) / (1 + p (e^(1/beta) - 1))",
        tolerance=0.003,
        tolerance_reason="the step size of the optimiser",
        parameters={**WARM, "num_prompts": 8},
    ),
    claim(
        "value-mean",
        estimate(moment=0),
        source="stage 1, our analysis",
        statement="V-hat from N = 8 responses is biased low at p = .1, beta = .1, where V* = .770: its mean",
        falsified_by="responses of a policy better than the reference",
        formula="sum over k of Bin(k; N, p) beta ln(1 + k (e^(1/beta) - 1) / N)",
        parameters=ONE_PROMPT,
    ),
    claim(
        "value-spread",
        estimate(moment=1),
        source="stage 1, our analysis",
        statement="V-hat from those N = 8 responses has a standard deviation larger than its bias",
        falsified_by="responses of a policy better than the reference",
        formula="square root of the variance of beta ln(1 + k (e^(1/beta) - 1) / N), k ~ Bin(N, p)",
        tolerance=5e-4,
        tolerance_reason="next order in 1 / (estimates per part)",
        parameters=ONE_PROMPT,
    ),
    claim(
        "ceiling",
        solved_share(),
        source="prompts that are never solved",
        statement="After A*-PO prompts with p > 0 are solved with enough tries, the others never",
        falsified_by="right responses to the other prompts, or a learner that loses some of the solvable prompts",
        formula="share of prompts with p > 0",
    ),
    claim(
        "pass-1",
        pass_gain(k=1, groups=4096),
        source="pass@K",
        statement="At one try the gain of A*-PO over the reference is that of the optimum",
        falsified_by="a learner that stays at the reference",
        formula="E[P* - p]",
        tolerance=0.002,
        tolerance_reason="the step size of the optimiser",
        parameters={"beta": 0.5},
    ),
    claim(
        "pass-128",
        pass_gain(k=128, groups=256),
        source="pass@K",
        statement="At 128 tries nearly all of that gain is gone, as the reference is then close to the ceiling",
        falsified_by="a learner that loses some of the prompts that the reference solves",
        formula="E[(1 - p)^128 - (1 - P*)^128]",
        parameters={"beta": 0.5},
    ),
    claim(
        "hopeless",
        distance_from_reference(Training(updates=100)),
        source="pass@K, our analysis",
        statement="On prompts with p = 0 a table stays at the reference, so pass@K is 0 for every K: the largest "
        "distance to the reference",
        falsified_by="parameters shared between prompts, or a noisy verifier",
        formula="0",
        tolerance=1e-9,
        tolerance_reason="rounding",
    ),
    claim(
        "tries",
        tries_worth(Training(learning_rate=0.02, seeds=8)),
        source="pass@K, our analysis",
        statement="On prompts with p > 0 one try after A*-PO is worth many tries of the reference, at most e^(1/beta)",
        falsified_by="a learner that stays at the reference",
        formula="1 + V* / (beta ln(1 / (1 - p)))",
        tolerance=0.2,
        tolerance_reason="the step size of the optimiser",
        parameters={**WARM, "num_prompts": 8},
    ),
    claim(
        "pass-1-over-8",
        one_against(8, Training(updates=400, episodes=128, learning_rate=0.02)),
        source="pass@K, our analysis",
        statement="On prompts with various p one try after A*-PO is better than 8 tries of the reference: pass@1 minus "
        "pass@8",
        falsified_by="a learner that stays at the reference, or one with a larger beta",
        formula="E[P* - 1 + (1 - p)^8]",
        tolerance=0.002,
        tolerance_reason="the step size of the optimiser",
        parameters={"num_prompts": 8, "num_responses": 10, "beta": 0.25},
    ),
    claim(
        "filter",
        filtered(samples=8, k=1, training=Training(episodes=128, learning_rate=0.05)),
        source="pass@K, our analysis",
        statement="A table that skips prompts for which none of 8 samples was right comes close to pass@9 of the "
        "reference, .6126, but does not exceed it for any beta: its pass@1",
        falsified_by="a table that also learns the skipped prompts, or one that learns nothing",
        formula="1 - q^9 - (1 - q^8) (1 - P*), q = 1 - p",
        tolerance=0.003,
        tolerance_reason="the step size of the optimiser",
        parameters={**WARM, "num_prompts": 8, "beta": 0.1},
    ),
)
