"""One step of all histories: what each action leads to at some decision points, with the posterior carried along.

See `graph.py` for the formulas. An action that ends the episode whatever is read needs no law: its worth is the
posterior's mean of what the ending pays. Where few laws are shared by many points, chances are matrix products, one for
each law; elsewhere the possible hidden states of each point are listed, and summed one by one.
"""

import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.finite.problem import Problem

#: The largest number of decision points.
MAX_POINTS = 10**6
#: Numbers that are held at a time while points are expanded.
HELD = 2**23
#: Groups of ways that are few, however many ways there are; else ways to each group.
GROUPS = 64
#: What a matrix product costs in numbers that are listed: one for each law, and one for so many hidden states.
EACH_LAW, EACH_STATE = 2000, 1 / 8


class TooLarge(ParameterError):
    """More decision points than are listed."""


class Found(NamedTuple):
    """What follows some points, in the order (point, action, reading): e ways."""

    slot: np.ndarray  # int64 (e,), point times A plus action
    reading: np.ndarray  # int64 (e,)
    chance: np.ndarray  # float64 (e,), of the reading, given point and action
    node: np.ndarray  # int64 (e,), the node that is reached
    sides: np.ndarray  # float64 (e, k), the posterior there along the directions that are asked for

    def split(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """Return points and actions: int64 (e,) each."""
        source = self.slot // problem.num_actions
        return source, self.slot - source * problem.num_actions


class Past(NamedTuple):
    """What was read on the way to m points, by law, and keys that do not depend on the order."""

    node: np.ndarray  # int64 (m,)
    read: np.ndarray  # int64 (m, t), law R + reading; -1 where nothing was read, or the same as before for certain
    keys: np.ndarray  # int64 (m,), sums of random numbers of the nodes and of what was read, wrapping around

    def longer(self, problem: Problem, found: Found) -> "Past":
        """Return the pasts of what follows these points, (e,)."""
        source, action = found.split(problem)
        law, before = problem.situation[self.node[source], action], self.read[source]
        read = np.where(law == len(problem.law) - 1, -1, law * problem.num_readings + found.reading)
        chance = ((problem.law > 0) & (problem.law < 1)).any(axis=(1, 2))
        again = (before == read[:, None]).any(axis=1)  # which says nothing more where nothing is left to chance
        read[again & ~chance[law]] = -1
        whole = np.column_stack([before, read])
        number = np.random.default_rng(0).integers(2**63, size=len(problem.law) * problem.num_readings + 1)
        number[-1] = 0  # of -1
        apart = np.random.default_rng(1).integers(2**63, size=problem.num_nodes)
        return Past(found.node, whole, apart[found.node] + number[whole].sum(axis=1))

    def of(self, rows: np.ndarray) -> "Past":
        """Return some of these."""
        return Past(*(column[rows] for column in self))


class Layer(NamedTuple):
    """The points of one depth: nodes (m,), and posteriors (m, X) or the ways on which they come from a layer before."""

    node: np.ndarray
    belief: np.ndarray | None
    before: "Layer | None" = None
    ways: Found | None = None

    def posterior(self, problem: Problem, block: slice) -> np.ndarray:
        """Return posteriors of some points, float64 (m, X)."""
        if self.belief is not None:
            return self.belief[block]
        assert self.before is not None and self.before.belief is not None and self.ways is not None
        ways = Found(*(column[block] for column in self.ways))
        source, action = ways.split(problem)
        node = self.before.node[source]
        if len(problem.jump) == 1:
            joint = self.before.belief[source]
        else:  # moved once for all readings that follow
            first, which = np.unique(ways.slot, return_index=True, return_inverse=True)[1:]
            moved = self.before.belief[source[first]]
            for chosen in np.unique(action):
                rows = action[first] == chosen
                moved[rows] = moved_beliefs(problem, node[first[rows]], chosen, moved[rows])
            joint = moved[which]
        law = problem.situation[node, action] * problem.num_readings + ways.reading
        joint *= problem.likelihood.take(law, axis=0)
        joint /= ways.chance[:, None]
        return joint


def expand(problem: Problem, layer: Layer, directions: np.ndarray, room: int | None = None) -> tuple[Found, np.ndarray]:
    """Take every legal action at the points of a layer.

    Args:
        problem: the problem.
        layer: the points.
        directions: float64 (X, k), along which posteriors are wanted.
        room: how many ways there may be; None for any number.

    Returns:
        What follows, and what each action earns in the totals `problem.varying`: float64 (totals, m, A). Tallies that
        are the same whatever is read (`problem.certain`) are left out.

    Raises:
        TooLarge: there is no room.
    """
    m, A = len(layer.node), problem.num_actions
    last = _ended(problem, layer)
    if last is not None:
        nothing = np.zeros(0, np.int64)
        return Found(nothing, nothing, np.zeros(0), nothing, np.zeros((0, directions.shape[1]))), last
    earned = np.zeros((len(problem.varying), m, A))
    gains = dict(zip(problem.varying, earned, strict=True))
    parts, count = [], 0
    together = max(1, HELD // (problem.num_states * problem.num_readings))
    for begin in range(0, max(m, 1), together):
        block = slice(begin, min(begin + together, m))
        part = _Block(
            problem, layer.node[block], layer.posterior(problem, block), {t: own[block] for t, own in gains.items()}
        )
        found = part.expand(directions)
        parts.append(found._replace(slot=found.slot + begin * A))
        count += len(found.slot)
        if room is not None and count > room:
            raise TooLarge("histories", f"more than {MAX_POINTS}", f"at most {MAX_POINTS}")
    whole = parts[0] if len(parts) == 1 else Found(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return whole, earned


def _ended(problem: Problem, layer: Layer) -> np.ndarray | None:
    """Return what each action earns where all of them end episodes in which hidden states move, as `expand` does.

    Posteriors b' are not made: with the mean f(x) of what is paid after the last move, and b, P, L and p of the step
    before, the mean of f over b' is b P (L f) / p, where P (L f) is the same for all ways alike. None for other layers,
    and where many ways are like no others.
    """
    if layer.before is None or layer.before.belief is None or layer.ways is None or len(problem.jump) == 1:
        return None
    nodes, which = np.unique(layer.node, return_inverse=True)
    legal, actions, states = problem.legal[nodes], problem.num_actions, problem.num_states
    ending = _Block(problem, nodes, np.zeros((0, 0)), {}).endings(legal)
    if problem.uncertain or not np.array_equal(ending >= 0, legal):
        return None
    source, action = layer.ways.split(problem)
    node, belief = layer.before.node[source], layer.before.belief
    move, law = problem.move[node, action], problem.situation[node, action] * problem.num_readings + layer.ways.reading
    groups = _groups(max(1, HELD // states), which, move, law)
    if len(groups) > max(GROUPS, len(which) // GROUPS):
        return None
    earned = np.zeros((problem.pays.shape[2], len(which), actions))
    for alike in groups:
        number, before, read = (int(key[alike[0]]) for key in (which, move, law))
        paid = np.zeros((states, actions, len(earned)))
        for last in np.flatnonzero(legal[number]).tolist():
            pays = problem.pays[ending[number, last]]
            paid[:, last] = _ahead(problem, int(problem.move[nodes[number], last]), pays)
        weighed = problem.likelihood[read, :, None] * paid.reshape(states, -1)
        means = belief[source[alike]] @ _ahead(problem, before, weighed)
        means /= layer.ways.chance[alike, None]
        earned[:, alike] = means.reshape(len(alike), actions, -1).transpose(2, 0, 1)
    if 0 in problem.certain:
        own = problem.certain[0]
        earned[0] += np.where(legal, own if len(own) == 1 else own[nodes], 0.0)[which]
    return earned


def _ahead(problem: Problem, move: int, columns: np.ndarray) -> np.ndarray:
    """Return means of numbers (X, k) after a move of the hidden state, by where it is before: float64 (X, k)."""
    return columns if move == len(problem.jump) - 1 else np.asarray(problem.kernel(move) @ columns)


def _groups(together: int, *keys: np.ndarray) -> list[np.ndarray]:
    """Return the places of equal keys, int (n,) each: int64 (any,) for each group, or part of one at most so long."""
    order = np.lexsort(keys)
    apart = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
    cuts = np.union1d(np.flatnonzero(apart) + 1, np.arange(together, len(order), together))
    return np.split(order, cuts)


class _Block:
    """Some points that are expanded together: nodes (m,), posteriors (m, X), and gains to be added to, (m, A) each."""

    def __init__(self, problem: Problem, node: np.ndarray, belief: np.ndarray, gains: dict[int, np.ndarray]) -> None:
        self.problem, self.node, self.belief, self.gains = problem, node, belief, gains
        self.child = problem.child.take(node, axis=0)  # (m, cells)

    @functools.cached_property
    def possible(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points, states and probabilities where these are positive, by point: (n,) each."""
        point, state = np.nonzero(self.belief)
        return point, state, self.belief[point, state]

    def moved(self, rows: np.ndarray, action: int) -> np.ndarray:
        """Return posteriors of some points, in their order, after an action's move."""
        whole = len(rows) == len(self.node)
        belief = self.belief if whole else self.belief[rows]
        return moved_beliefs(self.problem, self.node[rows], action, belief)

    def ahead(self, rows: np.ndarray, action: int, columns: np.ndarray) -> np.ndarray:
        """Return means of numbers (X, k) over the posteriors of some points, (m,), after an action's move: (m, k)."""
        problem, found = self.problem, np.empty((len(rows), columns.shape[1]))
        move = problem.move[self.node[rows], action]
        for row in np.unique(move):
            own = rows[move == row]
            belief = self.belief if len(own) == len(self.node) else self.belief[own]
            found[move == row] = belief @ _ahead(problem, int(row), columns)
        return found

    def expand(self, directions: np.ndarray) -> Found:
        """Take every legal action."""
        problem, legal = self.problem, self.problem.legal[self.node]
        ending = self.endings(legal)
        going = legal & (ending < 0)
        if not np.array_equal(going, legal):
            self.close(ending)
        if 0 in problem.certain:
            earned = problem.certain[0]
            own = earned[0] if len(earned) == 1 else earned[self.node]
            self.gains[0] += own if problem.all_legal else np.where(legal, own, 0.0)
        read = legal if problem.uncertain else going  # prices that depend on readings are paid at the end as well
        busy, acts = np.flatnonzero(read.any(axis=1)), np.flatnonzero(read.any(axis=0))
        place = np.ix_(busy, acts)
        return self.open(busy, acts, read[place], going[place], directions)

    def endings(self, legal: np.ndarray) -> np.ndarray:
        """Return the endings of legal actions that have one whatever is read, int (m, A); -1 for all others."""
        first = self.child.take(self.problem.cell[:, 0], axis=1) - self.problem.num_nodes
        over = legal & (first >= 0)
        for action, cells in enumerate(self.problem.cell):
            for cell in np.unique(cells[cells != cells[0]]) if over[:, action].any() else ():
                over[:, action] &= self.child[:, cell] == self.child[:, cells[0]]
        return np.where(over, first, -1)

    def close(self, ending: np.ndarray) -> None:
        """Pay for actions that lead to endings (m, A) whatever is read; nothing has been earned before."""
        problem, still = self.problem, len(self.problem.jump) == 1
        nothing = np.zeros_like(problem.pays[:1])  # what is last is no ending, number -1
        pays = np.ascontiguousarray(np.concatenate([problem.pays, nothing]).transpose(2, 0, 1))
        totals, endings, states = pays.shape
        if problem.same_pays:
            for total, paid in enumerate(pays[:, :, 0]):
                self.gains[total] += paid.take(ending)
        elif still and (ending == ending[0]).all():
            for total, paid in enumerate(pays.take(ending[0], axis=1)):
                np.matmul(self.belief, paid.T, out=self.gains[total])
        elif still and EACH_STATE * totals * endings <= states:
            place = ending % endings + endings * np.arange(len(ending))[:, None]
            for total, paid in enumerate(pays):
                self.gains[total] += (self.belief @ paid.T).take(place)
        else:
            for action in np.flatnonzero((ending >= 0).any(axis=0)).tolist():
                rows = np.flatnonzero(ending[:, action] >= 0)
                paid = self.paid(rows, action, ending[rows, action])
                for total, part in enumerate(paid.T):
                    self.gains[total][rows, action] += part

    def paid(self, rows: np.ndarray, action: int, ending: np.ndarray) -> np.ndarray:
        """Return what endings (n,) pay on average at some points (n,), float64 (n, 1 + outcomes)."""
        pays = self.problem.pays
        endings, which = np.unique(ending, return_inverse=True)
        if len(self.problem.jump) > 1 and len(endings) * pays.shape[2] <= len(rows):
            paid = np.empty((len(rows), pays.shape[2]))
            for number, one in enumerate(endings):
                own = which == number
                paid[own] = self.ahead(rows[own], action, pays[one])
            return paid
        if len(self.problem.jump) > 1:
            return np.einsum("mx,mxk->mk", self.moved(rows, action), pays[ending])
        point, state, weight = self.listed(rows)
        return _summed(pays[ending[point], state] * weight[:, None], point, len(rows))

    def listed(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return points, as places among some, states and probabilities where these are positive: (n,) each."""
        point, state, weight = self.possible
        if len(rows) == len(self.node):
            return point, state, weight
        place = np.full(len(self.node), -1)
        place[rows] = np.arange(len(rows))
        on = place[point] >= 0
        return place[point[on]], state[on], weight[on]

    def open(
        self, busy: np.ndarray, acts: np.ndarray, on: np.ndarray, going: np.ndarray, directions: np.ndarray
    ) -> Found:
        """Take actions after which readings count, at points (n,), actions (b,), where `on` (n, b) is set.

        What follows is decided by readings where `going` is; elsewhere it is paid already.
        """
        problem, nodes, here = self.problem, self.problem.num_nodes, self.node[busy]
        slots, cells = busy[:, None] * problem.num_actions + acts, problem.cell[acts]
        chance, sides = self.read(busy, acts, on, directions)
        for total, table in problem.uncertain.items():
            earned = table[0, cells] if len(table) == 1 else table[here[:, None, None], cells]
            self.gains[total].ravel()[slots] += np.einsum("nbr,nbr->nb", chance, np.broadcast_to(earned, chance.shape))
        child = self.child[busy[:, None, None], cells]
        likely = (chance > 0) & going[:, :, None]
        self.end(busy, acts, np.nonzero(likely & (child >= nodes)), child)
        flat = np.flatnonzero(likely & (child < nodes))
        slot = flat // problem.num_readings
        chances = chance.ravel()[flat]
        sides = sides.reshape(chance.size, directions.shape[1])[flat] / chances[:, None]
        reached = child.ravel()[flat].astype(np.int64)
        return Found(slots.ravel()[slot], flat - slot * problem.num_readings, chances, reached, sides)

    def read(
        self, busy: np.ndarray, acts: np.ndarray, on: np.ndarray, directions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return chances of readings, float64 (n, b, R), 0 where `on` is not, and times posteriors, (n, b, R, k)."""
        problem, here = self.problem, self.node[busy]
        shape = len(busy), len(acts), problem.num_readings
        situation = problem.situation[here[:, None], acts]
        if len(problem.jump) == 1 and len(busy) and self.lists(busy, situation):
            point, state, weight = self.listed(busy)
            joint = problem.law[situation[point], state[:, None]]
            joint *= weight[:, None, None]
            joint[~on[point]] = 0.0
            sides = [_summed(joint * along[state][:, None, None], point, len(busy)) for along in directions.T]
            return _summed(joint, point, len(busy)), np.stack(sides, axis=3) if sides else np.zeros((*shape, 0))
        columns = np.column_stack([np.ones(problem.num_states), directions])
        whole = np.zeros((*shape, columns.shape[1]))
        for number, action in enumerate(acts.tolist()):
            rows = np.flatnonzero(on[:, number])
            for law, own in _shared(situation[rows, number]):
                weights = (problem.law[law][:, :, None] * columns[:, None]).reshape(problem.num_states, -1)
                own_rows = rows if own is None else rows[own]
                product = self.ahead(busy[own_rows], action, weights)
                whole[own_rows, number] = product.reshape(len(own_rows), *whole.shape[2:])
        return whole[..., 0], whole[..., 1:]

    def lists(self, busy: np.ndarray, situation: np.ndarray) -> bool:
        """Return whether possible states are listed: where few are possible, or few points share a law."""
        laws = sum(np.count_nonzero(np.bincount(column)) for column in situation.T)
        product = len(busy) * (1 + EACH_STATE * self.problem.num_states)
        listed = np.count_nonzero(self.belief) * len(busy) / len(self.node)
        return listed - product < EACH_LAW * laws / (situation.shape[1] * self.problem.num_readings)

    def end(self, busy: np.ndarray, acts: np.ndarray, at: tuple[np.ndarray, ...], child: np.ndarray) -> None:
        """Pay where an episode ends after some readings: at places of `child` (n, b, R)."""
        problem, (point, number, reading) = self.problem, at
        for chosen in np.unique(number).tolist():
            own = number == chosen
            rows, action = busy[point[own]], int(acts[chosen])
            law = problem.situation[self.node[rows], action] * problem.num_readings + reading[own]
            joint = moved_beliefs(problem, self.node[rows], action, self.belief[rows])
            joint = joint * problem.likelihood.take(law, axis=0)
            ending = child[point[own], chosen, reading[own]] - problem.num_nodes
            paid = np.einsum("mx,mxk->mk", joint, problem.pays[ending])
            for total, part in enumerate(paid.T):
                self.gains[total][:, action] += np.bincount(rows, part, len(self.node))


def _summed(values: np.ndarray, point: np.ndarray, points: int) -> np.ndarray:
    """Sum values (n, ...) of entries that are sorted by their points (n,): float64 (points, ...)."""
    first = np.flatnonzero(np.diff(point, prepend=-1))
    whole = np.zeros((points, *values.shape[1:]))
    whole[point[first]] = np.add.reduceat(values, first, axis=0)
    return whole


def _shared(laws: np.ndarray) -> Iterator[tuple[int, np.ndarray | None]]:
    """Yield each law and which of the points have it; None for all."""
    if not len(laws):
        return
    if laws.min() == laws.max():
        yield int(laws[0]), None
        return
    order = np.argsort(laws, kind="stable")
    cuts = np.flatnonzero(np.diff(laws[order])) + 1
    for rows in np.split(order, cuts):
        yield int(laws[rows[0]]), rows


def moved_beliefs(problem: Problem, node: np.ndarray, action: int, belief: np.ndarray) -> np.ndarray:
    """Return b P_a for beliefs (m, X) at nodes (m,)."""
    if len(problem.jump) == 1:
        return belief
    move = problem.move[node, action]
    moved = belief
    for row in np.unique(move[move < len(problem.jump) - 1]):
        here = move == row
        moved = moved.copy() if moved is belief else moved
        moved[here] = (problem.kernel(int(row)).T @ belief[here].T).T
    return moved
