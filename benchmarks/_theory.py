"""What theory says of the contest on `OptimalAdvantage`: how noisy a batch's gradient is, and where GRPO's term leads.

*Noise*, exactly, of single responses against V-hat and of groups against themselves, along the path
pi ~ pi_ref e^{s r / beta} from the reference to the optimum. For one prompt, with u = r - beta ln(pi / pi_ref),
g = grad ln pi and G = E[u g], the policy's gradient is estimated from K responses by

- (u - V) g, a response at a time (A*-PO): variance E[(u - V)^2 |g|^2] - |G|^2;
- (1 / K) sum_i (u_i - mean of the group's other u) g_i (RLOO; at K = 2 REBEL's first step; at K = 8 GRPO without its
  division, were its KL term in the reward): a U-statistic of the kernel (u_1 - u_2)(g_1 - g_2) / 2, whose variance is
  [(K - 2) Var((u - E u) g) + 2 (Var u - |G|^2)] / (K (K - 1)).

A batch of 64 holds 64 prompts, or 64 / K, drawn with replacement, which adds the variance of G between prompts.

*GRPO's term* is k3 at frozen samples, whose expected gradient is that of KL(pi_ref || pi) and not of KL(pi || pi_ref):
E_pi[(1 - pi_ref / pi) g] = -E_ref[g]. Where advantages are not divided, its fixed point maximises
E r - b KL(pi_ref || pi) prompt by prompt: with s the chance of a right response, s^2 - (1 - b) s - b p = 0. Means of
groups of G that hold the response itself shrink advantages by (G - 1) / G, so that b is G / (G - 1) times the weight.
"""

import numpy as np
from _contest import BATCH, GRPO

from theorybench.envs.preference.advantage_regression import (
    gradient_variance,
    objective_gradient,
    path_probs,
    penalised_rewards,
)
from theorybench.envs.preference.optimal_advantage import OptimalAdvantage
from theorybench.envs.preference.optimal_value import optimal_value


def tilt_of(setting: OptimalAdvantage, score: float) -> float:
    """Return the s of the path's policy with this score, by bisection: the score grows along the path."""
    rewards, beta = setting.tables.rewards, setting.beta
    low, high = 0.0, 1.0
    start, best = rewards.mean(), optimal_value(setting.chances, beta).mean()
    for _ in range(50):
        middle = (low + high) / 2
        probs = path_probs(rewards, beta, middle)
        value = np.sum(probs * penalised_rewards(rewards, probs, beta), axis=1).mean()
        low, high = (middle, high) if value - start < score * (best - start) else (low, middle)
    return low


def of_values(setting: OptimalAdvantage, probs: np.ndarray, samples: int | None) -> np.ndarray:
    """Return each prompt's variance with V-hat from N samples of the reference, averaged over them; None for V*."""
    rewards, beta = setting.tables.rewards, setting.beta
    if samples is None:
        return gradient_variance(rewards, probs, beta, optimal_value(setting.chances, beta)) / (4 * beta**2)
    from scipy.stats import binom

    total = np.zeros(len(rewards))
    for right in range(samples + 1):
        value = float(optimal_value(np.array([right / samples]), beta)[0])
        total += binom.pmf(right, samples, setting.chances) * gradient_variance(rewards, probs, beta, value)
    return total / (4 * beta**2)


def of_groups(setting: OptimalAdvantage, probs: np.ndarray, size: int) -> np.ndarray:
    """Return each prompt's variance of the mean over a group of K with leave-one-out baselines."""
    rewards, beta = setting.tables.rewards, setting.beta
    worth = penalised_rewards(rewards, probs, beta)
    mean = np.sum(probs * worth, axis=1)
    spread = np.sum(probs * (worth - mean[:, None]) ** 2, axis=1)
    signal = np.sum(objective_gradient(rewards, probs, beta) ** 2, axis=1)
    centred = gradient_variance(rewards, probs, beta, mean) / (4 * beta**2)
    return ((size - 2) * centred + 2 * np.maximum(spread - signal, 0.0)) / (size * (size - 1))


def noise_to_signal(setting: OptimalAdvantage, score: float, *, samples: int | None = None, group: int = 1) -> float:
    """Return the variance of a batch's gradient over the squared length of its mean, at a score on the path.

    Args:
        setting: whose table of logits is trained.
        score: 0 for the reference, below 1.
        samples: N of V-hat, or None for V*; for groups of one.
        group: responses that share a prompt.
    """
    probs = path_probs(setting.tables.rewards, setting.beta, tilt_of(setting, score))
    own = of_values(setting, probs, samples) if group == 1 else of_groups(setting, probs, group)
    lengths = np.sum(objective_gradient(setting.tables.rewards, probs, setting.beta) ** 2, axis=1).mean()
    prompts = setting.num_prompts
    return float(group / BATCH * (own.mean() + lengths * (1 - 1 / prompts)) / (lengths / prompts))


def score_of_grpo(setting: OptimalAdvantage, weight: float) -> float:
    """Return the score of GRPO's fixed point, its `scale_rewards` being "none".

    Args:
        setting: whose table of logits is trained.
        weight: of its KL term, above 0.
    """
    p, beta, size = setting.chances[setting.chances > 0], setting.beta, GRPO.fixed["group_size"]
    b = weight * size / (size - 1)
    s = (1 - b + np.sqrt((1 - b) ** 2 + 4 * b * p)) / 2
    kl = s * np.log(s / p) + (1 - s) * np.log((1 - s) / (1 - p))
    return float(np.sum(s - beta * kl - p) / np.sum(optimal_value(p, beta) - p))
