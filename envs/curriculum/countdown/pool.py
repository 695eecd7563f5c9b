"""Prompts of Countdown, solvable by construction, in a tuning and a scoring pool that share none.

A prompt is made by an episode of the base model: numbers are drawn uniformly, n - 1 uniform legal moves are made, and
the last result is the target. A hash of its *canonical form*, the sorted numbers with the target, determines to which
of the two pools it belongs, so no prompt is in both, for any instance.
"""

from typing import NamedTuple

import numpy as np

from theorybench.envs.core.arrays import portable
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.streams import mix
from theorybench.envs.curriculum.countdown.moves import action_results, after, keys, slots
from theorybench.envs.curriculum.countdown.solver import solve

#: One in this many canonical forms belongs to the scoring pool.
SCORING_SHARE = 4
#: Largest and smallest number of episodes drawn at a time.
_MOST, _LEAST = 2**14, 2**10
#: Rounds of draws without a new prompt after which a pool counts as exhausted.
_PATIENCE = 64


class Prompts(NamedTuple):
    """m prompts of n numbers, each with one solution: the moves that made it."""

    targets: np.ndarray  # int64 (m,)
    #: int32 (m, n - 1, n), the numbers left after the first h moves of the solution, in descending order, padded with
    #: 0; [:, 0] are the given numbers
    numbers: np.ndarray
    solution: np.ndarray  # int64 (m, n - 1), its moves: actions on n slots


def in_scoring_pool(numbers: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return whether prompts belong to the scoring pool, bool (m,): a hash of their canonical form.

    Args:
        numbers: integers (m, n), in any order.
        targets: integers (m,).
    """
    return mix(keys(targets, -np.sort(-np.asarray(numbers), axis=1))) % SCORING_SHARE == 0


def play(rng: np.random.Generator, numbers: np.ndarray, max_value: int) -> Prompts:
    """Make n - 1 uniform legal moves; the last results are the targets.

    Args:
        rng: draws the moves.
        numbers: int32 (m, n).
        max_value: the largest legal result.
    """
    m, n = numbers.shape
    rows = np.arange(m)
    states, solution = np.zeros((m, n - 1, n), np.int32), np.zeros((m, n - 1), np.int64)
    held, made = -np.sort(-numbers, axis=1), np.zeros(m, np.int32)
    for move, k in enumerate(range(n, 1, -1)):
        states[:, move, :k] = held
        results = action_results(states[:, move], max_value)
        ranked = (results > 0).cumsum(axis=1)
        rank = (rng.random(m) * ranked[:, -1]).astype(np.int64)
        actions = (ranked <= rank[:, None]).sum(axis=1)
        solution[:, move], made = actions, results[rows, actions]
        held = after(states[:, move], slots(n).column[actions], made)[:, : k - 1]
    return Prompts(made.astype(np.int64), states, solution)


def draw(
    rng: np.random.Generator,
    count: int,
    n: int,
    *,
    scoring: bool,
    max_number: int = 99,
    targets: tuple[int, int] = (100, 999),
    max_value: int = 9999,
    candidates: int = 1,
) -> Prompts:
    """Draw distinct prompts of one pool.

    Only episodes count whose target lies in the range and differs from all given numbers and earlier results.

    Args:
        rng: draws the numbers and moves.
        count: number of prompts, >= 1.
        n: numbers of a prompt, 2..6.
        scoring: whether to draw from the scoring pool instead of the tuning pool.
        max_number: numbers are 1..max_number.
        targets: the smallest and the largest target.
        max_value: the largest legal result.
        candidates: each prompt is the hardest of this many: lowest base success (the first drawn among equals).

    Raises:
        ParameterError: the pool seems to have fewer prompts: 64 rounds of draws gave no new one.
    """
    wanted, idle = count * candidates, 0
    seen, size = np.empty(0, np.int64), min(_MOST, max(_LEAST, 8 * wanted))
    kept = Prompts(seen, np.empty((0, n - 1, n), np.int32), np.empty((0, n - 1), np.int64))
    while len(seen) < wanted:
        fresh = play(rng, rng.integers(1, max_number + 1, size=(size, n)).astype(np.int32), max_value)
        first, target = fresh.numbers[:, 0], fresh.targets[:, None]
        good = (targets[0] <= fresh.targets) & (fresh.targets <= targets[1])
        good &= (fresh.numbers != target[:, :, None]).all(axis=(1, 2))
        good &= in_scoring_pool(first, fresh.targets) == scoring
        rows = np.flatnonzero(good)
        hashed = keys(fresh.targets[rows], first[rows])
        new = np.sort(np.unique(hashed, return_index=True)[1])
        new = new[~np.isin(hashed[new], seen)][: wanted - len(seen)]
        idle = 0 if len(new) else idle + 1
        if idle == _PATIENCE:
            raise ParameterError("prompts", count, f"at most {len(seen) // candidates} with these numbers and targets")
        seen = np.append(seen, hashed[new])
        kept = Prompts(*(np.concatenate([a, b[rows[new]]]) for a, b in zip(kept, fresh, strict=True)))
    if candidates == 1:
        return kept
    success = solve(kept.numbers[:, 0], kept.targets, max_value).success.reshape(count, candidates)
    # Rounded, so equal probabilities are equal on every machine.
    hardest = np.arange(count) * candidates + portable(success).argmin(axis=1)
    return Prompts(*(column[hardest] for column in kept))
