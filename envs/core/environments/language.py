"""A setting as language-model trainers see it: prompts as tokens, and a judge of completions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.dynamics import Dynamics
from theorybench.envs.core.environments.batch import Batch
from theorybench.envs.core.errors import OptionError, ParameterError


def answer(batch: Batch, tokens: np.ndarray, rows: Any) -> np.ndarray:
    """Answer episodes that have begun, and return what each completion earns, float64 (n,).

    A token that is no action ends a response: it earns nothing more. Every episode takes its first step, so that a
    budget is charged for it, also one that makes no sense.

    Args:
        batch: the engine.
        tokens: int64 (n, tokens), or (n, 2, tokens) for pairs.
        rows: int64 (n,), the environments of the episodes, or a slice of all.
    """
    setting, running = batch.setting, np.arange(len(tokens))
    where, rewards = np.arange(batch.n)[rows], np.zeros(len(tokens))
    missing = max(0, setting.horizon - tokens.shape[-1])
    tokens = np.pad(tokens, [(0, 0)] * (tokens.ndim - 1) + [(0, missing)])
    for step in range(setting.horizon):
        token = tokens[..., step][running]
        said = (token >= 1) & (token <= setting.num_actions)
        known = np.asarray(said.all(axis=1)) if batch.pairs else said
        if step:
            running, token, said, known = running[known], token[known], said[known], known[known]
        if not len(running):
            break
        gained, terminated, _ = batch.step(batch.actions(np.where(said, token - 1, 0), len(running)), where[running])
        rewards[running] += np.where(known, gained, 0.0)
        running = running[known & ~terminated]
    return rewards


def begin(setting: Dynamics, prompts: Any, seed: int = 0, stage: int | None = None, hint: int | None = None) -> Batch:
    """Begin one episode for each prompt: the engine of as many environments, seeded by `seed`."""
    indices = np.asarray(prompts)
    if indices.ndim != 1 or not len(indices):
        raise OptionError("prompts", prompts, "a non-empty sequence of prompt indices")
    batch = Batch(setting, len(indices), np)
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
