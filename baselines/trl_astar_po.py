"""A*-PO (Brantley et al. 2025) as TRL ships it, on a tiny language model: an outside agent.

Implementation details:

1. `trl.experimental.a2po.A2POTrainer`, with its defaults where nothing is said below; its reward function is the
   setting, and each call of it is metered, those of the first stage as well.
2. *Model:* one of `theorybench.agents.language`, pre-trained to the base model of the setting; kept on disk.
3. First stage: `value_samples` completions of the base model for each of `prompts` prompts, from which V-hat is made;
   fewer prompts where that would cost more than half of the budget. Prompts of which none was right are dropped unless
   `keep_hopeless`.
4. Second stage: one completion of each prompt, and squared error of beta_2 ln(pi / pi_ref) on r - V-hat.
5. Illegal words have the probability 0 within the model, when sampling and in the loss.
6. The global generators that it seeds are put back afterwards.

It logs the policy after the steps at which a score is due, and no scalars.

Where it deviates from our `astar-po`: V-hat is kept by the text of the prompt, once for all prompts of the run, where
ours asks for it as prompts come.
"""

import dataclasses
from typing import TYPE_CHECKING

from theorybench.agents.gradient import kl_weight
from theorybench.agents.trainers import TRLAgent
from theorybench.envs.core.policy import Policy
from theorybench.envs.core.validation import boolean, integer

if TYPE_CHECKING:
    from theorybench.agents.trl import Session


@dataclasses.dataclass(frozen=True, kw_only=True)
class TRLAStarPO(TRLAgent):
    """TRL's A*-PO."""

    prompts: int = integer(64, 1, 1_000_000, "prompts of the run")
    value_samples: int = integer(8, 1, 4096, "completions of the base model for each prompt")
    beta_1: float = kl_weight(0.5, "temperature of V-hat", open_low=True)
    beta_2: float = kl_weight(0.1, "weight of the KL divergence in the regression", open_low=True)
    keep_hopeless: bool = boolean(False, "keep prompts of which the base model solved none")

    def learn(self, session: "Session", episodes: int) -> Policy:
        """Train until the budget is spent."""
        prompts = max(1, min(self.prompts, episodes // (2 * self.value_samples)))
        return session.train(
            "a2po.A2PO",
            session.prompts(prompts),
            steps=(episodes - prompts * self.value_samples) // self.episodes_per_update,
            batch=min(self.episodes_per_update, prompts),
            reward_funcs=session.reward,
            max_completion_length=session.task.setting.horizon,
            num_value_samples=self.value_samples,
            beta1=self.beta_1,
            beta2=self.beta_2,
            filter_all_incorrect=not self.keep_hopeless,
        )
