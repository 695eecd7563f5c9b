"""Adaptive curriculum: REINFORCE that moves to the next rung when the one below is mastered.

A fixed schedule must be right for the hardest rung, and wastes episodes on all others. Measured success decides here:
arXiv 2511.07372 counts the reward queries of each rung until its increment is learnt, and that is what is spent.

Implementation details:

1. All episodes of an update ask for the run's present rung. When the share of them that earn a reward reaches
   `threshold`, the run moves on; it never moves back. The rollouts that train are those that measure, so that nothing
   is spent on measuring.
2. `curriculum="depth"`: stage after stage; `curriculum="hint"`: the full task with ever shorter hints.
3. On each rung it is `rlvr`, with all of its options; the optimiser's state is kept from rung to rung.
4. On a setting without a ladder it is plain `rlvr`.

It logs the policy after each update, with `rung` (the number of the present rung, from 1) and `reward`, `length` and
`log_ratio` of the batch (see `Samples.scalars`).

Where it deviates: the paper's learner is rejection sampling; here the same schedule drives gradient steps.
"""

import dataclasses
from typing import ClassVar, Literal

import numpy as np

from theorybench.agents.curriculum import CURRICULA, climb, collect_rungs
from theorybench.agents.trainer import Trainer
from theorybench.baselines.rlvr import RLVR
from theorybench.envs.core.validation import choice, real


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdaptiveCurriculum(RLVR):
    """REINFORCE on a rung until it is mastered."""

    way: ClassVar[Literal["direct", "curriculum"]] = "curriculum"

    curriculum: str = choice("depth", CURRICULA, "what is raised: the stage, or the task with ever shorter hints")
    threshold: float = real(0.9, 0.0, 1.0, "share of rewarded episodes of an update from which a rung is mastered")

    def run(self, trainer: Trainer) -> None:
        """Roll out on each run's rung, update, climb."""
        rungs = climb(trainer.setting, self.curriculum)
        rung = np.zeros(trainer.runs, np.int64)
        while trainer.remaining >= self.episodes_per_update:
            asked = np.repeat(rung[:, None], self.episodes_per_update, axis=1)
            episodes = collect_rungs(trainer, rungs, asked, self.block)
            trainer.update(self.loss, trainer.samples(episodes), rung=rung + 1.0)
            success = (episodes.rewards > 0).reshape(trainer.runs, -1).mean(axis=1)
            rung = np.minimum(rung + (success >= self.threshold), len(rungs) - 1)
