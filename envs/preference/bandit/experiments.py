"""Experiments of the claims about PreferenceBandit: exact learners in the linear softmax class.

Learners fit theta to the labels of a round, starting at the round's theta_t with a ridge of 1e-6 to theta_t. Trained
policies are evaluated exactly; intervals cover the randomness of the labels.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import Sampled
from theorybench.envs.core.evidence.interval import Interval, ratio_of_means, share_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.policy import LinearPolicy
from theorybench.envs.preference.bandit.oracle import PreferenceBanditOracle

#: Hyper-parameters of exact learning in the linear softmax class.
EXACT: dict[str, Any] = {"solver": "newton", "policy": "linear"}
#: Estimates of |theta*| in one coordinate between which the cost of a sampler is computed; hardly any are beyond.
SPREAD = (-2.0, 2.6)
#: Maximum number of labels of all runs that train together, which bounds memory.
LABELS_TOGETHER = 4_000_000


def groups(seed: int, seeds: int, labels: int) -> list[range]:
    """Split the runs of a repetition, with `labels` labels each, into groups that fit into memory."""
    numbers, together = run_seeds(seed, seeds), max(1, LABELS_TOGETHER // labels)
    return [numbers[i : i + together] for i in range(0, seeds, together)]


def learning_curves(
    lab: Lab,
    agent: str,
    seed: int,
    seeds: int,
    labels: int,
    names: Sequence[str],
    *,
    rounds: int = 1,
    last: bool = False,
    **hyperparameters: Any,
) -> np.ndarray:
    """Train in rounds of `labels`; return metrics after each round, or the last, float64 (seeds, rounds, names)."""
    options = EXACT | {"rounds": rounds} | hyperparameters
    traces = [
        trace
        for group in groups(seed, seeds, labels * rounds)
        for trace in lab.trace(agent, group, labels * rounds, points=1 if last else rounds, **options)
    ]
    values = [[lab.oracle.evaluate(policy, names) for _, policy in trace] for trace in traces]
    return np.array([[[point[name] for name in names] for point in run] for run in values])


def final_values(lab: Lab, agent: str, seed: int, seeds: int, labels: int, metric: str, **options: Any) -> np.ndarray:
    """Train as `learning_curves` does; return one metric after the last round, float64 (seeds,)."""
    return learning_curves(lab, agent, seed, seeds, labels, [metric], last=True, **options)[:, -1, 0]


def batch(delta: float) -> Callable[[PreferenceBanditOracle], int]:
    """Return n*(delta), the number of labels with which about a fraction delta of runs has a separated coordinate."""
    return lambda oracle: math.ceil(oracle.transition.batch_threshold(delta))


#: The number of labels of a round with which hardly any run has a separated coordinate.
safe_batch = batch(1e-5)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Learner(Sampled):
    """An exact learner in rounds of n labels each."""

    agent: str = "dpo-on-policy"  # its registered name
    labels: Callable[[PreferenceBanditOracle], int] = safe_batch  # n, given the oracle
    rounds: int = 1  # number of rounds
    seeds: int = 200  # number of runs
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # further hyper-parameters
    metric: str = "error"  # "coverage" or "error"

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Train; return the metric of each run after the last round, float64 (seeds,)."""
        n, options = self.labels(lab.oracle), {"rounds": self.rounds, **self.options}
        return final_values(lab, self.agent, seed, self.seeds, n, self.metric, **options)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SmallShare(_Learner):
    """Share of the runs that end with a small error or coverage."""

    level: float  # the largest value that counts as small

    def summary(self, found: np.ndarray) -> Interval:
        """Return the share and its exact interval."""
        return share_interval(found <= self.level)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScaledError(_Learner):
    """n times the mean error after the last round."""

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Train; return n ||theta - theta*||^2 of each run, float64 (seeds,)."""
        return self.labels(lab.oracle) * super().values(lab, seed)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfflineRatio(Sampled):
    """Ratio of the mean error of offline DPO to that of on-policy DPO, with the same total number of labels."""

    seeds: int  # number of runs of each
    labels: Callable[[PreferenceBanditOracle], int]  # n per round, given the oracle
    rounds: int  # number of rounds of on-policy DPO

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Train; return the errors of offline and of on-policy runs, float64 (2, seeds)."""
        n, runs = self.labels(lab.oracle), (seed, self.seeds)
        offline = final_values(lab, "dpo-offline", *runs, n * self.rounds, "error")
        return np.array([offline, final_values(lab, "dpo-on-policy", *runs, n, "error", rounds=self.rounds)])

    def summary(self, found: np.ndarray) -> Interval:
        """Return the ratio of means."""
        return ratio_of_means(*found)


def offline_ratio(
    seeds: int, *, rounds: int = 6, labels: Callable[[PreferenceBanditOracle], int] = safe_batch
) -> OfflineRatio:
    """On-policy uses only the last of T rounds: in the limit tr(Sigma* I(pi_init)^-1) / (T tr(Sigma* I(pi*)^-1)).

    On the hypercube the prediction is of runs with so many labels: see `pooled_error` and `sampler_cost`. Two rounds
    from theta_init = 3.5 have 109.5, the limit is 108.0: offline error is 5.3 % above its own, on-policy error 3.9 %.
    """

    def prediction(oracle: PreferenceBanditOracle) -> float:
        limit = oracle.offline_variance(rounds) / oracle.floor(1)
        if oracle.setting.geometry != "hypercube":
            return limit
        n = labels(oracle)
        return limit * pooled_error(oracle, n * rounds) / (1 + sampler_cost(oracle, n, rounds))

    return OfflineRatio(prediction=prediction, seeds=seeds, labels=labels, rounds=rounds)


def pooled_error(oracle: PreferenceBanditOracle, n: int) -> float:
    """Return the mean error of n pairs of the initial policy, as a multiple of its limit tr(Sigma* I(pi_init)^-1) / n.

    A coordinate learns from its informative pairs alone, n / (2 cosh^2 theta_init) of them: 75 of 41,252 at
    theta_init = 3.5. Their number and their wins are binomial, and ln(wins / losses) has a larger variance than its
    limit: see `Transition.first_round_error`.
    """
    return oracle.transition.first_round_error(n) / oracle.transition.first_round_limit


def sampler_cost(oracle: PreferenceBanditOracle, n: int, rounds: int) -> float:
    """Return the share by which the error of the last of T rounds of n labels is above the floor: T >= 2.

    Its labels are drawn from the policy of the round before, theta_t, and not from the optimum, so that the error is
    E tr(Sigma* I(pi_theta_t)^-1) / n. Coordinates are estimated independently; to first order the error is a sum over
    them, and that of one is the mean over the law of the first round's estimates with all others at theta*. In later
    rounds it is as much smaller as the error of the round before.
    """
    from scipy.interpolate import CubicSpline

    star, floor = oracle.setting.tables.theta, oracle.floor(1)
    grid = np.linspace(*SPREAD, 24)
    costs = []
    for value in grid:
        theta = star.copy()
        theta[0] = value * np.sign(star[0])
        costs.append(oracle.label_error(1, LinearPolicy(oracle.setting, theta)))
    estimate, chance = oracle.transition.first_round_estimates(n)
    found = np.exp(CubicSpline(grid, np.log(costs))(np.clip(estimate, *SPREAD)))
    share = len(star) * float((chance * (found / floor - 1)).sum())
    first = oracle.transition.first_round_error(n)
    for _ in range(rounds - 2):
        share *= (1 + share) * floor / first
        first = (1 + share) * floor
    return share


def spanning_probability(oracle: PreferenceBanditOracle, pairs: int) -> float:
    """Return P(M pairs of the initial policy differ in every coordinate): (1 - (1 - 1 / (2 cosh^2 theta_init))^M)^d."""
    return float((1 - (1 - oracle.transition.informative) ** pairs) ** oracle.setting.dimension)


def distillation_variance(oracle: PreferenceBanditOracle, repeats: int) -> float:
    """Return n times the error of reward distillation from n labels in one round of pairs of the initial policy.

    tr(Sigma* G^-1 N G^-1) / beta^2 with G = E dd^T, N = E v dd^T, d = phi - phi': least squares of the margins on
    Delta, whose variance is v / repeats. Here v is exact: `repeats` times the variance over the number k of wins of
    ln((k + 1/2) / (repeats - k + 1/2)), which tends to 1 / (P (1 - P)), P = P(y wins). By the Gauss-Markov theorem the
    limit is at least tr(Sigma* I^-1), since pairs with little noise should get more weight.
    """
    from scipy.special import expit
    from scipy.stats import binom

    setting, wins = oracle.setting, np.arange(repeats + 1)
    probs, rewards = oracle.table(oracle.initial_policy), setting.rewards
    pairs = probs[:, :, None] * probs[:, None] / len(probs)
    margins, places = np.unique(np.round(rewards[:, :, None] - rewards[:, None], 12), return_inverse=True)
    chances = binom.pmf(wins, repeats, expit(margins)[:, None])
    delta = np.log((wins + 0.5) / (repeats - wins + 0.5))
    variance = (repeats * (chances @ delta**2 - (chances @ delta) ** 2))[places].reshape(pairs.shape)
    spread, noise = (_moments(setting.tables.features, weights) for weights in (pairs, pairs * variance))
    inverse = np.linalg.inv(spread)
    return float(np.trace(oracle.optimal_covariance @ inverse @ noise @ inverse)) / setting.beta**2


def _moments(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Sum w(x, y, y') (phi - phi')(phi - phi')^T for symmetric weights (X, K, K): (d, d)."""
    columns = np.swapaxes(features, 1, 2)
    own = columns @ (weights.sum(axis=2)[:, :, None] * features)
    return 2 * (own - columns @ weights @ features).sum(axis=0)
