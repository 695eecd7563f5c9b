"""Experiments of the claims about OptimalAdvantage: what they predict and what they measure.

Predictions are the closed forms of `optimal_value`, `regression` and `pass_at_k`. Measurements use only sampled
responses and their rewards (`sampling`), or train "astar-po". Intervals are three standard errors wide on each side.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import SampleMean
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.numerics import softmax
from theorybench.envs.preference.optimal_advantage.optimal_value import estimate_moments, estimated_value, optimal_value
from theorybench.envs.preference.optimal_advantage.oracle import OptimalAdvantageOracle
from theorybench.envs.preference.optimal_advantage.pass_at_k import filtered_pass, pass_at, reference_tries
from theorybench.envs.preference.optimal_advantage.regression import (
    best_value,
    gradient_variance,
    objective_gradient,
    off_policy_success,
    path_probs,
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
#: Number of groups of K responses to each prompt, or of draws of stage 1, from which pass@K is estimated.
GROUPS = 2048


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


def variance_at_optimal_value(tilt: float) -> SampleMean:
    """The variance of the gradient of stage 2 at V-hat = V* divided by that at V-hat = 0; `tilt` of the policy.

    Measured on one prompt; the interval comes from the deviations of the parts from the ratio of means.
    """

    def prediction(oracle: OptimalAdvantageOracle) -> float:
        rewards, beta = oracle.setting.tables.rewards, oracle.setting.beta
        probs = path_probs(rewards, beta, tilt)
        at_optimal, at_zero = (gradient_variance(rewards, probs, beta, v) for v in (oracle.values, 0.0))
        return float(at_optimal[0] / at_zero[0])

    def sample(lab: Lab, seed: int) -> np.ndarray:
        values = np.append(optimal_value(lab.setting.chances, lab.setting.beta), 0.0)
        at_optimal, at_zero = sampled_variances(lab, tilt, values, VARIED, seed).T
        ratio = at_optimal.mean() / at_zero.mean()
        return np.asarray(ratio + (at_optimal - ratio * at_zero) / at_zero.mean())

    return SampleMean(prediction=prediction, sample=sample)


def estimate(moment: int) -> SampleMean:
    """Mean (moment 0) or standard deviation (1) of V-hat from 8 samples, if all p are the same."""

    def prediction(oracle: OptimalAdvantageOracle) -> float:
        return estimate_moments(float(oracle.setting.chances[0]), 8, oracle.setting.beta)[moment]

    def sample(lab: Lab, seed: int) -> np.ndarray:
        played = lab.simulate(lab.oracle.reference_policy, 2**19, seed, group_size=8)
        parts = estimated_value(played.rewards.reshape(PARTS, -1, 8), lab.setting.beta)
        return np.asarray(parts.std(axis=1, ddof=1) if moment else parts.mean(axis=1))

    return SampleMean(prediction=prediction, sample=sample)


def off_policy(value: Callable[[float, float], Any]) -> SampleMean:
    """Success probability when stage 2 regresses on responses of the reference, in a setting with one prompt.

    Predicted by the minimiser of the expected loss with V-hat = value(p, beta), measured by the softmax with the least
    squared error on samples.
    """

    def prediction(oracle: OptimalAdvantageOracle) -> float:
        p, beta = float(oracle.setting.chances[0]), oracle.setting.beta
        return off_policy_success(p, beta, float(value(p, beta)))

    def sample(lab: Lab, seed: int) -> np.ndarray:
        setting = lab.setting
        played = lab.simulate(lab.oracle.reference_policy, PARTS * 4096, seed)
        guess, found = float(value(float(setting.chances[0]), setting.beta)), []
        for actions, rewards in zip(*(a.reshape(PARTS, -1) for a in (played.actions, played.rewards)), strict=True):
            counts = np.bincount(actions, minlength=setting.num_responses)
            earned = np.bincount(actions, rewards, setting.num_responses) / np.maximum(counts, 1)
            found.append(earned @ fit_regression(counts / counts.sum(), earned, setting.beta, guess))
        return np.array(found)

    return SampleMean(prediction=prediction, sample=sample)


# Policies that A*-PO trains, long enough that the remaining gap is small compared with a claim's tolerance.


@dataclasses.dataclass(frozen=True)
class Training:
    """A*-PO with both temperatures at the setting's beta."""

    samples: int = 8  # the number N of responses per prompt in stage 1
    updates: int = 600  # number of updates in stage 2
    episodes: int = 256  # number of episodes per update
    learning_rate: float = 0.03  # learning rate of Adam
    seeds: int = 4  # number of runs

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
        )


def success(training: Training) -> SampleMean:
    """Success probability after A*-PO, which is that of the optimum, E P*."""

    def sample(lab: Lab, seed: int) -> np.ndarray:
        return np.array([lab.oracle.chances(policy).mean() for policy in training.policies(lab, seed)])

    return SampleMean(prediction=lambda oracle: np.mean(oracle.optimal_chances), sample=sample)


def solved_share() -> SampleMean:
    """Share of prompts solved in 1024 tries of policies trained by A*-PO: that of prompts with p > 0."""

    def sample(lab: Lab, seed: int) -> np.ndarray:
        policies = Training().policies(lab, seed)
        return np.array([count_passes(lab, policy, 1024, 1, seed).mean() for policy in policies])

    return SampleMean(prediction=lambda oracle: oracle.ceiling, sample=sample)


def pass_gain(k: int, groups: int) -> SampleMean:
    """pass@K of A*-PO's policies minus the reference's: E[(1 - p)^K - (1 - P*)^K].

    Estimated on every prompt from groups of K responses; the samples are the groups' means over prompts.
    """

    def prediction(oracle: OptimalAdvantageOracle) -> float:
        failures = 1.0 - oracle.setting.chances, 1.0 - oracle.optimal_chances
        return float(np.mean(failures[0] ** k - failures[1] ** k))

    def sample(lab: Lab, seed: int) -> np.ndarray:
        policies = [lab.oracle.reference_policy, *Training().policies(lab, seed)]
        reference, *trained = (
            count_passes(lab, policy, k, groups, 64 * seed + number).mean(axis=0)
            for number, policy in enumerate(policies)
        )
        return np.asarray(np.mean(trained, axis=0) - reference)

    return SampleMean(prediction=prediction, sample=sample)


def one_against(k: int, training: Training) -> SampleMean:
    """pass@1 after A*-PO minus pass@K of the reference, E P* - E[1 - (1 - p)^K]; estimated as in `pass_gain`."""

    def sample(lab: Lab, seed: int) -> np.ndarray:
        policies = training.policies(lab, seed)
        passed = [count_passes(lab, p, 1, GROUPS, 64 * seed + number) for number, p in enumerate(policies)]
        reference = count_passes(lab, lab.oracle.reference_policy, k, GROUPS, 64 * seed + 63)
        return np.asarray(np.mean(passed, axis=0).mean(axis=0) - reference.mean(axis=0))

    return SampleMean(
        prediction=lambda oracle: np.mean(oracle.optimal_chances - pass_at(oracle.setting.chances, k)), sample=sample
    )


def filtered(samples: int, k: int, training: Training) -> SampleMean:
    """pass@K after A*-PO of a table if prompts that none of N samples of the reference solved are skipped.

    A table has a row for each prompt, so a skipped prompt stays at the reference and does not affect the others: the
    filtered policy has the trained row if stage 1 saw a right response, and the reference's otherwise. Its pass@K is
    E[1 - q^(N + K) - (1 - q^N) (1 - P*)^K], q = 1 - p.
    """

    def prediction(oracle: OptimalAdvantageOracle) -> float:
        return float(np.mean(filtered_pass(oracle.setting.chances, oracle.optimal_chances, samples, k)))

    def sample(lab: Lab, seed: int) -> np.ndarray:
        found, reference = [], lab.oracle.reference_policy
        for number, policy in enumerate(training.policies(lab, seed)):
            key = 64 * seed + 3 * number
            kept = count_passes(lab, reference, samples, GROUPS, key)
            passed = (count_passes(lab, p, k, GROUPS, key + i) for i, p in enumerate((policy, reference), 1))
            found.append(np.where(kept, *passed).mean(axis=0))
        return np.concatenate(found)

    return SampleMean(prediction=prediction, sample=sample)


def tries_worth(training: Training) -> SampleMean:
    """Tries of the reference that one try after A*-PO is worth, T = 1 + V* / (beta ln(1 / (1 - p))), if all p agree.

    Measured as the ratio of the logarithms of the shares of wrong responses, after A*-PO and of the reference.
    """

    def sample(lab: Lab, seed: int) -> np.ndarray:
        worth = []
        for number, policy in enumerate(training.policies(lab, seed)):
            key, pair = 64 * seed + 2 * number, (policy, lab.oracle.reference_policy)
            passed = (count_passes(lab, p, 1, 2 * GROUPS, key + i).mean() for i, p in enumerate(pair))
            after, before = (np.log(1.0 - share) for share in passed)
            worth.append(after / before)
        return np.array(worth)

    return SampleMean(
        prediction=lambda oracle: float(reference_tries(oracle.setting.chances[0], oracle.setting.beta)),
        sample=sample,
    )


def distance_from_reference(training: Training) -> SampleMean:
    """How far A*-PO's policies move on prompts without a right response, where every residual of the regression is 0.

    The largest total variation distance to the reference over these prompts.
    """

    def sample(lab: Lab, seed: int) -> np.ndarray:
        unsolvable = lab.setting.chances == 0
        tables = np.stack([lab.oracle.table(policy)[unsolvable] for policy in training.policies(lab, seed)])
        return np.asarray(np.abs(tables - 1 / lab.setting.num_responses).sum(axis=-1).max(axis=-1) / 2)

    return SampleMean(prediction=lambda oracle: 0.0, sample=sample)
