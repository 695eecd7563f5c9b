"""Curriculum A*-PO: optimal-advantage regression, rung by rung (arXiv 2505.20686 on the ladders of arXiv 2511.07372).

Alone, A*-PO learns nothing where the base model earns nothing: V-hat is 0 on every prompt and no response of stage 2 is
rewarded either. On a ladder each rung is likely for the policy of the rung below.

Implementation details:

1. *Rungs* as in `curriculum-rlvr`, on its fixed schedule: `curriculum` "depth" or "hint", equal shares of the budget or
   `rung_episodes` each.
2. *A reference for each rung:* the policy with which the rung begins, frozen. Against the base model, KL would charge
   beta_2 s ln(1 / chance) for s steps that are right, more than a reward of 1 pays.
3. *Stage 1 on each rung:* N samples of that reference for each prompt, V-hat as in `astar-po`; `first_stage` of the
   rung's episodes at most, on the last rung too: of its `rung_episodes`, not of all that is left, where these are
   given. *Stage 2:* regression on the rung, with ln(pi / pi_rung).
4. Every episode of both stages counts.
5. On a setting without a ladder it is plain `astar-po`.

It logs the policy after each update of stage 2, with `reward`, `length` and `log_ratio` of the batch (see
`Samples.scalars`; the ratio is to the base model).

Where it deviates: A*-PO has one reference throughout; here it moves with the rungs.
"""

import dataclasses
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from theorybench.agents.training.curriculum import CURRICULA, climb
from theorybench.agents.training.trainer import Trainer
from theorybench.baselines.astar_po import AStarPO
from theorybench.envs.core.validation import choice, integer


@dataclasses.dataclass(frozen=True, kw_only=True)
class CurriculumAStarPO(AStarPO):
    """Two-stage regression on one rung after the other."""

    strategy: ClassVar[Literal["direct", "curriculum"]] = "curriculum"

    curriculum: str = choice("depth", CURRICULA, "what is raised: the stage, or the task with ever shorter hints")
    rung_episodes: int = integer(0, 0, 10**9, "episodes of each rung but the last; 0: equal shares of the budget")

    def run(self, trainer: Trainer) -> None:
        """Climb, the last rung taking what is left."""
        rungs, budget = climb(trainer.setting, self.curriculum), trainer.remaining
        if len(rungs) == 1:
            super().run(trainer)
            return
        for number, rung in enumerate(rungs):
            spent = (number + 1) * self.rung_episodes if self.rung_episodes else budget * (number + 1) // len(rungs)
            end = max(budget - spent, 0) if number < len(rungs) - 1 else 0
            if trainer.remaining - end >= self.reference_samples + self.episodes_per_update:
                hint = rung.hint if trainer.setting.max_hint else None
                self.learn_rung(trainer, trainer.remaining - end, rung.stage, hint)

    def estimate(self, trainer: Trainer, allowance: int, **asked: Any) -> tuple[np.ndarray, np.ndarray]:
        """Stage 1: return prompts (R, P) and V-hat (R, P), for about so many episodes."""
        most = int(self.rung_episodes * self.first_stage) if self.rung_episodes else allowance
        return super().estimate(trainer, min(allowance, most), **asked)

    def learn_rung(self, trainer: Trainer, episodes: int, stage: int, hint: int | None) -> None:
        """Estimate V-hat under the present policy, then regress, within so many episodes."""
        end = trainer.remaining - episodes
        start = trainer.parameters.detach().clone()
        prompts, values = self.estimate(trainer, int(episodes * self.first_stage), stage=stage, hint=hint)
        while trainer.remaining - self.episodes_per_update >= end:
            batch, value = self.draw(trainer, prompts, values, stage=stage, hint=hint)
            data = trainer.samples(batch, values=value)
            with torch.no_grad():
                anchored = data._replace(reference=torch.func.vmap(trainer.log_probs)(start, data))
            trainer.update(self.loss, anchored, log=False)
            trainer.report(data)
