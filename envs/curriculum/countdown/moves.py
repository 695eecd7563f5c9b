"""The arithmetic of Countdown: moves on sorted numbers, shared by the setting and the solver.

The remaining numbers are in descending order, padded with 0. A move picks an ordered pair of slots and an operation.
In an *unordered* pair of slots i < j the first number is the larger one, so there are five results:

    a + b,  a - b,  a * b,  a / b,  and b / a, which is an integer only if a = b

each 0 if the move is illegal. The sum and the product are two moves each, one for either order of the pair.
"""

import functools
from typing import NamedTuple

import numpy as np

#: The operations, in the order of actions.
OPERATIONS = "+-*/"
#: Number of moves that give each of the five results of a pair.
ORDERS = (2, 1, 2, 1, 1)
_MULTIPLIERS = np.random.default_rng(75).integers(2**62, size=8) * 2 + 1


class Slots(NamedTuple):
    """The moves on k slots: P = k (k - 1) / 2 pairs i < j, 5 P results and A = 4 k (k - 1) actions."""

    first: np.ndarray  # int64 (P,), slot i of each pair
    second: np.ndarray  # int64 (P,), slot j
    column: np.ndarray  # int64 (A,), the result of each action; 5 P, a column of zeros, for b - a
    left: np.ndarray  # int64 (A,), the slot of the first number of an action
    right: np.ndarray  # int64 (A,), the slot of its second number
    #: int64 (2 P,), for each ordered pair, in the order of actions: twice the number of its pair, plus 1 if i > j
    ordered: np.ndarray
    others: np.ndarray  # int64 (5 P, k - 2), the slots that a result does not use
    orders: np.ndarray  # int64 (5 P,), the number of actions that have this result


@functools.lru_cache(maxsize=16)
def slots(k: int) -> Slots:
    """Return the moves on k >= 2 slots; action (i, j, operation) has number 4 ((k - 1) i + j - [j > i]) + operation."""
    first, second = np.triu_indices(k, 1)
    pairs = len(first)
    number = np.zeros((k, k), np.int64)
    number[first, second] = number[second, first] = np.arange(pairs)
    left, right = np.nonzero(~np.eye(k, dtype=bool))
    results = np.array([[0, 1, 2, 3], [0, 5, 2, 4]])[(left > right).astype(np.int64)]
    column = np.where(results == 5, 5 * pairs, results * pairs + number[left, right][:, None]).ravel()
    others = [[slot for slot in range(k) if slot not in (i, j)] for i, j in zip(first, second, strict=True)]
    return Slots(
        first.astype(np.int64),
        second.astype(np.int64),
        column,
        np.repeat(left, 4),
        np.repeat(right, 4),
        2 * number[left, right] + (left > right),
        np.tile(np.array(others, np.int64).reshape(pairs, k - 2), (5, 1)),
        np.repeat(ORDERS, pairs),
    )


def pair_results(numbers: np.ndarray, max_value: int) -> np.ndarray:
    """Return the results of every pair of slots.

    Args:
        numbers: int32 (n, k), in descending order, padded with 0.
        max_value: the largest legal result.

    Returns:
        int32 (n, 5 P), the P sums, differences, products, quotients and reversed quotients; 0 where illegal.
    """
    moves = slots(numbers.shape[1])
    a, b = numbers[:, moves.first], numbers[:, moves.second]
    there, total, product = b > 0, a + b, a * b
    divisor = np.where(there, b, 1)
    quotient = a // divisor
    legal = (there & (total <= max_value), there, product <= max_value, there & (quotient * divisor == a))
    made = [np.where(right, value, 0) for right, value in zip(legal, (total, a - b, product, quotient), strict=True)]
    return np.concatenate([*made, there & (a == b)], axis=1, dtype=np.int32)


def action_results(numbers: np.ndarray, max_value: int) -> np.ndarray:
    """Return the result of each action, int32 (n, A), 0 where illegal; see `pair_results` for the arguments."""
    made = pair_results(numbers, max_value)
    return np.append(made, np.zeros_like(made[:, :1]), axis=1)[:, slots(numbers.shape[1]).column]


def after(numbers: np.ndarray, edges: np.ndarray, results: np.ndarray) -> np.ndarray:
    """Return the numbers left after moves.

    Args:
        numbers: int32 (n, k), in descending order, k >= 2.
        edges: int64 (n,), columns of `pair_results`.
        results: int32 (n,), their results.

    Returns:
        int32 (n, k - 1), in descending order.
    """
    k = numbers.shape[1]
    kept = np.take_along_axis(numbers, slots(k).others[edges], axis=1)
    left, carried = np.empty((len(numbers), k - 1), numbers.dtype), results
    for slot in range(k - 2):
        left[:, slot] = np.maximum(kept[:, slot], carried)
        carried = np.minimum(kept[:, slot], carried)
    left[:, -1] = carried
    return left


def keys(labels: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Hash rows of numbers and their labels to int64 (n,); padding with 0 does not change the hash.

    A multilinear hash modulo 2^64: two given rows collide with a probability below 2^-60. Callers compare the rows.

    Args:
        labels: integers (n,).
        numbers: integers (n, k), k <= 7.
    """
    hashed = labels.astype(np.int64) * _MULTIPLIERS[0]
    for slot in range(numbers.shape[1]):
        hashed = hashed + numbers[:, slot].astype(np.int64) * _MULTIPLIERS[slot + 1]
    return hashed
