"""Estimates of A*-PO's two stages from rollouts of fixed policies: gradients, V-hat, regressions and pass@K.

They use only sampled responses and their rewards; claims and studies compare them with closed forms.
"""

from typing import Any

import numpy as np

from theorybench.envs.core.evidence.lab import Lab
from theorybench.envs.core.numerics import softmax
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.preference.optimal_advantage.regression import path_probs

#: One prompt with 2 of 20 responses right, used by claims and studies of the two stages.
ONE_PROMPT: dict[str, Any] = {
    "num_prompts": 1,
    "num_responses": 20,
    "accuracy": 0.1,
    "concentration": 1e9,
    "zero_share": 0.0,
}
#: Values of V-hat at which variances are measured: three points determine a parabola.
PROBES = np.array([0.0, 0.5, 1.0])
#: Number of parts of a simulation, for intervals of statistics other than means.
PARTS = 64


def optimal_gap(lab: Lab, policy: TablePolicy, episodes: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simulate; return beta ln(pi / pi_ref) - r, prompt and action of each response, (episodes,) each."""
    played, setting = lab.simulate(policy, episodes, seed), lab.setting
    ratios = played.log_probs[:, 0] + np.log(setting.num_responses)
    return setting.beta * ratios - played.rewards, played.prompts, played.actions[:, 0]


def sampled_variances(
    lab: Lab, tilt: float, values: np.ndarray, episodes: int, seed: int, *, parts: int = PARTS
) -> np.ndarray:
    """Return the sample variance of the gradient of stage 2 at V-hat in `values`, on a setting of one prompt.

    Returns:
        The trace of the covariance in each of the parts of the episodes, float64 (parts, values).
    """
    policy = lab.oracle.policy(path_probs(lab.setting.tables.rewards, lab.setting.beta, tilt))
    gaps, _, actions = optimal_gap(lab, policy, episodes, seed)
    scores = (np.eye(lab.setting.num_responses)[actions] - policy.table).reshape(parts, episodes // parts, -1)
    gradients = (2 * lab.setting.beta * (gap.reshape(parts, -1, 1) * scores) for gap in (gaps + v for v in values))
    return np.stack([gradient.var(axis=1, ddof=1).sum(axis=1) for gradient in gradients], axis=1)


def parabola_vertex(heights: np.ndarray) -> np.ndarray:
    """Return the minimiser of parabolas through (`PROBES`, heights); heights (..., 3) -> (...)."""
    square, slope, _ = np.polyfit(PROBES, heights.reshape(-1, len(PROBES)).T, 2)
    return (-slope / (2 * square)).reshape(heights.shape[:-1])


def fit_regression(shares: np.ndarray, rewards: np.ndarray, beta: float, value: float) -> np.ndarray:
    """Minimise sum_y shares(y) (beta ln(pi(y) / pi_ref(y)) + value - rewards(y))^2 by descent from the reference.

    Args:
        shares: share of each response in the sample, (m,).
        rewards: reward of each response, (m,).
        beta: KL coefficient.
        value: V-hat.

    Returns:
        A softmax policy, (m,).
    """
    from scipy.optimize import minimize

    def loss(logits: np.ndarray) -> tuple[float, np.ndarray]:
        logs = logits - np.logaddexp.reduce(logits)
        gaps = beta * (logs + np.log(len(logits))) + value - rewards
        weights = 2 * beta * shares * gaps
        return float(shares @ gaps**2), weights - np.exp(logs) * weights.sum()

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
    best = minimize(loss, np.zeros_like(shares), jac=True, method="L-BFGS-B", options=options)
    return softmax(best.x)


def count_passes(lab: Lab, policy: Any, tries: int, groups: int, seed: int) -> np.ndarray:
    """Answer each prompt in `groups` groups of `tries` responses; return which groups solve it, bool (X, groups)."""
    prompts = np.repeat(np.arange(lab.setting.num_prompts), groups)
    played = lab.simulate(policy, len(prompts) * tries, seed, group_size=tries, prompts=prompts)
    return (played.rewards.reshape(-1, groups, tries) > 0).any(axis=2)
