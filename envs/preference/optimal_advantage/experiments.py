"""What claims about OptimalAdvantage predict and measure.

Predictions are the closed forms of `optimal_value` and of `advantage_regression` beside it.
Measurements know sampled responses and their rewards alone: they average gradients of single responses, apply the
estimate of A*-PO to groups of the reference, fit the regression to a fixed sample, or train "astar-po". Intervals are
three standard errors wide on each side.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import Interval, mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.numerics import softmax
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.views import View
from theorybench.envs.preference.optimal_advantage.optimal_value import (
    estimate_moments,
    estimated_value,
    optimal_success,
    optimal_value,
)
from theorybench.envs.preference.optimal_advantage.oracle import OptimalAdvantageOracle
from theorybench.envs.preference.optimal_advantage.regression import (
    best_value,
    gradient_variance,
    objective_gradient,
    off_policy_success,
    path_probs,
)
from theorybench.envs.preference.optimal_advantage.setting import OptimalAdvantage

#: One prompt of which a tenth of the responses is right: 2 of 20.
ONE_PROMPT: dict[str, Any] = {
    "num_prompts": 1,
    "num_responses": 20,
    "accuracy": 0.1,
    "concentration": 1e9,
    "zero_share": 0.0,
}
#: V-hat at which variances are measured: three points fix a parabola.
PROBES = np.array([0.0, 0.5, 1.0])
#: Parts of a simulation, for intervals of what is not a mean.
PARTS = 64


def on_path(setting: OptimalAdvantage, tilt: float) -> TablePolicy:
    """Give the policy pi_ref e^{tilt r / beta} / Z: the reference at 0, the optimum at 1."""
    return TablePolicy(View.of(setting, "prompt"), path_probs(setting.tables.rewards, setting.beta, tilt))


def optimal_gap(lab: Lab, policy: TablePolicy, episodes: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simulate, and give each response's beta ln(pi / pi_ref) - r, its prompt and its action, (episodes,) each."""
    played, setting = lab.simulate(policy, episodes, seed), lab.setting
    ratios = played.log_probs[:, 0] + np.log(setting.num_responses)
    return setting.beta * ratios - played.rewards, played.prompts, played.actions[:, 0]


@dataclasses.dataclass(frozen=True)
class MeanGradient:
    """Component of the expected gradient of stage 2 along -grad J, at a policy with random logits.

    Attributes:
        value: V-hat, the same for every prompt.
        episodes: responses that are averaged.
    """

    value: float
    episodes: int = 2**20

    def policy(self, setting: OptimalAdvantage) -> TablePolicy:
        """Give softmax of logits of deviation 1, the same whatever the seed."""
        shape = setting.num_prompts, setting.num_responses
        return TablePolicy(View.of(setting, "prompt"), softmax(np.random.default_rng(0).normal(size=shape)))

    def predicted(self, oracle: Oracle[OptimalAdvantage]) -> float:
        """2 beta |grad J|, J the mean over prompts."""
        setting = oracle.setting
        return float(2 * setting.beta * np.linalg.norm(self._ascent(setting)))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over responses of grad L = 2 beta A (e_y - pi), projected on the direction."""
        setting = lab.setting
        policy, ascent = self.policy(setting), self._ascent(setting)
        gaps, prompts, actions = optimal_gap(lab, policy, self.episodes, seed)
        descent = -ascent / np.linalg.norm(ascent)
        along = descent[prompts, actions] - np.sum(policy.table * descent, axis=1)[prompts]
        return mean_interval(2 * setting.beta * (gaps + self.value) * along)

    def _ascent(self, setting: OptimalAdvantage) -> np.ndarray:
        rewards = setting.tables.rewards
        return objective_gradient(rewards, self.policy(setting).table, setting.beta) / setting.num_prompts


def sampled_variances(
    lab: Lab, tilt: float, values: np.ndarray, episodes: int, seed: int, *, parts: int = PARTS
) -> np.ndarray:
    """Give the sample variance of the gradient of stage 2 at V-hat in `values`, on a setting of one prompt.

    Returns:
        The trace of the covariance in each of the parts of the episodes, float64 (parts, values).
    """
    policy = on_path(lab.setting, tilt)
    gaps, _, actions = optimal_gap(lab, policy, episodes, seed)
    scores = (np.eye(lab.setting.num_responses)[actions] - policy.table).reshape(parts, episodes // parts, -1)
    gradients = (2 * lab.setting.beta * (gap.reshape(parts, -1, 1) * scores) for gap in (gaps + v for v in values))
    return np.stack([gradient.var(axis=1, ddof=1).sum(axis=1) for gradient in gradients], axis=1)


def parabola_vertex(heights: np.ndarray) -> np.ndarray:
    """Give where parabolas through (`PROBES`, heights) are lowest; heights (..., 3) -> (...)."""
    square, slope, _ = np.polyfit(PROBES, heights.reshape(-1, len(PROBES)).T, 2)
    return (-slope / (2 * square)).reshape(heights.shape[:-1])


@dataclasses.dataclass(frozen=True)
class LeastVariance:
    """The V-hat at which the gradient of stage 2 varies least, on a setting of one prompt.

    Attributes:
        tilt: of the policy, from 0 (the reference) to 1 (the optimum).
        episodes: responses from which variances are measured.
    """

    tilt: float
    episodes: int = 2**17

    def predicted(self, oracle: Oracle[OptimalAdvantage]) -> float:
        """E[(r - beta ln(pi / pi_ref)) w] / E w, w = |grad ln pi|^2."""
        setting = oracle.setting
        rewards = setting.tables.rewards
        return float(best_value(rewards, path_probs(rewards, setting.beta, self.tilt), setting.beta)[0])

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Vertex of the parabola through the variances at three V-hat; mean over parts."""
        return mean_interval(parabola_vertex(sampled_variances(lab, self.tilt, PROBES, self.episodes, seed)))


@dataclasses.dataclass(frozen=True)
class VarianceAtOptimalValue:
    """Variance of the gradient of stage 2 at V-hat = V* over that at V-hat = 0, on a setting of one prompt.

    Attributes:
        tilt: of the policy, from 0 (the reference) to 1 (the optimum).
        episodes: responses from which variances are measured.
    """

    tilt: float
    episodes: int = 2**17

    def predicted(self, oracle: Oracle[OptimalAdvantage]) -> float:
        """The ratio of the closed forms."""
        setting = oracle.setting
        rewards, value = setting.tables.rewards, optimal_value(setting.chances, setting.beta)
        probs = path_probs(rewards, setting.beta, self.tilt)
        at_optimal, at_zero = (gradient_variance(rewards, probs, setting.beta, v) for v in (value, 0.0))
        return float(at_optimal[0] / at_zero[0])

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Ratio of mean sample variances, its interval from the parts' deviations from it."""
        setting = lab.setting
        values = np.append(optimal_value(setting.chances, setting.beta), 0.0)
        at_optimal, at_zero = sampled_variances(lab, self.tilt, values, self.episodes, seed).T
        ratio = at_optimal.mean() / at_zero.mean()
        return mean_interval(ratio + (at_optimal - ratio * at_zero) / at_zero.mean())


def sampled_estimates(lab: Lab, samples: int, groups: int, seed: int) -> np.ndarray:
    """Give V-hat of `groups` prompts, each from `samples` responses of the reference: float64 (groups,)."""
    played = lab.simulate(lab.oracle.reference_policy, groups * samples, seed, group_size=samples)
    return estimated_value(played.rewards.reshape(groups, samples), lab.setting.beta)


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Mean or standard deviation of V-hat, on a setting whose prompts all have the same p.

    Attributes:
        moment: 0 for the mean, 1 for the standard deviation.
        samples: N.
        groups: estimates that are drawn.
    """

    moment: int
    samples: int = 8
    groups: int = 2**16

    def predicted(self, oracle: Oracle[OptimalAdvantage]) -> float:
        """Of the exact law: k ~ Bin(N, p), V-hat = V*(k / N)."""
        setting = oracle.setting
        return estimate_moments(float(setting.chances[0]), self.samples, setting.beta)[self.moment]

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Of estimates from roll-outs; mean over parts."""
        parts = sampled_estimates(lab, self.samples, self.groups, seed).reshape(PARTS, -1)
        return mean_interval(parts.std(axis=1, ddof=1) if self.moment else parts.mean(axis=1))


@dataclasses.dataclass(frozen=True)
class OffPolicy:
    """Chance of a right response where stage 2 regresses on responses of the reference, on a setting of one prompt.

    Attributes:
        value: V-hat as a function of (p, beta).
        episodes: responses in each of `PARTS` samples.
    """

    value: Callable[[float, float], Any]
    episodes: int = 4096

    def predicted(self, oracle: Oracle[OptimalAdvantage]) -> float:
        """P(right) under the minimiser of the expected loss."""
        setting = oracle.setting
        p = float(setting.chances[0])
        return off_policy_success(p, setting.beta, float(self.value(p, setting.beta)))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """P(right) of the softmax of least squared error on a sample of the reference; mean over samples."""
        setting = lab.setting
        played = lab.simulate(lab.oracle.reference_policy, PARTS * self.episodes, seed)
        value, found = float(self.value(float(setting.chances[0]), setting.beta)), []
        for actions, rewards in zip(*(a.reshape(PARTS, -1) for a in (played.actions, played.rewards)), strict=True):
            counts = np.bincount(actions, minlength=setting.num_responses)
            earned = np.bincount(actions, rewards, setting.num_responses) / np.maximum(counts, 1)
            found.append(earned @ fit_regression(counts / counts.sum(), earned, setting.beta, value))
        return mean_interval(np.array(found))


def fit_regression(shares: np.ndarray, rewards: np.ndarray, beta: float, value: float) -> np.ndarray:
    """Minimise sum_y shares(y) (beta ln(pi(y) / pi_ref(y)) + value - rewards(y))^2 over softmax policies, numerically.

    Args:
        shares: of the sample, (m,).
        rewards: of each response, (m,).
        beta: KL coefficient.
        value: V-hat.

    Returns:
        The policy that descent from the reference finds, (m,).
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


@dataclasses.dataclass(frozen=True)
class Trained:
    """A*-PO with both temperatures at the setting's beta.

    Attributes:
        samples: N of stage 1.
        updates: of stage 2.
        episodes: of each update.
        learning_rate: of Adam.
        seeds: number of runs.
    """

    samples: int = 8
    updates: int = 600
    episodes: int = 256
    learning_rate: float = 0.03
    seeds: int = 16

    def policies(self, setting: OptimalAdvantage, lab: Lab, seed: int) -> list[Any]:
        """Train; give the policy of each run."""
        return lab.train(
            "astar-po",
            run_seeds(seed, self.seeds),
            setting.num_prompts * self.samples + self.updates * self.episodes,
            beta_1=setting.beta,
            beta_2=setting.beta,
            reference_samples=self.samples,
            episodes_per_update=self.episodes,
            learning_rate=self.learning_rate,
        )


@dataclasses.dataclass(frozen=True)
class OnPolicy:
    """Chance of a right response after A*-PO, whose V-hat is as wrong as N = 1 makes it.

    Attributes:
        training: how to train.
    """

    training: Trained = Trained(samples=1, updates=800, learning_rate=0.01)

    def predicted(self, oracle: Oracle[OptimalAdvantage]) -> float:
        """E P*."""
        setting = oracle.setting
        return float(np.mean(optimal_success(setting.chances, setting.beta)))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over runs."""
        policies = self.training.policies(lab.setting, lab, seed)
        return mean_interval(np.array([lab.oracle.evaluate(policy, ["success"])["success"] for policy in policies]))


@dataclasses.dataclass(frozen=True)
class Solved:
    """Share of the prompts that policies trained by A*-PO ever solve.

    Attributes:
        tries: responses to each prompt, of each policy.
        training: how to train.
    """

    tries: int = 1024
    training: Trained = Trained(seeds=4)

    def predicted(self, oracle: OptimalAdvantageOracle) -> float:
        """The ceiling, the share of prompts with p > 0."""
        return oracle.ceiling

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over runs of the share that one of the tries solves."""
        policies = self.training.policies(lab.setting, lab, seed)
        return mean_interval(np.array([count_passes(lab, p, self.tries, 1, seed).mean() for p in policies]))


def count_passes(lab: Lab, policy: Any, tries: int, groups: int, seed: int) -> np.ndarray:
    """Answer every prompt in `groups` groups of `tries` responses: whether one of each is right, bool (X, groups)."""
    prompts = np.repeat(np.arange(lab.setting.num_prompts), groups)
    played = lab.simulate(policy, len(prompts) * tries, seed, group_size=tries, prompts=prompts)
    return (played.rewards.reshape(-1, groups, tries) > 0).any(axis=2)


@dataclasses.dataclass(frozen=True)
class PassGain:
    """pass@K of A*-PO's policies less the reference's, both counted.

    Attributes:
        k: the K.
        groups: groups of K responses to each prompt.
        training: how to train.
    """

    k: int
    groups: int
    training: Trained = Trained(seeds=4)

    def predicted(self, oracle: Oracle[OptimalAdvantage]) -> float:
        """The optimum's: E[(1 - p)^K - (1 - P*)^K]."""
        setting = oracle.setting
        failures = 1.0 - setting.chances, 1.0 - optimal_success(setting.chances, setting.beta)
        return float(np.mean(failures[0] ** self.k - failures[1] ** self.k))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Counted on every prompt; mean over groups of those prompts' means."""
        policies = [lab.oracle.reference_policy, *self.training.policies(lab.setting, lab, seed)]
        shares = (
            count_passes(lab, policy, self.k, self.groups, 64 * seed + number).mean(axis=0)
            for number, policy in enumerate(policies)
        )
        reference, *trained = shares
        return mean_interval(np.mean(trained, axis=0) - reference)
