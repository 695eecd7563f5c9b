"""Mixture RLVR: REINFORCE on easy and hard tasks together (arXiv 2505.23683).

Easy tasks pay from the first day, and what they teach makes hard ones pay: no schedule decides when.

Implementation details:

1. Each episode asks for a rung of the setting's ladder, drawn afresh: the full task with probability `hard_share`, else
   one of the other rungs, all equally likely.
2. On each batch it is `rlvr`, with its `kl`. With `baseline="leave-one-out"` what counts is compared on the same rung,
   since rungs pay differently; an episode alone on its rung counts nothing.
3. Every episode counts. The score is that of the full task alone.
4. On a setting without a ladder it is plain `rlvr`.

It logs the policy after each update, with `reward`, `length` and `log_ratio` of the batch (see `Samples.scalars`).

Where it deviates: the paper mixes data of given answers, hard and easy in equal parts; here answers are the policy's
own and rungs are drawn.
"""

import dataclasses
from typing import ClassVar, Literal

import numpy as np
import torch

from theorybench.agents.training.curriculum import CURRICULA, climb, collect_rungs, less_peers
from theorybench.agents.training.gradient import GradientAgent, kl_weight
from theorybench.agents.training.samples import Samples
from theorybench.agents.training.trainer import Trainer
from theorybench.envs.core.validation import choice, real


@dataclasses.dataclass(frozen=True, kw_only=True)
class MixtureRLVR(GradientAgent):
    """REINFORCE on rungs drawn at random."""

    strategy: ClassVar[Literal["direct", "curriculum"]] = "curriculum"

    curriculum: str = choice("depth", CURRICULA, "what the rungs are: stages, or the task with hints")
    hard_share: float = real(0.5, 0.0, 1.0, "share of episodes on the full task")
    baseline: str = choice("leave-one-out", ("none", "leave-one-out"), "what is subtracted from the reward")
    kl: float = kl_weight(0.0, "weight of KL(pi || pi_ref) in the reward")

    def run(self, trainer: Trainer) -> None:
        """Roll out, update, until the budget is spent."""
        rungs = climb(trainer.setting, self.curriculum)
        while trainer.remaining >= self.episodes_per_update:
            drawn = trainer.uniforms(2 * self.episodes_per_update).reshape(trainer.runs, 2, -1)
            easy = (drawn[:, 1] * max(len(rungs) - 1, 1)).astype(np.int64)
            numbers = np.where((drawn[:, 0] < self.hard_share) | (len(rungs) == 1), len(rungs) - 1, easy)
            # The rung of each episode takes the place of a value, so that the loss can tell them apart.
            episodes = collect_rungs(trainer, rungs, numbers)
            trainer.update(self.loss, trainer.samples(episodes, values=numbers.ravel().astype(np.float64)))

    def loss(self, log_probs: torch.Tensor, data: Samples) -> torch.Tensor:
        """Minus the weighted log-likelihood of the responses."""
        likelihood = log_probs.sum(-1)
        weights = data.rewards - self.kl * (likelihood - data.reference.sum(-1)).detach()
        if self.baseline == "leave-one-out":
            weights = less_peers(weights, data.values)
        return -(weights * likelihood).mean()
