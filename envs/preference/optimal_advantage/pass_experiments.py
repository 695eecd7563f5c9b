"""What claims about OptimalAdvantage say of pass@K after A*-PO, and how they measure it.

Predictions are those of `pass_at_k`. Measurements train "astar-po" and count right
responses in roll-outs. Intervals are three standard errors wide on each side.
"""

import dataclasses

import numpy as np

from theorybench.envs.core.evidence.interval import Interval, mean_interval
from theorybench.envs.core.evidence.lab import Lab
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.preference.optimal_advantage.experiments import Trained, count_passes
from theorybench.envs.preference.optimal_advantage.optimal_value import optimal_success
from theorybench.envs.preference.optimal_advantage.pass_at_k import filtered_pass, pass_at, reference_tries
from theorybench.envs.preference.optimal_advantage.setting import OptimalAdvantage

#: How each claim trains: long enough that what is left to the optimum is small beside its tolerance.
BRIEF = Trained(updates=100, seeds=4)
PRECISE = Trained(learning_rate=0.02, seeds=8)
MIXED = Trained(updates=400, episodes=128, learning_rate=0.02, seeds=4)
SHARP = Trained(episodes=128, learning_rate=0.05, seeds=4)


@dataclasses.dataclass(frozen=True)
class Unmoved:
    """How far A*-PO's policies go from the reference on prompts that have no right response.

    Attributes:
        training: how to train.
    """

    training: Trained = BRIEF

    def predicted(self, oracle: Oracle[OptimalAdvantage]) -> float:
        """Nowhere: on such a prompt every gap of the regression is 0 at the reference."""
        return 0.0

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Total variation distance to the reference on the prompt where it is largest; mean over runs."""
        setting = lab.setting
        hopeless = setting.chances == 0
        policies = self.training.policies(setting, lab, seed)
        tables = np.stack([lab.oracle.table(policy)[hopeless] for policy in policies])
        return mean_interval(np.abs(tables - 1 / setting.num_responses).sum(axis=-1).max(axis=-1) / 2)


@dataclasses.dataclass(frozen=True)
class Tries:
    """Tries of the reference that one try after A*-PO is worth, on a setting whose prompts all have the same p.

    Attributes:
        responses: of each policy to each prompt.
        training: how to train.
    """

    responses: int = 2**12
    training: Trained = PRECISE

    def predicted(self, oracle: Oracle[OptimalAdvantage]) -> float:
        """T = 1 + V* / (beta ln(1 / (1 - p)))."""
        setting = oracle.setting
        return float(reference_tries(setting.chances[0], setting.beta))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """ln of the share of wrong responses over that of as many of the reference's; mean over runs."""
        worth = []
        for number, policy in enumerate(self.training.policies(lab.setting, lab, seed)):
            key, pair = 64 * seed + 2 * number, (policy, lab.oracle.reference_policy)
            passed = (count_passes(lab, p, 1, self.responses, key + i).mean() for i, p in enumerate(pair))
            after, before = (np.log(1.0 - share) for share in passed)
            worth.append(after / before)
        return mean_interval(np.array(worth))


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
    training: Trained = MIXED

    def predicted(self, oracle: Oracle[OptimalAdvantage]) -> float:
        """E P* - E[1 - (1 - p)^K]."""
        setting = oracle.setting
        chances = setting.chances
        return float(np.mean(optimal_success(chances, setting.beta) - pass_at(chances, self.k)))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Counted on every prompt; mean over groups of those prompts' means."""
        policies = self.training.policies(lab.setting, lab, seed)
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
    training: Trained = SHARP

    def predicted(self, oracle: Oracle[OptimalAdvantage]) -> float:
        """E[1 - q^(N + K) - (1 - q^N) (1 - P*)^K], q = 1 - p."""
        setting = oracle.setting
        success = optimal_success(setting.chances, setting.beta)
        return float(np.mean(filtered_pass(setting.chances, success, self.samples, self.k)))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Counted on every prompt; mean over groups of those prompts' means."""
        found, reference = [], lab.oracle.reference_policy
        for number, policy in enumerate(self.training.policies(lab.setting, lab, seed)):
            key = 64 * seed + 3 * number
            kept = count_passes(lab, reference, self.samples, self.groups, key)
            passed = (count_passes(lab, p, self.k, self.groups, key + i) for i, p in enumerate((policy, reference), 1))
            found.append(np.where(kept, *passed).mean(axis=0))
        return mean_interval(np.concatenate(found))
