"""Coverage, Fisher information and error floors of Bradley-Terry learning in a linear softmax class.

Shapes throughout: X contexts (uniform), K responses, d features. `features` is (X, K, d), `rewards` and every policy
(X, K). With beta = the KL coefficient and r = beta theta* . phi, a pair (y, y') is labelled "y wins" with probability
sigma(r(x, y) - r(x, y')). Source: arXiv 2601.08421 (coverage improvement).
"""

import math

import numpy as np


def feature_covariance(features: np.ndarray, probs: np.ndarray) -> np.ndarray:
    """Return Sigma_pi = E_x Cov_{y ~ pi(.|x)} phi(x, y), (d, d): the Fisher information of theta at pi = pi_theta."""
    centred = features - (probs[:, None, :] @ features)
    return np.mean(np.swapaxes(centred, 1, 2) @ (probs[:, :, None] * centred), axis=0)


def relative_coverage(sampler: np.ndarray, target: np.ndarray) -> float:
    """Return C = lambda_max(S^-1/2 T S^-1/2) of covariances S (of the sampler) and T (of the target), both (d, d).

    C is the smallest number with T <= C S: how much more data the sampler needs in the direction that it covers worst.
    It is infinite if the sampler does not vary along some direction. S is scaled to unit diagonal first, which keeps
    the result accurate for tiny variances (a nearly deterministic sampler has C of 1e12 and more).
    """
    correlation, scale = _correlation(sampler)
    if correlation is None:
        return math.inf
    whitening = np.linalg.inv(np.linalg.cholesky(correlation)) / scale
    return float(np.linalg.eigvalsh(whitening @ target @ whitening.T)[-1])


def _correlation(covariance: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the correlation matrix (d, d) of a covariance, None if singular, and the standard deviations (d,)."""
    scale = np.sqrt(np.diag(covariance))
    if not scale.all():
        return None, scale
    correlation = covariance / scale[:, None] / scale
    singular = np.linalg.eigvalsh(correlation)[0] <= 8 * len(scale) * np.finfo(float).eps
    return (None if singular else correlation), scale


def fisher_information(
    features: np.ndarray, rewards: np.ndarray, beta: float, first: np.ndarray, second: np.ndarray | None = None
) -> np.ndarray:
    """Return the Fisher information of one label about theta at theta*, (d, d).

    The label of a pair y ~ first, y' ~ second (default: the same policy) is Bernoulli(sigma(m)) with margin
    m = beta theta . (phi - phi'), so I = beta^2 E[sigma'(m) (phi - phi')(phi - phi')^T] at theta = theta*. Expanding
    the square with S(y, y') = sigma'(m) gives four moments of centred features, and S depends on the rewards only, so
    sums over the distinct rewards of a context (d + 1 of them on the hypercube) replace those over K^2 pairs.
    """
    second = first if second is None else second
    total = np.zeros((features.shape[2], features.shape[2]))
    for phi, reward, p, q in zip(features, rewards, first, second, strict=True):
        levels, index = np.unique(reward, return_inverse=True)
        slope = 0.25 / np.cosh((levels[:, None] - levels) / 2) ** 2
        centred = phi - p @ phi
        p_mass, q_mass = (np.bincount(index, policy, len(levels)) for policy in (p, q))
        diagonal = p * (slope @ q_mass)[index] + q * (slope @ p_mass)[index]
        cross = _level_sums(p, centred, index, len(levels)).T @ slope @ _level_sums(q, centred, index, len(levels))
        total += (centred.T * diagonal) @ centred - cross - cross.T
    return beta**2 * total / len(features)


def win_rate(rewards: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Return the probability that a response of `first` beats one of `second`, E_x E sigma(r - r')."""
    total = 0.0
    for reward, p, q in zip(rewards, first, second, strict=True):
        levels, index = np.unique(reward, return_inverse=True)
        wins = (1 + np.tanh((levels[:, None] - levels) / 2)) / 2
        total += np.bincount(index, p, len(levels)) @ wins @ np.bincount(index, q, len(levels))
    return float(total / len(rewards))


def _level_sums(probs: np.ndarray, values: np.ndarray, index: np.ndarray, count: int) -> np.ndarray:
    """Return the sum of probs * values, (K, d), over the responses of each reward level, (count, d)."""
    return np.stack([np.bincount(index, probs * column, count) for column in values.T], axis=1)


def error_floor(information: np.ndarray, metric: np.ndarray) -> float:
    """Return tr(M I^-1): n times the asymptotic E ||theta - theta*||_M^2 of maximum likelihood from n labels.

    Divided by n it is the Cramer-Rao bound in the norm of M; infinite where I is singular.
    """
    correlation, scale = _correlation(information)
    if correlation is None:
        return math.inf
    return float(np.trace(np.linalg.solve(correlation, metric / scale[:, None] / scale)))


def log_ratio_parameters(features: np.ndarray, log_ratios: np.ndarray) -> tuple[np.ndarray, float]:
    """Find the theta whose linear softmax has the given log-ratios to the reference.

    ln pi(y|x)/pi_ref(y|x) = theta . phi(x, y) - c(x) up to least squares over all (x, y); c(x) drops out by centring.

    Returns:
        theta (d,), and the largest absolute residual in nats: 0 up to rounding iff the policy lies in the class.
    """
    phi = (features - features.mean(axis=1, keepdims=True)).reshape(-1, features.shape[2])
    target = (log_ratios - log_ratios.mean(axis=1, keepdims=True)).reshape(-1)
    theta = np.linalg.solve(phi.T @ phi, phi.T @ target)
    return theta, float(np.abs(phi @ theta - target).max())
