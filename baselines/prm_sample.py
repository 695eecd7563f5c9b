"""Sampling on process rewards (PRM): draw each child with probability proportional to base probability x its reward.

    p(a | prefix) = pi(a | prefix) V(prefix a) / sum_b pi(b | prefix) V(prefix b).

With the exact value V(prefix) = P(success | prefix) under the base model pi, the denominator is V(prefix), the product
over steps telescopes, and the law of the response is

    pi(o) r(o) / E[r] = pi(o | success):

Bayes' rule, one token at a time. It is what rejection sampling against the judge returns, and the rule of FUDGE
(arXiv 2104.05218). Sampling by V alone would not be: it forgets how probable a step is.

1. V is learned as in `prm-greedy`: the mean reward of roll-outs through the prefix, 0 where none went or where it is
   negative. Learned values are no exact martingale, so each row is normalised by its own sum.
2. Where all children score 0 the base model goes on.
3. *Cost:* each step queries the reward model for all children: steps times actions for each response.

It logs the guided policy at each fraction of the budget at which it is scored, and no scalars.

Where the reward is a consistency proportional to pi itself, correct answers come out with probability proportional to
pi squared: the common gains. On the first task of the canonical `TreeMarkovChain`, with exact values: easy .938, hard
.062, invalid 0.
"""

import dataclasses

import numpy as np

from theorybench.agents.reward_guided import RewardGuidedAgent, RewardModel


@dataclasses.dataclass(frozen=True, kw_only=True)
class PRMSample(RewardGuidedAgent):
    """Draw children by base probability times process reward."""

    def guide(self, model: RewardModel) -> np.ndarray:
        """Weigh the base model's rows by process rewards."""
        return model.sample(np.maximum(model.process, 0.0))
