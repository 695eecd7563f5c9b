"""Offline DPO (Rafailov et al. 2023): all pairs come from the initial policy, then one fit.

The same loss, solver and number of labels as `dpo-on-policy`; only the sampler stays where it started. When the
initial policy covers the optimum badly (large C), the directions it never explores are never labelled.
"""

import dataclasses

from theorybench.agents.trainer import Trainer
from theorybench.baselines.dpo_on_policy import DPOOnPolicy
from theorybench.envs.core.policy import SettingPolicy
from theorybench.envs.core.validation import integer


@dataclasses.dataclass(frozen=True, kw_only=True)
class DPOOffline(DPOOnPolicy):
    """DPO on pairs of the initial policy."""

    rounds: int = integer(1, 1, 1, "one round")
    epochs: int = integer(600, 1, 1_000_000, "gradient: steps on the pairs")

    def run(self, trainer: Trainer) -> None:
        """Label pairs of the initial policy, fit once."""
        self.fit(trainer, trainer.collect(trainer.remaining, policy=SettingPolicy(trainer.setting, "initial")))
