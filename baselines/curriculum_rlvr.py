"""Curriculum RLVR: the same REINFORCE, easy rungs first (arXiv 2511.07372).

A reward that has probability (d+1)^-(L+1) on the full task has probability about 1/(d+1) on each rung of a ladder once
the one below is learnt.

Implementation details:

1. A setting with a ladder of sub-tasks is climbed in order. `curriculum="depth"`: stage after stage;
   `curriculum="hint"`: the full task with ever shorter hints.
2. *Schedule:* each rung gets an equal share of the budget, the last one what rounding leaves. With `rung_episodes`
   each rung but the last gets so many episodes, and the last one the rest of the budget.
3. Every episode counts, also those of easy rungs. The score is that of the full task alone.
4. On each rung it is `rlvr`, with all of its options; the optimiser's state is kept from rung to rung.
5. On a setting without a ladder it is plain `rlvr`.

It logs the policy after each update, with `reward`, `length` and `log_ratio` of the batch (see `Samples.scalars`).

Where it deviates: rungs follow each other on a fixed schedule, not when one is mastered, so that nothing has to be
measured on the way; `adaptive-curriculum` measures.
"""

import dataclasses
from typing import ClassVar, Literal

import numpy as np

from theorybench.agents.training.curriculum import CURRICULA, climb, collect_rungs
from theorybench.agents.training.trainer import Trainer
from theorybench.baselines.rlvr import RLVR
from theorybench.envs.core.validation import choice, integer


@dataclasses.dataclass(frozen=True, kw_only=True)
class CurriculumRLVR(RLVR):
    """REINFORCE on one rung after the other."""

    strategy: ClassVar[Literal["direct", "curriculum"]] = "curriculum"

    curriculum: str = choice("depth", CURRICULA, "what is raised: the stage, or the task with ever shorter hints")
    rung_episodes: int = integer(0, 0, 10**9, "episodes of each rung but the last; 0: equal shares of the budget")

    def run(self, trainer: Trainer) -> None:
        """Climb, the last rung taking what is left."""
        rungs, budget = climb(trainer.setting, self.curriculum), trainer.remaining
        for number in range(len(rungs)):
            spent = (number + 1) * self.rung_episodes if self.rung_episodes else budget * (number + 1) // len(rungs)
            end = budget - spent if number < len(rungs) - 1 else 0
            asked = np.full((trainer.runs, self.episodes_per_update), number)
            while trainer.remaining - self.episodes_per_update >= max(end, 0):
                trainer.update(self.loss, trainer.samples(collect_rungs(trainer, rungs, asked, self.block)))
