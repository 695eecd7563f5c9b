"""One step of all histories: what each action leads to at some decision points, with the posterior carried along.

See `graph.py` for the formulas. Posteriors of few positive entries are summed one by one; otherwise points that share
laws are one matrix product, so that joint laws of hidden state and reading are never held.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.finite.problem import Problem

#: The largest number of decision points.
MAX_POINTS = 10**6
#: Numbers of posteriors that are held at a time while points are expanded.
HELD = 2**23
#: Laws are applied to points together where these are more than so many times their number.
FEW = 16
#: Posteriors are listed where fewer than one in so many of their entries are positive.
SPARSE = 4


class TooLarge(ParameterError):
    """More decision points than are listed."""


class Layer(NamedTuple):
    """The points of one depth: nodes (m,), ways from the depth before (m, 3), posteriors or where they come from."""

    node: np.ndarray
    way: np.ndarray
    belief: np.ndarray | None
    before: "Layer | None"

    def posterior(self, problem: Problem, block: slice) -> np.ndarray:
        """Return posteriors of some points, float64 (m, X)."""
        if self.belief is not None:
            return self.belief[block]
        assert self.before is not None and self.before.belief is not None
        source, action, reading = self.way[block].T
        node, joint = self.before.node[source], np.empty((len(source), problem.num_states))
        for chosen in np.unique(action):
            rows = action == chosen
            moved = moved_beliefs(problem, node[rows], chosen, self.before.belief[source[rows]])
            situation = problem.situation[node[rows], chosen]
            joint[rows] = moved * problem.law[situation, :, reading[rows]]
        return joint / joint.sum(axis=1, keepdims=True)


class Found(NamedTuple):
    """What follows some points: see `Children`; the node that is reached and two projections of the posterior there."""

    source: np.ndarray
    action: np.ndarray
    reading: np.ndarray
    chance: np.ndarray
    node: np.ndarray
    sides: np.ndarray


_EMPTY = np.zeros(0, np.int64)
_NONE = Found(_EMPTY, _EMPTY, _EMPTY, np.zeros(0), _EMPTY, np.zeros((0, 2)))


def expand(problem: Problem, layer: Layer, room: int | None = None) -> tuple[Found, np.ndarray]:
    """Take every legal action at the points of a layer.

    Args:
        problem: the problem.
        layer: the points.
        room: how many further points there may be; None for any number.

    Returns:
        What follows, and the gain of each action, float64 (m, A, totals).

    Raises:
        TooLarge: there is no room.
    """
    m = len(layer.node)
    gain = np.zeros((m, problem.num_actions, len(problem.totals)))
    parts, count = [_NONE], 0
    together = max(1, HELD // (problem.num_states * problem.num_readings))
    for begin in range(0, m, together):
        block = slice(begin, min(begin + together, m))
        part = _expand(problem, layer.node[block], layer.posterior(problem, block), gain[block])
        parts.append(part._replace(source=part.source + begin))
        count += len(part.source)
        if room is not None and count > room:
            raise TooLarge("histories", f"more than {MAX_POINTS}", f"at most {MAX_POINTS}")
    return _joined(parts), gain


def _expand(problem: Problem, node: np.ndarray, belief: np.ndarray, gain: np.ndarray) -> Found:
    """Take every legal action at some points, adding to their gains (m, A, totals)."""
    nodes, found = problem.num_nodes, [_NONE]
    # What is summed over the hidden state: chances, and posteriors along two directions.
    one, two = (
        np.broadcast_to(sums[None, :, None], (1, problem.num_states, problem.num_readings, sums.shape[1]))
        for sums in (np.ones((problem.num_states, 1)), _directions(problem.num_states))
    )
    listed = np.nonzero(belief) if SPARSE * np.count_nonzero(belief) < belief.size else None
    for action, cells in enumerate(problem.cell):
        at = np.flatnonzero(problem.legal[node, action])
        if not len(at):
            continue
        here = node[at]
        read = _Reads(problem, action, node, belief, listed)
        child = problem.child[here[:, None], cells]
        same = np.zeros(len(at), np.int64)
        chance = read.total(one, same, at)[:, :, 0]
        for total, table in problem.steps.items():
            earned = table[0, cells] if len(table) == 1 else table[here[:, None], cells]
            gain[at, action, total] += (chance * earned).sum(axis=1)
        over = (chance > 0) & (child >= nodes)
        ends = np.flatnonzero(over.any(axis=1))
        if len(ends):
            there, place = np.unique(here[ends], return_inverse=True)
            leads = problem.child[there[:, None], cells]
            ending, kind = np.unique(np.where(leads >= nodes, leads, nodes - 1), axis=0, return_inverse=True)
            pays = np.concatenate([np.zeros_like(problem.pays[:1]), problem.pays])[ending - nodes + 1]
            paid = read.total(pays.swapaxes(1, 2), kind.ravel()[place], at[ends], apart=False)
            gain[at[ends], action, : paid.shape[1]] += paid
        source, reading = np.nonzero((chance > 0) & (child < nodes))
        if len(source):
            likely, sides = chance[source, reading], read.total(two, same, at)[source, reading]
            way = (at[source], np.full(len(source), action), reading)
            found.append(Found(*way, likely, child[source, reading], sides / likely[:, None]))
    whole = _joined(found)
    order = np.lexsort((whole.reading, whole.action, whole.source))
    return Found(*(column[order] for column in whole))


class _Reads:
    """What is read after an action at some points.

    Args:
        problem: the problem.
        action: the action.
        node: int64 (m,).
        belief: float64 (m, X).
        listed: the places of positive entries of `belief`, where they are few; else None.
    """

    def __init__(
        self, problem: Problem, action: int, node: np.ndarray, belief: np.ndarray, listed: tuple[Any, ...] | None
    ) -> None:
        self._whole, self._listed = (problem, action, node, belief), None
        if listed is not None and (problem.move[node, action] == len(problem.jump) - 1).all():
            point, state = listed
            law = problem.law[problem.situation[node[point], action], state]
            pair, reading = np.nonzero(law)
            chance = belief[point[pair], state[pair]] * law[pair, reading]
            self._listed = point[pair], state[pair], reading, chance

    def total(self, weights: np.ndarray, kind: np.ndarray, rows: np.ndarray, *, apart: bool = True) -> np.ndarray:
        """Sum over hidden states the joint probability of state and reading times weights.

        Args:
            weights: float64 (kinds, X, R, k).
            kind: int64 (n,), of each point's weights.
            rows: int64 (n,), which of the points.
            apart: whether readings are told apart, or summed.

        Returns:
            float64 (n, R, k), or (n, k).
        """
        problem, action, node, belief = self._whole
        if self._listed is None:
            whole = _multiplied(problem, action, node[rows], belief[rows], weights, kind)
            return whole if apart else np.asarray(whole.sum(axis=1))
        point, state, reading, chance = self._listed
        if len(rows) < len(node):
            place = np.full(len(node), -1)
            place[rows] = np.arange(len(rows))
            on = place[point] >= 0
            point, state, reading, chance = place[point[on]], state[on], reading[on], chance[on]
        added, readings = weights[kind[point], state, reading] * chance[:, None], problem.num_readings
        cell, cells = (point * readings + reading, (len(rows), readings)) if apart else (point, (len(rows),))
        return np.stack([np.bincount(cell, own, math.prod(cells)).reshape(cells) for own in added.T], axis=-1)


def _multiplied(
    problem: Problem, action: int, node: np.ndarray, belief: np.ndarray, weights: np.ndarray, kind: np.ndarray
) -> np.ndarray:
    """Do what `_Reads.total` does by matrix products: one for all points that share move, law and weights."""
    move = problem.move[node, action]
    situation = problem.situation[node, action]
    key = (kind * len(problem.jump) + move) * len(problem.law) + situation
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    if len(first) > FEW + len(node) // FEW:
        moved = moved_beliefs(problem, node, action, belief)
        return np.einsum("mx,mxr,mxrk->mrk", moved, problem.law[situation], weights[kind])
    result = np.empty((len(node), problem.num_readings, weights.shape[3]))
    order = np.argsort(group, kind="stable")
    for point, rows in zip(first, np.split(order, np.cumsum(np.bincount(group))[:-1]), strict=True):
        joint = problem.law[situation[point]][:, :, None] * weights[kind[point]]
        if move[point] < len(problem.jump) - 1:
            joint = problem.kernel(int(move[point])) @ joint.reshape(problem.num_states, -1)
        result[rows] = (belief[rows] @ joint.reshape(problem.num_states, -1)).reshape(len(rows), *result.shape[1:])
    return result


def _joined(parts: list[Found]) -> Found:
    return Found(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def moved_beliefs(problem: Problem, node: np.ndarray, action: int, belief: np.ndarray) -> np.ndarray:
    """Return b P_a for beliefs (m, X) at nodes (m,)."""
    move = problem.move[node, action]
    moved = belief
    for row in np.unique(move[move < len(problem.jump) - 1]):
        here = move == row
        moved = moved.copy() if moved is belief else moved
        moved[here] = (problem.kernel(int(row)).T @ belief[here].T).T
    return moved


@functools.cache
def _directions(states: int) -> np.ndarray:
    return np.random.default_rng(0).random((states, 2))
