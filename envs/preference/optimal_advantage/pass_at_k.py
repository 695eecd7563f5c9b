"""When A*-PO exceeds the reference's pass@K, and when it cannot (arXiv 2505.20686).

TRL's documentation of its trainer of A*-PO says: "Because V* is estimated entirely from reference-policy samples, A*-PO
cannot exceed the reference policy's Pass@K." This module proves to what extent that is true. On one prompt with binary
rewards let p be the success probability of the reference, q = 1 - p, and s that of the policy after training, so pass@K
is 1 - q^K before and 1 - (1 - s)^K after; let a = e^{1 / beta}. With several prompts both are means over prompts, and
every inequality below holds for the means since it holds for each prompt.

*1. Prompts with p = 0: true for every learner whose KL divergence to the reference is finite.* Such a policy gives no
response that the reference does not give, so s = 0 and pass@K = 0 for every K; V* = 0, and pi* = pi_ref. A table does
not even move: V-hat and all rewards are 0, so at pi = pi_ref the residual beta ln(pi / pi_ref) + V-hat - r of every
response is 0, and so is every gradient. Parameters shared between prompts do move, because of other prompts; but if no
response is right, or the right ones are illegal, s is still 0. If p is merely so small that no sample is right,
V-hat implies no bound on s.

*2. Prompts with 0 < p < 1: false at equal K.* P* = p a / (q + p a) > p, so pass@K of the optimum is above the
reference's for every beta and every K. Only in the limit of large K are they equal, both being the share of prompts
with p > 0.

*3. One try against many.* 1 - P* = q / (q + p a) = q e^{-V* / beta}. So one try of the optimum is worth

    T = ln(1 - P*) / ln q = 1 + V* / (beta ln(1 / q)) = 1 + ln(1 + p (a - 1)) / ln(1 / q)

tries of the reference: P* exceeds the reference's pass@K exactly if K < T, which is 1 / beta > ln(1 + q^-1 + ... +
q^-(K - 1)). T decreases in p from a to 1, as 1 plus the ratio of a concave to a convex function, both 0 at p = 0.
Hence the true statement at finite K: *for K >= e^{1 / beta} one try of the optimum does not exceed the reference's
pass@K*, for any prompts, and pass@J of the optimum does not exceed the reference's pass@(J e^{1 / beta}). At beta = 0.5
that is K = 8; at TRL's default, 0.001, it is K = e^1000.

*4. The filter.* Not V-hat but the filter depends on samples of the reference only: on the policy's own responses the
expected gradient is the same for every V-hat (`regression`). With N samples a prompt is skipped with probability q^N.
If its policy then stays unchanged, as it does in a table, the mean over the samples of pass@K after training is

    1 - q^(N + K) - (1 - q^N) (1 - s)^K <= 1 - q^(N + K),

since a failure occurs if none of N + K responses of the reference is right, or if the prompt is kept and fails after
training: *with the filter a table does not exceed the reference's pass@(N + K)* for any beta, and approaches it as s
goes to 1. Without the filter, or with parameters shared between prompts, there is no such bound.
"""

import numpy as np

from theorybench.envs.preference.optimal_advantage.optimal_value import optimal_value


def pass_at(chance: np.ndarray | float, tries: float) -> np.ndarray:
    """Return pass@K = 1 - (1 - chance)^K for chances in [0, 1] of any shape; K > 0 need not be whole."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(tries * np.log1p(-np.asarray(chance, np.float64))))


def reference_tries(p: np.ndarray | float, beta: float) -> np.ndarray:
    """Return the number T of tries of the reference that one try of the optimum is worth, from 1 to e^{1 / beta}.

    Args:
        p: chances of the reference in (0, 1), of any shape.
        beta: weight of the KL term.
    """
    return 1.0 - optimal_value(p, beta) / (beta * np.log1p(-np.asarray(p, np.float64)))


def filtered_pass(p: np.ndarray | float, success: np.ndarray | float, samples: int, tries: int) -> np.ndarray:
    """Return the mean of pass@K if prompts that none of N samples of the reference solved keep the reference's row.

    Args:
        p: success probabilities of the reference, of any shape.
        success: success probabilities after training on the prompts that are kept, of the shape of p.
        samples: the number N of samples.
        tries: the number K of tries.

    Returns:
        The mean over the samples, for each prompt; at most `pass_at(p, samples + tries)`.
    """
    kept = pass_at(p, samples)
    return kept * pass_at(success, tries) + (1.0 - kept) * pass_at(p, tries)
