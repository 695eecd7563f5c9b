"""Finite decision problems as tables, and the flat arrays from which their dynamics are gathered."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from theorybench.envs.core.errors import ParameterError

#: How far probabilities may be from summing to one.
SUM_TOLERANCE = 1e-9
#: Hidden states up to which their moves are dense matrices.
DENSE = 1024
#: Pairs of context and hidden state are listed where fewer than one in so many has a positive probability.
SPARSE = 4


class FiniteTables(NamedTuple):
    """What the dynamics gather from: a `Problem` laid flat, for D nodes, E endings, A actions, R readings, X states."""

    start: np.ndarray  # int64 (contexts,), the node where each context begins
    #: int64 (contexts * worlds,), the hidden state in which each world begins; or the pairs, context * X + state, that
    #: `prior` is of, empty for all of them
    begin: np.ndarray
    prior: np.ndarray  # float64 (pairs - 1 or 0,), cumulated probabilities of (context, state)
    child: np.ndarray  # int64 (D * cells,), the next node; from D on it is an ending
    cell: np.ndarray  # int64 (A * R,), the column of `child` and `gain` of each action and reading
    legal: np.ndarray  # bool (D, A)
    situation: np.ndarray  # int64 (D * A,), the law of the reading
    law: np.ndarray  # float64 (laws * X, R - 1), cumulated: the reading is how many of them a uniform draw reaches
    move: np.ndarray  # int64 (D * A,), how the hidden state moves
    jump: np.ndarray  # int64 (moves * X * quantiles,), where a hidden state goes
    gain: np.ndarray  # float64 (D * cells,), the reward of a step
    pay: np.ndarray  # float64 (E * X,), what is paid at the end; of rows of `pay` where endings pay sums of these
    shown: np.ndarray  # int64 (boards + 1 or contexts, columns), tokens; the last board, of endings, is blank
    reply: np.ndarray  # int64 (R, replies), the tokens with which the environment shows a reading


@dataclasses.dataclass(frozen=True, kw_only=True)
class Problem:
    """A finite decision problem with a hidden state, as its author writes it down.

    D nodes are all that the dynamics need of what has been seen; there are C contexts, A actions, R readings, X hidden
    states and E endings. An action a at node s moves the hidden state x to `jump[move[s, a], x, k]`, k being uniform,
    then a reading r is drawn from `law[situation[s, a], x]`, and the next node is `child[s, cell[a, r]]`. A next node
    s >= D is ending s - D, which pays `pay[s - D, x]`. Arrays of shape (D or 1, ...) may be given as one row where the
    node does not matter, and are held as D.
    """

    horizon: int  # the largest number of actions
    child: np.ndarray  # int (D, cells)
    pay: np.ndarray  # float64 (E, X)
    num_actions: int
    #: int (E, k), the rows of `pay` whose sum each ending pays, where it is made of parts that many share; None for row
    #: e at ending e
    terms: Any = None
    law: Any = None  # float64 (laws, X, R), rows summing to 1; None where nothing is ever read (R = 1)
    #: int (D or 1, A), -1 for an action after which nothing is read, which is reading 0; None for law a after action a
    situation: Any = None
    cell: Any = None  # int (A, R), the column of `child`; None for a R + r
    legal: Any = None  # bool (D or 1, A); None where all actions are. A policy that takes an illegal one ends with 0
    gain: Any = None  # float64 (D or 1, cells), rewards of steps, such as negative prices; None for none
    jump: Any = None  # int (moves, X, quantiles); None where hidden states stay
    move: Any = None  # int (D or 1, A), -1 for an action that moves nothing; None for row 0 after every action
    start: Any = None  # int (C,), the node where each context begins; None for node 0 alone
    #: float64 (C, X), summing to 1, from which a prompt draws context and hidden state; None for `begin`
    prior: Any = None
    #: int (C, worlds), the hidden state of each world: a prompt is a context and one of these, all equally likely; None
    #: for one world for each state, or for `prior`
    begin: Any = None
    #: int (D, columns), the board of each node, or (C, columns), the prompt of each context; numbers >= 0
    shown: Any = None
    #: int (R, tokens), the numbers with which a reading is shown; None for one token, the reading itself
    replies: Any = None
    reference: Any = None  # float64 (D, A), rows of the reference policy; None for the uniform one on legal actions
    initial: Any = None  # float64 (D, A), where agents start; None for the reference
    #: float64 (E, X) by name: further numbers whose expectations at the end are metrics
    outcomes: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    #: float64 (D or 1, cells) by name, as `gain`: further numbers whose expected sums over the steps are metrics
    tallies: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Fill in what is left out, and check shapes, ranges and sums.

        Raises:
            ParameterError: names the table.
        """
        A, X, nodes = self.num_actions, self.pay.shape[1], len(self.child)
        law = np.ones((1, X, 1)) if self.law is None else np.asarray(self.law, np.float64)
        silent = np.zeros((1, *law.shape[1:]))
        silent[..., 0] = 1.0
        law = np.concatenate([law, silent])
        readings = law.shape[2]
        situation = np.arange(A)[None] if self.situation is None else np.asarray(self.situation)
        situation = np.full((1, A), -1) if self.law is None else situation
        start = np.zeros(1, np.int64) if self.start is None else np.asarray(self.start)
        worlds = np.tile(np.arange(X if self.prior is None else 0), (len(start), 1))
        begin = worlds if self.begin is None else np.asarray(self.begin)
        if begin.size and not (begin.min() >= 0 and begin.max() < X):
            raise ParameterError("begin", (int(begin.min()), int(begin.max())), f"hidden states in 0..{X - 1}")
        prior = np.zeros((len(start), X))
        np.add.at(prior, (np.arange(len(start))[:, None], begin), 1 / max(1, begin.size))
        jump = np.zeros((0, X, 1), np.int64) if self.jump is None else np.asarray(self.jump)
        jump = np.concatenate([jump, np.broadcast_to(np.arange(X)[:, None], (1, X, jump.shape[2]))])
        move = np.full((1, A), -1 if self.jump is None else 0) if self.move is None else np.asarray(self.move)
        cells = np.arange(A * readings).reshape(A, readings) if self.cell is None else np.asarray(self.cell)
        legal = np.ones((1, A), bool) if self.legal is None else np.asarray(self.legal, bool)
        reference = self.reference
        if reference is None:
            reference = legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)
        filled = {
            "law": law,
            "situation": np.where(situation < 0, len(law) - 1, situation),
            "cell": cells,
            "legal": legal,
            "gain": np.zeros((1, self.child.shape[1])) if self.gain is None else self.gain,
            "jump": jump,
            "move": np.where(move < 0, len(jump) - 1, move),
            "start": start,
            "begin": begin,
            "prior": prior if self.prior is None else np.asarray(self.prior, np.float64),
            "shown": np.zeros((len(start), 0), np.int64) if self.shown is None else self.shown,
            "replies": np.arange(readings)[:, None] if self.replies is None else self.replies,
            "reference": reference,
            "initial": reference if self.initial is None else self.initial,
        }
        for name, value in filled.items():
            short = name in ("situation", "legal", "gain", "move", "reference", "initial") and len(value) == 1
            whole = np.broadcast_to(value, (nodes, *value.shape[1:])) if short else value
            object.__setattr__(self, name, whole)
        self._check()

    def _check(self) -> None:
        A, R, X, nodes = self.num_actions, self.num_readings, self.num_states, self.num_nodes
        shapes = {
            "law": (None, X, R),
            "situation": (nodes, A),
            "cell": (A, R),
            "legal": (nodes, A),
            "gain": self.child.shape,
            "move": (nodes, A),
            "jump": (None, X, None),
            "prior": (len(self.start), X),
            "begin": (len(self.start), None),
            "replies": (R, None),
            "reference": (nodes, A),
            "initial": (nodes, A),
        }
        for name, shape in shapes.items():
            have = getattr(self, name).shape
            if len(have) != len(shape) or any(want not in (None, size) for size, want in zip(have, shape, strict=True)):
                raise ParameterError(f"{name}.shape", have, f"{shape}, None being any length")
        ranges = (
            ("terms", np.zeros(0) if self.terms is None else self.terms, len(self.pay)),
            ("child", self.child, nodes + self.num_endings),
            ("situation", self.situation, len(self.law)),
            ("move", self.move, len(self.jump)),
            ("jump", self.jump, X),
            ("cell", self.cell, self.child.shape[1]),
            ("start", self.start, nodes),
        )
        for name, array, high in ranges:
            if array.size and not (array.min() >= 0 and array.max() < high):
                raise ParameterError(name, (int(array.min()), int(array.max())), f"indices in 0..{high - 1}")
        distributions = ("law", "reference", *(["initial"] if self.initial is not self.reference else []))
        for name in distributions:
            table = getattr(self, name)
            if (table < 0).any() or np.abs(table.sum(axis=-1) - 1).max(initial=0.0) > SUM_TOLERANCE:
                raise ParameterError(name, float(table.min()), "distributions along the last axis")
        if (self.prior < 0).any() or abs(self.prior.sum() - 1) > SUM_TOLERANCE:
            raise ParameterError("prior", float(self.prior.sum()), "probabilities that sum to 1")
        if not self.legal.any(axis=1).all():
            raise ParameterError("legal", "a node without a legal action", "a legal action at every node")
        for name, table in self.tallies.items():
            if name in self.outcomes or table.shape not in (self.child.shape, (1, self.child.shape[1])):
                raise ParameterError("tallies", f"{name} {table.shape}", f"a name of its own, shape {self.child.shape}")

    @property
    def num_nodes(self) -> int:
        """D, the nodes where something is decided."""
        return len(self.child)

    @property
    def num_endings(self) -> int:
        """E."""
        return len(self.pay if self.terms is None else self.terms)

    @property
    def num_states(self) -> int:
        """X."""
        return int(self.pay.shape[1])

    @property
    def num_readings(self) -> int:
        """R."""
        return int(self.law.shape[2])

    def blind(self) -> "Problem":
        """Return the same problem without readings: its optimum is the best fixed sequence of actions of each context.

        Raises:
            ParameterError: rewards of steps or next nodes depend on readings, so that readings are more than a sight.
        """
        first = []
        for action, cells in enumerate(self.cell):
            possible = cells[self.law[np.unique(self.situation[:, action])].any(axis=(0, 1))]
            for table in (self.child, self.gain):
                rows = table[self.legal[:, action]][:, possible]
                if (rows != rows[:, :1]).any():
                    raise ParameterError("child", f"action {action}", "a next node that no reading changes")
            first.append(possible[:1])
        changed: dict[str, Any] = {"law": None, "situation": None, "replies": None, "cell": np.array(first)}
        still = len(self.jump) - 1  # what moves nothing is given as -1
        changed |= {"jump": self.jump[:-1], "move": np.where(self.move == still, -1, self.move)}
        return dataclasses.replace(self, **changed)

    @functools.cached_property
    def all_legal(self) -> bool:
        """Whether every action is legal everywhere."""
        return bool(self.legal.all())

    @property
    def totals(self) -> tuple[str, ...]:
        """The names of what an episode adds up: "objective", the outcomes, the tallies."""
        return ("objective", *self.outcomes, *self.tallies)

    @functools.cached_property
    def _steps(self) -> dict[int, np.ndarray]:
        first = 1 + len(self.outcomes)
        return {0: self.gain} | {first + number: table for number, table in enumerate(self.tallies.values())}

    @functools.cached_property
    def certain(self) -> dict[int, np.ndarray]:
        """What actions earn in some of the totals, by their numbers, whatever is read: float64 (D or 1, A)."""
        alone = {}
        for total, table in self._steps.items():
            table = table[:1] if table.strides[0] == 0 else table  # one row for all nodes
            first = table[:, self.cell[:, 0]]
            if all((table[:, cells] == first[:, [action]]).all() for action, cells in enumerate(self.cell)):
                alone[total] = first
        return alone

    @functools.cached_property
    def uncertain(self) -> dict[int, np.ndarray]:
        """What steps earn in the other totals: float64 (D or 1, cells)."""
        return {total: table for total, table in self._steps.items() if total not in self.certain}

    @property
    def varying(self) -> list[int]:
        """The numbers of the totals that are not tallies of actions alone."""
        return [*range(1 + len(self.outcomes)), *(total for total in self.uncertain if total > len(self.outcomes))]

    @functools.cached_property
    def likelihood(self) -> np.ndarray:
        """The laws by reading: float64 (laws R, X), row law R + reading."""
        return np.ascontiguousarray(self.law.swapaxes(1, 2)).reshape(-1, self.num_states)

    @functools.cached_property
    def same_pays(self) -> bool:
        """Whether no ending's pay, nor outcome, depends on the hidden state."""
        return bool((self.pays == self.pays[:, :1]).all())

    @functools.cached_property
    def pays(self) -> np.ndarray:
        """What endings pay, and their outcomes: float64 (E, X, 1 + outcomes)."""
        outcomes = [np.broadcast_to(outcome, (self.num_endings, self.num_states)) for outcome in self.outcomes.values()]
        return np.stack([self.paid(np.arange(self.num_endings)), *outcomes], axis=2)

    def paid(self, endings: np.ndarray, states: slice = slice(None)) -> np.ndarray:
        """Return what endings (n,) pay in some hidden states, all of them unless told otherwise: float64 (n, X)."""
        pay = self.pay[:, states]
        if self.terms is None:
            return np.asarray(pay[endings])
        first, *others = np.asarray(self.terms)[endings].T
        paid = pay.take(first, axis=0)
        for rows in others:
            paid += pay.take(rows, axis=0)
        return np.asarray(paid)

    def kernel(self, move: int) -> Any:
        """Return the law of a move of the hidden state, float64 (X, X), sparse where X is large."""
        held = self.__dict__.setdefault("_kernels", {})
        if move not in held:
            from scipy.sparse import csr_array

            states, quantiles = self.jump.shape[1:]
            places = (np.repeat(np.arange(states), quantiles), self.jump[move].ravel())
            law = csr_array((np.full(states * quantiles, 1 / quantiles), places), shape=(states, states))
            held[move] = law.toarray() if states <= DENSE else law
        return held[move]

    @functools.cached_property
    def thresholds(self) -> np.ndarray:
        """Cumulated laws, float64 (laws, X, R - 1); 1 from the last possible reading on, so that no other is drawn."""
        left = np.cumsum(self.law[..., ::-1], axis=-1)[..., ::-1]
        return np.where(left[..., 1:] > 0, np.cumsum(self.law, axis=-1)[..., :-1], 1.0)

    def tables(self, prompt_token: int, reply_token: int, *, boards: bool) -> FiniteTables:
        """Lay the problem flat.

        Args:
            prompt_token: the token of number 0 in prompts and on boards.
            reply_token: the token of number 0 in replies.
            boards: whether `shown` is by node.
        """
        shown = np.asarray(self.shown, np.int64) + prompt_token
        if boards:
            shown = np.concatenate([shown, np.zeros_like(shown[:1])])
        pairs = np.flatnonzero(self.prior)
        listed = not self.begin.size and SPARSE * len(pairs) < self.prior.size
        integers = {
            "start": self.start,
            "begin": pairs if listed else self.begin.ravel(),
            "child": self.child.ravel(),
            "cell": self.cell.ravel(),
            "situation": self.situation.ravel(),
            "move": self.move.ravel(),
            "jump": self.jump.ravel(),
            "shown": shown,
            "reply": np.asarray(self.replies) + reply_token,
        }
        chances = self.prior.ravel()[pairs] if listed else self.prior
        floats = {
            "prior": np.zeros(0) if self.begin.size else np.cumsum(chances)[:-1],
            "law": self.thresholds.reshape(len(self.law) * self.num_states, self.num_readings - 1),
            "gain": self.gain.ravel(),
            "pay": self.pay.ravel(),
        }
        return FiniteTables(
            **{name: np.require(array, np.int64, "W") for name, array in integers.items()},
            **{name: np.require(array, np.float64, "W") for name, array in floats.items()},
            legal=np.require(self.legal, bool, ["C", "W"]),
        )


def softened(usual: np.ndarray, legal: np.ndarray, share: float) -> np.ndarray:
    """Return rows that do what is usual and spread a share over the legal actions.

    Args:
        usual: int (n,), an action each, or float64 (n, A), distributions.
        legal: bool (n or 1, A).
        share: of the uniform distribution.

    Returns:
        float64 (n, A).
    """
    spread = share * legal
    spread /= legal.sum(axis=1, keepdims=True)
    if usual.ndim == 2:
        return np.asarray((1 - share) * usual + spread)
    rows = np.repeat(spread, len(usual), axis=0) if len(legal) == 1 else spread
    rows[np.arange(len(usual)), usual] += 1 - share
    return rows
