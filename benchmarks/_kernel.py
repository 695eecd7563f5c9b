"""A bare kernel of TheoryBench/TreeMarkovChain-v0: what a compiled step of it would cost if it did no more than move.

Written by hand for the sake of the comparison: one loop that draws, looks up, pays, begins again and writes the token
words in place. No checks of actions, no masks, no infos, no last observations, no fresh arrays.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from theorybench.envs.core import streams

_mix = njit(streams._finalised)
_GOLDEN, _STRIDE, _UNIT = streams._GOLDEN, streams._STRIDE, streams._TO_UNIT
#: What numbers draws 0 and 15 add to a key.
_FIRST, _LAST = (np.array([(k + 1) * _GOLDEN % 2**64], np.uint64).view(np.int64)[0].item() for k in (0, 15))


@njit
def _absorb(mixed: int, label: int) -> int:
    return _mix((label * _GOLDEN + 1) ^ mixed)


@njit
def _uniform(key: int, draw: int) -> float:
    return np.float64((_mix(key + draw) >> 11) & 0x1FFFFFFFFFFFFF) * _UNIT


@njit(nogil=True, error_model="numpy")
def _move(  # type: ignore[no-untyped-def]
    actions,
    rewards,
    terminated,
    seen,
    prompts,
    nodes,
    goals,
    chances,
    words,
    mixed,
    episodes,
    world,
    width,
    last,
    *tables,
):
    child, probability, token, starts, targets, masses = tables
    for i in range(len(actions)):
        edge = nodes[i] * width + actions[i]
        node, chance, word = child[edge], chances[i] * probability[edge], words[i] + token[edge]
        rewards[i], terminated[i] = 0.0, node >= last
        if node == goals[i]:
            question = _absorb(_mix(_absorb(_mix(world + _GOLDEN), prompts[i]) + _GOLDEN), word)
            rewards[i] = 1.0 if _uniform(question, _FIRST) < chance else 0.0
        if node >= last:
            episodes[i] += 1
            prompts[i] = np.int64(_uniform(_absorb(mixed[i], episodes[i]), _LAST) * 2.0**53)
            task = prompts[i] % len(starts)
            node, chance, goals[i] = starts[task], masses[task], targets[task]
            word = node + 1
        nodes[i], chances[i], words[i], seen[i] = node, chance, word, word


def kernel(envs: Any) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return the bare step of a vector environment of short trees, which has been reset and goes on alone.

    Returns:
        Takes int64 actions (n,); returns rewards, terminated, and observations (n, 4), the same arrays each time.
    """
    batch, setting = envs.unwrapped.batch, envs.unwrapped.setting
    assert setting.tables.token.shape[1] == 1 and setting.L == 4 and setting.num_prompts is None
    n, tables = batch.n, setting.tables
    rewards, terminated, seen = np.empty(n), np.empty(n, np.bool_), np.empty(n, np.int32)
    prompts, nodes, goals, chances, words = (np.array(field).reshape(-1) for field in batch.state)
    mixed, episodes, _ = (column.copy() for column in batch.streams.columns)
    shared = tables.child, tables.probability, tables.token.reshape(-1), tables.start, tables.goal, tables.inverse_mass
    held = prompts, nodes, goals, chances, words, mixed, episodes, setting.world, setting.M, setting.shape.num_nodes

    def step(actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        _move(actions, rewards, terminated, seen, *held, *shared)
        return rewards, terminated, seen.view(np.int8).reshape(n, 4)

    return step
