"""Experiments of the claims about OptimalAdvantage: what they predict and what they measure.

Predictions are the closed forms of `optimal_value`, `regression` and `pass_at_k`. Measurements use only sampled
responses and their rewards (`sampling`), or train "astar-po" and evaluate the policy of each run exactly: intervals of
trained policies are those of independent runs.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import Sampled, SampleMean, metric_of
from theorybench.envs.core.evidence.interval import Interval, mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds, seed_of
from theorybench.envs.core.numerics import softmax
from theorybench.envs.preference.optimal_advantage.optimal_value import estimate_moments, estimated_value, optimal_value
from theorybench.envs.preference.optimal_advantage.oracle import OptimalAdvantageOracle
from theorybench.envs.preference.optimal_advantage.pass_at_k import filtered_pass, pass_at, reference_tries
from theorybench.envs.preference.optimal_advantage.regression import (
    best_value,
    expected_training,
    gradient_variance,
    objective_gradient,
    off_policy_success,
    path_probs,
    stationary_divergence,
)
from theorybench.envs.preference.optimal_advantage.sampling import (
    PARTS,
    PROBES,
    count_passes,
    fit_regression,
    optimal_gap,
    parabola_vertex,
    sampled_variances,
)
from theorybench.envs.preference.optimal_advantage.setting import OptimalAdvantage

#: Number of responses from which the variance and the mean of gradients are measured.
VARIED, AVERAGED = 2**17, 2**20
#: Number of repetitions of stage 1 from which each run counts the prompts that it skips.
DRAWS = 4096


# The two stages, in rollouts of fixed policies.


def mean_gradient(value: float) -> SampleMean:
    """The expected gradient of stage 2 along -grad J is 2 beta |grad J|, J the mean over prompts, at any V-hat.

    Measured at a policy with random logits and V-hat = `value` for every prompt, as the mean of
    grad L = 2 beta A (e_y - pi), projected on the direction.
    """

    def random_policy(setting: OptimalAdvantage) -> tuple[np.ndarray, np.ndarray]:
        """Return the softmax of logits of standard deviation 1, the same for every seed, and its grad J."""
        rewards = setting.tables.rewards
        probs = softmax(np.random.default_rng(0).normal(size=rewards.shape))
        return probs, objective_gradient(rewards, probs, setting.beta) / len(rewards)

    def sample(lab: Lab, seed: int) -> np.ndarray:
        probs, ascent = random_policy(lab.setting)
        gaps, prompts, actions = optimal_gap(lab, lab.oracle.policy(probs), AVERAGED, seed)
        descent = -ascent / np.linalg.norm(ascent)
        along = descent[prompts, actions] - np.sum(probs * descent, axis=1)[prompts]
        return np.asarray(2 * lab.setting.beta * (gaps + value) * along)

    return SampleMean(
        prediction=lambda oracle: 2 * oracle.setting.beta * np.linalg.norm(random_policy(oracle.setting)[1]),
        sample=sample,
    )


def least_variance(tilt: float) -> SampleMean:
    """The V-hat at which the gradient of stage 2 varies least is E[(r - beta ln(pi / pi_ref)) w] / E w.

    w = |grad ln pi|^2; the policy has a tilt from 0 (the reference) to 1 (the optimum). Measured on one prompt as the
    vertex of the parabola through the variances at three V-hat.
    """

    def prediction(oracle: OptimalAdvantageOracle) -> float:
        rewards, beta = oracle.setting.tables.rewards, oracle.setting.beta
        return float(best_value(rewards, path_probs(rewards, beta, tilt), beta)[0])

    return SampleMean(
        prediction=prediction,
        sample=lambda lab, seed: parabola_vertex(sampled_variances(lab, tilt, PROBES, VARIED, seed)),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _VarianceRatio(Sampled):
    tilt: float  # of the policy

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Simulate; return the variances at V-hat = V* and at 0 in each part, float64 (parts, 2)."""
        values = np.append(optimal_value(lab.setting.chances, lab.setting.beta), 0.0)
        return sampled_variances(lab, self.tilt, values, VARIED, seed)

    def summary(self, found: np.ndarray) -> Interval:
        """Return the ratio of means; its interval comes from the parts' deviations from it."""
        at_optimal, at_zero = found.T
        ratio = at_optimal.mean() / at_zero.mean()
        return mean_interval(ratio + (at_optimal - ratio * at_zero) / at_zero.mean())


def variance_at_optimal_value(tilt: float) -> Sampled:
    """The variance of the gradient of stage 2 at V-hat = V* divided by that at V-hat = 0; `tilt` of the policy.

    Measured on one prompt.
    """

    def prediction(oracle: OptimalAdvantageOracle) -> float:
        rewards, beta = oracle.setting.tables.rewards, oracle.setting.beta
        probs = path_probs(rewards, beta, tilt)
        at_optimal, at_zero = (gradient_variance(rewards, probs, beta, v) for v in (oracle.values, 0.0))
        return float(at_optimal[0] / at_zero[0])

    return _VarianceRatio(prediction=prediction, tilt=tilt)


def estimate(moment: int) -> SampleMean:
    """Mean (moment 0) or standard deviation (1) of V-hat from 8 samples, if all p are the same."""

    def prediction(oracle: OptimalAdvantageOracle) -> float:
        return estimate_moments(float(oracle.setting.chances[0]), 8, oracle.setting.beta)[moment]

    def sample(lab: Lab, seed: int) -> np.ndarray:
        played = lab.simulate(lab.oracle.reference_policy, 2**19, seed, group_size=8)
        parts = estimated_value(played.rewards.reshape(PARTS, -1, 8), lab.setting.beta)
        return np.asarray(parts.std(axis=1, ddof=1) if moment else parts.mean(axis=1))

    return SampleMean(prediction=prediction, sample=sample)


def off_policy(value: float | None = None) -> SampleMean:
    """Success probability when stage 2 regresses on responses of the reference, in a setting with one prompt.

    Predicted by the minimiser of the expected loss, measured by the softmax with the least squared error on samples.

    Args:
        value: V-hat; None for V* in the prediction, and for what stage 1 makes of as many responses in the measurement.
    """

    def prediction(oracle: OptimalAdvantageOracle) -> float:
        p, beta = float(oracle.setting.chances[0]), oracle.setting.beta
        return off_policy_success(p, beta, float(oracle.values[0]) if value is None else value)

    def sample(lab: Lab, seed: int) -> np.ndarray:
        setting, found = lab.setting, []
        played = lab.simulate(lab.oracle.reference_policy, 2 * PARTS * 4096, seed)
        stages = zip(*(a.reshape(PARTS, 2, -1) for a in (played.actions, played.rewards)), strict=True)
        for (_, actions), (before, rewards) in stages:
            guess = float(estimated_value(before, setting.beta)) if value is None else value
            counts = np.bincount(actions, minlength=setting.num_responses)
            earned = np.bincount(actions, rewards, setting.num_responses) / np.maximum(counts, 1)
            found.append(earned @ fit_regression(counts / counts.sum(), earned, setting.beta, guess))
        return np.array(found)

    return SampleMean(prediction=prediction, sample=sample)


# Policies that A*-PO trains.


@dataclasses.dataclass(frozen=True)
class Training:
    """A*-PO with both temperatures at the setting's beta, by plain gradient descent.

    With batches that are large beside the learning rate the mean over runs is that of exact gradients; see
    `regression.expected_training`.
    """

    samples: int = 8  # the number N of responses per prompt in stage 1
    updates: int = 200  # number of updates in stage 2
    episodes: int = 256  # number of episodes per update
    learning_rate: float = 20.0  # step size of gradient descent
    seeds: int = 16  # number of runs

    def policies(self, lab: Lab, seed: int) -> list[Any]:
        """Train; return the policy of each run."""
        return lab.train(
            "astar-po",
            run_seeds(seed, self.seeds),
            lab.setting.num_prompts * self.samples + self.updates * self.episodes,
            beta_1=lab.setting.beta,
            beta_2=lab.setting.beta,
            reference_samples=self.samples,
            episodes_per_update=self.episodes,
            learning_rate=self.learning_rate,
            optimizer="sgd",
        )

    def expected(self, setting: OptimalAdvantage) -> np.ndarray:
        """Return P(right) of each prompt after so many updates with exact gradients, float64 (X,)."""
        rewards = setting.tables.rewards
        probs = expected_training(rewards, setting.beta, self.learning_rate, self.updates)
        return np.asarray((probs * rewards).sum(axis=1))


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedValue(Sampled):
    """Mean over runs of a number that an exact evaluation of the run's policy gives."""

    training: Training  # how the policies are trained
    found: Callable[[OptimalAdvantageOracle, Any], float]  # (oracle, policy) -> the number

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Train; return the number of each run, float64 (seeds,)."""
        return np.array([self.found(lab.oracle, policy) for policy in self.training.policies(lab, seed)])


def success(training: Training) -> TrainedValue:
    """Success probability after A*-PO, which is that of the optimum, E P*."""
    return TrainedValue(
        prediction=lambda oracle: np.mean(oracle.optimal_chances),
        training=training,
        found=lambda oracle, policy: metric_of(oracle, policy, "success"),
    )


def residual_divergence(training: Training) -> TrainedValue:
    """KL divergence to the optimum at which steps of constant size end: that of the noise of a wrong V-hat.

    All p of the setting are the same, and training is so long that nothing of the start is left.
    """

    def prediction(oracle: OptimalAdvantageOracle) -> float:
        setting = oracle.setting
        mean, deviation = estimate_moments(float(setting.chances[0]), training.samples, setting.beta)
        squared = (mean - float(oracle.values[0])) ** 2 + deviation**2
        optimum = oracle.table(oracle.optimal_policy)
        return float(stationary_divergence(optimum, training.learning_rate, training.episodes, squared).mean())

    return TrainedValue(
        prediction=prediction,
        training=training,
        found=lambda oracle, policy: metric_of(oracle, policy, "kl_to_optimal"),
    )


def pass_gain(training: Training, k: int, *, than: int | None = None) -> TrainedValue:
    """pass@K after A*-PO minus pass@J of the reference: E[(1 - p)^J - (1 - s)^K], s after so many exact updates.

    Args:
        training: how the policies are trained.
        k: K, tries after training.
        than: J, tries of the reference; as many by default.
    """
    other = than or k

    def prediction(oracle: OptimalAdvantageOracle) -> float:
        failures = 1.0 - oracle.setting.chances, 1.0 - training.expected(oracle.setting)
        return float(np.mean(failures[0] ** other - failures[1] ** k))

    def found(oracle: OptimalAdvantageOracle, policy: Any) -> float:
        before = metric_of(oracle, oracle.reference_policy, f"pass@{other}")
        return metric_of(oracle, policy, f"pass@{k}") - before

    return TrainedValue(prediction=prediction, training=training, found=found)


def tries_worth(training: Training) -> TrainedValue:
    """Tries of the reference that one try after A*-PO is worth, T = 1 + V* / (beta ln(1 / (1 - p))), if all p agree.

    Measured as the ratio of the logarithms of the probabilities of a wrong response, after A*-PO and of the reference.
    """

    def found(oracle: OptimalAdvantageOracle, policy: Any) -> float:
        after, before = (metric_of(oracle, one, "success") for one in (policy, oracle.reference_policy))
        return math.log1p(-after) / math.log1p(-before)

    return TrainedValue(
        prediction=lambda oracle: float(reference_tries(oracle.setting.chances[0], oracle.setting.beta)),
        training=training,
        found=found,
    )


def filtered(training: Training, k: int) -> SampleMean:
    """pass@K after A*-PO of a table if prompts that none of N samples of the reference solved are skipped.

    A table has a row for each prompt, so a skipped prompt stays at the reference and does not affect the others: the
    filtered policy has the trained row if stage 1 saw a right response, and the reference's otherwise. Its pass@K is
    E[1 - q^(N + K) - (1 - q^N) (1 - s)^K], q = 1 - p, with s after so many updates with exact gradients. Each run
    counts which prompts many repetitions of stage 1 skip.
    """

    def prediction(oracle: OptimalAdvantageOracle) -> float:
        after = training.expected(oracle.setting)
        return float(np.mean(filtered_pass(oracle.setting.chances, after, training.samples, k)))

    def sample(lab: Lab, seed: int) -> np.ndarray:
        found, reference = [], lab.oracle.reference_policy
        for number, policy in enumerate(training.policies(lab, seed)):
            kept = count_passes(lab, reference, training.samples, DRAWS, seed_of(seed, number)).mean(axis=1)
            trained, untrained = (pass_at(lab.oracle.chances(one), k) for one in (policy, reference))
            found.append(np.mean(kept * trained + (1.0 - kept) * untrained))
        return np.array(found)

    return SampleMean(prediction=prediction, sample=sample)
