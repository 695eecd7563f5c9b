"""Curriculum RLVR: the same REINFORCE, easy rungs first (arXiv 2511.07372).

A setting with a ladder of `num_stages` rungs is climbed on a fixed schedule: each rung gets an equal share of the
budget, and every one of its episodes counts. A reward that has probability (d+1)^-(L+1) on the full task has
probability about 1/(d+1) on each rung once the one below is learnt. On a setting without a ladder it is plain `rlvr`.
"""

import dataclasses

from theorybench.agents.trainer import Trainer
from theorybench.baselines.rlvr import RLVR


@dataclasses.dataclass(frozen=True, kw_only=True)
class CurriculumRLVR(RLVR):
    """REINFORCE on one rung after the other."""

    def run(self, trainer: Trainer) -> None:
        """Climb the ladder with equal shares of the budget, the last rung taking what is left."""
        stages, budget = trainer.setting.num_stages, trainer.remaining
        for stage in range(1, stages + 1):
            end = budget - budget * stage // stages
            while trainer.remaining - self.episodes_per_update >= end:
                self.step(trainer, stage=stage)
