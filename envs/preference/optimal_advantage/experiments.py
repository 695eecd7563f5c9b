"""What claims about OptimalAdvantage predict and measure.

Predictions are the closed forms of `optimal_value`, `regression` and `pass_at_k`. Measurements know sampled responses
and their rewards alone (`sampling`), or train "astar-po". Intervals are three standard errors wide on each side.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import Interval, mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.numerics import softmax
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.views import View
from theorybench.envs.preference.optimal_advantage.optimal_value import (
    estimate_moments,
    optimal_value,
)
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
    sampled_estimates,
    sampled_variances,
)
from theorybench.envs.preference.optimal_advantage.setting import OptimalAdvantage


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
        return TablePolicy(View.of(setting), softmax(np.random.default_rng(0).normal(size=shape)))

    def predicted(self, oracle: OptimalAdvantageOracle) -> float:
        """2 beta |grad J|, J the mean over prompts."""
        return float(2 * oracle.setting.beta * np.linalg.norm(self._ascent(oracle.setting)))

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


@dataclasses.dataclass(frozen=True)
class LeastVariance:
    """The V-hat at which the gradient of stage 2 varies least, on a setting of one prompt.

    Attributes:
        tilt: of the policy, from 0 (the reference) to 1 (the optimum).
        episodes: responses from which variances are measured.
    """

    tilt: float
    episodes: int = 2**17

    def predicted(self, oracle: OptimalAdvantageOracle) -> float:
        """E[(r - beta ln(pi / pi_ref)) w] / E w, w = |grad ln pi|^2."""
        rewards, beta = oracle.setting.tables.rewards, oracle.setting.beta
        return float(best_value(rewards, path_probs(rewards, beta, self.tilt), beta)[0])

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

    def predicted(self, oracle: OptimalAdvantageOracle) -> float:
        """The ratio of the closed forms."""
        rewards, beta = oracle.setting.tables.rewards, oracle.setting.beta
        probs = path_probs(rewards, beta, self.tilt)
        at_optimal, at_zero = (gradient_variance(rewards, probs, beta, v) for v in (oracle.values, 0.0))
        return float(at_optimal[0] / at_zero[0])

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Ratio of mean sample variances, its interval from the parts' deviations from it."""
        values = np.append(optimal_value(lab.setting.chances, lab.setting.beta), 0.0)
        at_optimal, at_zero = sampled_variances(lab, self.tilt, values, self.episodes, seed).T
        ratio = at_optimal.mean() / at_zero.mean()
        return mean_interval(ratio + (at_optimal - ratio * at_zero) / at_zero.mean())


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

    def predicted(self, oracle: OptimalAdvantageOracle) -> float:
        """Of the exact law: k ~ Bin(N, p), V-hat = V*(k / N)."""
        return estimate_moments(float(oracle.setting.chances[0]), self.samples, oracle.setting.beta)[self.moment]

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

    def predicted(self, oracle: OptimalAdvantageOracle) -> float:
        """P(right) under the minimiser of the expected loss."""
        p, beta = float(oracle.setting.chances[0]), oracle.setting.beta
        return off_policy_success(p, beta, float(self.value(p, beta)))

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

    def policies(self, lab: Lab, seed: int) -> list[Any]:
        """Train; give the policy of each run."""
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


@dataclasses.dataclass(frozen=True)
class Solved:
    """Share of the prompts that policies trained by A*-PO ever solve.

    Attributes:
        tries: responses to each prompt, of each policy.
        training: how to train, here and below: long enough that what is left to the optimum is small beside the
            claim's tolerance.
    """

    tries: int = 1024
    training: Trained = Trained(seeds=4)

    def predicted(self, oracle: OptimalAdvantageOracle) -> float:
        """The ceiling, the share of prompts with p > 0."""
        return oracle.ceiling

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over runs of the share that one of the tries solves."""
        policies = self.training.policies(lab, seed)
        return mean_interval(np.array([count_passes(lab, p, self.tries, 1, seed).mean() for p in policies]))


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

    def predicted(self, oracle: OptimalAdvantageOracle) -> float:
        """The optimum's: E[(1 - p)^K - (1 - P*)^K]."""
        failures = 1.0 - oracle.setting.chances, 1.0 - oracle.optimal_chances
        return float(np.mean(failures[0] ** self.k - failures[1] ** self.k))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Counted on every prompt; mean over groups of those prompts' means."""
        policies = [lab.oracle.reference_policy, *self.training.policies(lab, seed)]
        shares = (
            count_passes(lab, policy, self.k, self.groups, 64 * seed + number).mean(axis=0)
            for number, policy in enumerate(policies)
        )
        reference, *trained = shares
        return mean_interval(np.mean(trained, axis=0) - reference)


@dataclasses.dataclass(frozen=True)
class OneAgainst:
    """pass@1 after A*-PO less pass@K of the reference, both counted.

    Attributes:
        k: the K of the reference.
        groups: groups of K responses to each prompt.
        training: how to train.
    """

    k: int
    groups: int = 2048
    training: Trained = Trained(updates=400, episodes=128, learning_rate=0.02, seeds=4)

    def predicted(self, oracle: OptimalAdvantageOracle) -> float:
        """E P* - E[1 - (1 - p)^K]."""
        return float(np.mean(oracle.optimal_chances - pass_at(oracle.setting.chances, self.k)))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Counted on every prompt; mean over groups of those prompts' means."""
        policies = self.training.policies(lab, seed)
        passed = [count_passes(lab, p, 1, self.groups, 64 * seed + number) for number, p in enumerate(policies)]
        reference = count_passes(lab, lab.oracle.reference_policy, self.k, self.groups, 64 * seed + 63)
        return mean_interval(np.mean(passed, axis=0).mean(axis=0) - reference.mean(axis=0))


@dataclasses.dataclass(frozen=True)
class Filtered:
    """pass@K after A*-PO of a table where prompts that none of N samples of the reference solved are dropped.

    A table has a row for each prompt, so that a prompt that is dropped stays at the reference and leaves the others as
    they are: the policy that the filter gives has the trained rows where stage 1 saw a right response, else the
    reference's.

    Attributes:
        samples: N.
        k: the K.
        groups: how often each policy's stage 1 is drawn, and groups of K responses to each prompt.
        training: how to train.
    """

    samples: int
    k: int
    groups: int = 2048
    training: Trained = Trained(episodes=128, learning_rate=0.05, seeds=4)

    def predicted(self, oracle: OptimalAdvantageOracle) -> float:
        """E[1 - q^(N + K) - (1 - q^N) (1 - P*)^K], q = 1 - p."""
        passed = filtered_pass(oracle.setting.chances, oracle.optimal_chances, self.samples, self.k)
        return float(np.mean(passed))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Counted on every prompt; mean over groups of those prompts' means."""
        found, reference = [], lab.oracle.reference_policy
        for number, policy in enumerate(self.training.policies(lab, seed)):
            key = 64 * seed + 3 * number
            kept = count_passes(lab, reference, self.samples, self.groups, key)
            passed = (count_passes(lab, p, self.k, self.groups, key + i) for i, p in enumerate((policy, reference), 1))
            found.append(np.where(kept, *passed).mean(axis=0))
        return mean_interval(np.concatenate(found))


@dataclasses.dataclass(frozen=True)
class Tries:
    """Tries of the reference that one try after A*-PO is worth, on a setting whose prompts all have the same p.

    Attributes:
        responses: of each policy to each prompt.
        training: how to train.
    """

    responses: int = 2**12
    training: Trained = Trained(learning_rate=0.02, seeds=8)

    def predicted(self, oracle: OptimalAdvantageOracle) -> float:
        """T = 1 + V* / (beta ln(1 / (1 - p)))."""
        return float(reference_tries(oracle.setting.chances[0], oracle.setting.beta))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """ln of the share of wrong responses over that of as many of the reference's; mean over runs."""
        worth = []
        for number, policy in enumerate(self.training.policies(lab, seed)):
            key, pair = 64 * seed + 2 * number, (policy, lab.oracle.reference_policy)
            passed = (count_passes(lab, p, 1, self.responses, key + i).mean() for i, p in enumerate(pair))
            after, before = (np.log(1.0 - share) for share in passed)
            worth.append(after / before)
        return mean_interval(np.array(worth))


@dataclasses.dataclass(frozen=True)
class Unmoved:
    """How far A*-PO's policies go from the reference on prompts that have no right response.

    Attributes:
        training: how to train.
    """

    training: Trained = Trained(updates=100, seeds=4)

    def predicted(self, oracle: OptimalAdvantageOracle) -> float:
        """Nowhere: on such a prompt every gap of the regression is 0 at the reference."""
        return 0.0

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Total variation distance to the reference on the prompt where it is largest; mean over runs."""
        unsolvable = lab.setting.chances == 0
        tables = np.stack([lab.oracle.table(policy)[unsolvable] for policy in self.training.policies(lab, seed)])
        return mean_interval(np.abs(tables - 1 / lab.setting.num_responses).sum(axis=-1).max(axis=-1) / 2)
