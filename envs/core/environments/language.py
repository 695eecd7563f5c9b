"""A setting as language-model trainers see it: prompts as tokens, and a judge of completions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.arrays import numpy_namespace
from theorybench.envs.core.environments.batch import Batch
from theorybench.envs.core.errors import OptionError, ParameterError
from theorybench.envs.core.setting import Setting


def prompt_tokens(setting: Setting, prompts: Any) -> np.ndarray:
    """Return the prompt tokens of prompt indices (n,): integers (n, prompt_length)."""
    return begin(setting, prompts, 0, None, None).observe()[:, : setting.prompt_length]


def judge(
    setting: Setting,
    prompts: Any,
    completions: Any,
    *,
    seed: int = 0,
    stage: int | None = None,
    hint: int | None = None,
) -> np.ndarray:
    """Return the reward of each completion, float64 (n,); see `Setting.judge`."""
    batch = begin(setting, prompts, seed, stage, hint)
    tokens = padded(completions, (batch.n, 2) if batch.pairs else (batch.n,))
    rewards = np.zeros(batch.n)
    running = np.arange(batch.n)
    for step in range(min(setting.horizon, tokens.shape[-1])):
        token = tokens[running][..., step]
        known = (token >= 1) & (token <= setting.num_actions)
        legal = known.all(axis=1) if batch.pairs else known
        running, token = running[legal], token[legal]
        if not len(running):
            break
        gained, terminated, _ = batch.step(batch.actions(token - 1, len(running)), running)
        rewards[running] += gained
        running = running[~terminated]
    return rewards


def begin(setting: Setting, prompts: Any, seed: int, stage: int | None, hint: int | None) -> Batch:
    """Begin one episode for each prompt: the engine of as many environments, seeded by `seed`."""
    indices = np.asarray(prompts)
    if indices.ndim != 1 or not len(indices):
        raise OptionError("prompts", prompts, "a non-empty sequence of prompt indices")
    batch = Batch(setting, len(indices), numpy_namespace)
    named = {"prompt": indices, "stage": stage, "hint": hint}
    options = batch.options({name: value for name, value in named.items() if value is not None})
    batch.seed(seed)
    batch.reset(options)
    return batch


def padded(completions: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return completions as int64 (*shape, longest), padded with 0.

    Raises:
        ParameterError: not one sequence of integers for each episode (or response of a pair).
    """
    allowed = f"integer token sequences of shape {shape}"
    if isinstance(completions, np.ndarray) or hasattr(completions, "detach"):
        array = np.asarray(completions)
        if array.dtype.kind not in "iu" or array.shape[:-1] != shape:
            raise ParameterError("completions", completions, allowed)
        return array.astype(np.int64)
    flat: list[Sequence[int]] = [row for pair in completions for row in pair] if len(shape) == 2 else list(completions)
    if len(flat) != int(np.prod(shape)) or not all(isinstance(t, (int, np.integer)) for row in flat for t in row):
        raise ParameterError("completions", completions, allowed)
    result = np.zeros((len(flat), max((len(row) for row in flat), default=0)), np.int64)
    for i, row in enumerate(flat):
        result[i, : len(row)] = row
    return result.reshape(*shape, -1)
