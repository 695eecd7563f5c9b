"""Ladders of sub-tasks inside a setting, and what curriculum agents have in common."""

from typing import NamedTuple

import numpy as np
import torch

from theorybench.agents.api.rollout import Episodes
from theorybench.agents.training.trainer import Trainer
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.setting import Setting

#: What a curriculum raises from rung to rung.
CURRICULA = ("depth", "hint")


class Rung(NamedTuple):
    """What the episodes of a rung ask for.

    Attributes:
        stage: of the setting.
        hint: response tokens that are given.
    """

    stage: int
    hint: int


def climb(setting: Setting, curriculum: str) -> list[Rung]:
    """Return the rungs of a setting, the easiest first; the last is the full task.

    Args:
        setting: any; one without sub-tasks has the full task alone.
        curriculum: "depth": stage after stage, without hints; "hint": the full task with ever shorter hints.

    Raises:
        ParameterError: hints where the setting has none.
    """
    if curriculum == "depth":
        return [Rung(stage, 0) for stage in range(1, setting.num_stages + 1)]
    if setting.max_hint == 0 and setting.num_stages > 1:
        raise ParameterError("curriculum", curriculum, "'depth'", f"{type(setting).__name__} gives no hints.")
    return [Rung(setting.num_stages, hint) for hint in range(setting.max_hint, -1, -1)]


def collect_rungs(trainer: Trainer, rungs: list[Rung], numbers: np.ndarray, group_size: int = 1) -> Episodes:
    """Roll out one episode for each number of a rung.

    Args:
        trainer: of R runs.
        rungs: of the setting.
        numbers: int64 (R, N), the rung of each episode; the same in a group.
        group_size: consecutive episodes that share a prompt.

    Returns:
        Episodes (R * N), run by run.
    """
    asked = np.array(rungs, np.int64)[numbers.ravel()]
    hint = asked[:, 1] if trainer.setting.max_hint else None
    stage = asked[:, 0] if trainer.setting.num_stages > 1 else None
    return trainer.collect(numbers.shape[1], group_size=group_size, stage=stage, hint=hint)


def less_peers(rewards: torch.Tensor, rungs: torch.Tensor) -> torch.Tensor:
    """Return how far each reward lies above the mean of the others on its rung, 0 where it is alone there.

    Args:
        rewards: float64 (n,).
        rungs: float64 (n,), the number of each episode's rung.

    Returns:
        float64 (n,).
    """
    peers = (rungs[:, None] == rungs).to(rewards.dtype)
    count = peers.sum(1)
    others = ((peers * rewards).sum(1) - rewards) / torch.clamp(count - 1, min=1)
    return torch.where(count > 1, rewards - others, 0.0)
