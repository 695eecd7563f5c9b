"""The optimal value of a prompt with binary rewards, and its estimate from N reference samples (arXiv 2505.20686).

Throughout p is the reference's success probability, k / m if k of m equally likely responses are right, and beta the
weight of the KL term. Maximising E r - beta KL(pi || pi_ref) for each prompt gives pi* = pi_ref e^{(r - V*) / beta}
with V* = beta ln E_ref e^{r / beta}; with r in {0, 1} the sum has two terms.
"""

import numpy as np


def optimal_value(p: np.ndarray | float, beta: float) -> np.ndarray:
    """Return V* = beta ln(p e^{1 / beta} + 1 - p) for chances p of any shape; finite for every beta > 0."""
    with np.errstate(divide="ignore"):
        return beta * np.logaddexp(np.log(p) + 1.0 / beta, np.log1p(-np.asarray(p)))


def optimal_success(p: np.ndarray | float, beta: float) -> np.ndarray:
    """Return P* = p e^{1 / beta} / (p e^{1 / beta} + 1 - p), the chance of a reward under pi*, for p of any shape."""
    with np.errstate(divide="ignore", over="ignore"):
        return 1.0 / (1.0 + np.exp(np.log1p(-np.asarray(p)) - np.log(p) - 1.0 / beta))


def estimated_value(rewards: np.ndarray, beta: float) -> np.ndarray:
    """Return V-hat = beta ln mean_j e^{r_j / beta} of rewards (..., N), any numbers, as A*-PO estimates it: (...)."""
    top = rewards.max(axis=-1, keepdims=True)
    return top[..., 0] + beta * np.log(np.mean(np.exp((rewards - top) / beta), axis=-1))


def estimate_moments(p: float, samples: int, beta: float) -> tuple[float, float]:
    """Return mean and standard deviation of V-hat from N samples of the reference, exactly.

    k ~ Bin(N, p) of N responses are right, and V-hat = beta ln(k/N e^{1/beta} + 1 - k/N) = V*(k / N): the optimal value
    at the observed share. V* is concave in p, so V-hat is biased low for every N (Jensen). If p e^{1/beta} is large
    but p N is not, nearly all bias comes from the event of no right response, of probability (1 - p)^N, with V-hat = 0.

    Args:
        p: in (0, 1).
        samples: N >= 1.
        beta: temperature of V-hat.
    """
    from scipy.stats import binom

    k = np.arange(samples + 1)
    values, chances = optimal_value(k / samples, beta), binom.pmf(k, samples, p)
    mean = float(values @ chances)
    return mean, float(np.sqrt((values - mean) ** 2 @ chances))
