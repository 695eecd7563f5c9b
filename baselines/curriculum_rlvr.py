"""Curriculum RLVR: the same REINFORCE, easy rungs first (arXiv 2511.07372).

A reward that has probability (d+1)^-(L+1) on the full task has probability about 1/(d+1) on each rung of a ladder once
the one below is learnt.

Implementation details:

1. A setting with a ladder of `num_stages` rungs is climbed in order; each rung gets an equal share of the budget, and
   the last one what rounding leaves.
2. Every episode counts, also those of easy rungs. The score is that of the full task alone.
3. On each rung it is `rlvr`, with all of its options; the optimiser's state is kept from rung to rung.
4. On a setting without a ladder it is plain `rlvr`.

It logs the policy after each update, with `reward`, `length` and `log_ratio` of the batch (see `Samples.scalars`).

Where it deviates: rungs follow each other on a fixed schedule, not when one is mastered, so that nothing has to be
measured on the way.
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
