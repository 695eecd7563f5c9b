"""A text of which the beginning is given: buy labels of its source, read on, or write the rest."""

import dataclasses
import functools
from typing import ClassVar

import numpy as np

from theorybench.envs.context.board import BoardSetting, practice
from theorybench.envs.context.metadata.boards import Boards, known_labels, list_boards
from theorybench.envs.context.metadata.grammar import (
    Beginnings,
    Texts,
    draw_rules,
    labels,
    list_beginnings,
    write_texts,
)
from theorybench.envs.core.finite.graph import DecisionGraph
from theorybench.envs.core.finite.problem import Problem
from theorybench.envs.core.validation import instance, integer, real


@dataclasses.dataclass(frozen=True, kw_only=True)
class Metadata(BoardSetting):
    """The prompt is short and its source unknown."""

    question: ClassVar[str] = "the prompt is short, its source unknown: ask for a label, read on, or write?"
    lower: ClassVar[str] = "D"

    D: int = integer(3, 2, 3, "levels of the grammar, each with a label; a text has 2^D symbols")
    q: int = integer(3, 2, 4, "symbols")
    read_price: float = real(0.08, 0.0, 1.0, "of reading a symbol")
    label_price: float = real(0.08, 0.0, 1.0, "of a label")
    instance: int = instance(0, "the rules of the grammar")

    def most_rows(self) -> int:
        """Return a bound of the number of boards: beginnings, times where writing began, times known labels."""
        texts = 2 ** (self.D + self.L - 1)
        begun = sum(length * min(self.q**length, texts) for length in range(1, self.L))
        return begun * (2 ** (self.D + 1) - 1)

    @property
    def gathering(self) -> np.ndarray:
        """Reading and buying a label: bool (A,)."""
        return np.arange(self.q + 2) >= self.q

    @property
    def L(self) -> int:
        """Symbols of a text."""
        return 2**self.D

    @functools.cached_property
    def rules(self) -> np.ndarray:
        """The pairs that a symbol may become: int64 (D, 2, q, 2, 2) by level, label and symbol."""
        return draw_rules(np.random.default_rng([250417562, self.instance]), self.D, self.q)

    @functools.cached_property
    def texts(self) -> Texts:
        """All texts and their probabilities."""
        return write_texts(self.rules)

    @functools.cached_property
    def beginnings(self) -> Beginnings:
        """All beginnings of texts and their probabilities."""
        return list_beginnings(self.texts, self.q)

    @functools.cached_property
    def boards(self) -> Boards:
        """All boards."""
        return list_boards(self.beginnings, self.D)

    @functools.cached_property
    def chance(self) -> np.ndarray:
        """P(the text begins so, and these labels): float64 (B, groups), by beginning and group of known labels."""
        return self.beginnings.chance @ known_labels(self.D).T / 2**self.D

    @functools.cached_property
    def language_model(self) -> np.ndarray:
        """P(next symbol | symbols on the board, labels), as if all had been read: float64 (boards, q)."""
        boards = self.boards
        group = boards.sources.group[boards.source]
        after = self.beginnings.longer[boards.text]
        return np.where(after >= 0, self.chance[after, group[:, None]], 0.0) / self.chance[boards.text, group, None]

    @functools.cached_property
    def usual(self) -> np.ndarray:
        """Write on as the language model does: float64 (boards, A), distributions over actions."""
        return np.append(self.language_model, np.zeros((len(self.language_model), 2)), axis=1)

    @functools.cached_property
    def best_writing(self) -> np.ndarray:
        """The symbol to write at each board for the best chance of a text of the grammar: int64 (boards,)."""
        graph, symbols = self.graph("nodes"), np.zeros(len(self.boards.source), np.int64)
        symbols[graph.node] = graph.solved(graph.legal & ~self.gathering)[0]
        return symbols

    @functools.cached_property
    def problem(self) -> Problem:
        """The tables, with labels and text as the hidden state; endings are whole texts, and the last one is none."""
        D, q, L, texts, boards, sources = self.D, self.q, self.L, self.texts, self.boards, self.boards.sources
        count, nodes, none = len(sources.bought), len(boards.source), len(boards.source) + len(texts.symbols)
        way, text = np.nonzero(texts.chance)
        child = np.full((nodes, 2 * q + 2), -1)
        child[:, :q], child[:count, q : 2 * q], child[:count, 2 * q :] = boards.written, boards.read, boards.label
        cell = np.repeat(np.arange(q + 2)[:, None], q, axis=1)
        cell[q], cell[q + 1] = q + np.arange(q), 2 * q + np.minimum(np.arange(q), 1)
        situation = np.full((nodes, q + 2), -1)
        situation[:count, q] = self.beginnings.length[sources.beginning]
        situation[:count, q + 1] = np.where(sources.bought < D, L + sources.bought, -1)
        legal = situation >= 0
        legal[:, :q] = True
        start = np.flatnonzero((sources.bought == 0) & (self.beginnings.length[sources.beginning] < L - 1))
        begun = self.beginnings.symbols[sources.beginning[start]]
        fits = ((begun[:, None] == texts.symbols[text]) | (begun[:, None] < 0)).all(axis=2)  # (contexts, X)
        read, bought = np.repeat(np.eye(3)[1:], (q, q, 2), axis=1)[:, None]
        pay = np.append(texts.chance[way].T > 0, np.zeros((1, len(way))), axis=0)
        return Problem(
            horizon=L + D,
            num_actions=q + 2,
            child=np.where(child < 0, none, child),
            cell=cell,
            law=np.eye(q)[np.concatenate([texts.symbols[text].T, labels(D)[way].T])],
            situation=situation,
            legal=legal,
            gain=-self.read_price * read - self.label_price * bought,
            pay=pay,
            start=start,
            prior=fits * texts.chance[way, text] / (2**D * (L - 2)),
            shown=self._shown_numbers,
            outcomes={"success": pay, "grammatical": pay},
            tallies={"spent": self.read_price * read + self.label_price * bought, "read": read, "labels": bought},
            **practice(self.usual, legal),
        )

    @property
    def _shown_numbers(self) -> np.ndarray:
        """The numbers of each board: symbols, labels and where writing began; 0 for what is not known or not yet so."""
        boards, sources = self.boards, self.boards.sources
        group = sources.group[boards.source, None]
        depth = np.arange(1, self.D + 1)
        bought = sources.bought[boards.source, None]
        label = (group + 1 - (1 << bought)) >> np.maximum(bought - depth, 0) & 1
        own = self.beginnings.length[sources.beginning[boards.source]]
        begun = np.where(self.beginnings.length[boards.text] > own, own, 0)
        told = self.beginnings.symbols[boards.text] + 1, np.where(depth <= bought, 1 + label, 0), begun[:, None]
        return np.concatenate(told, axis=1)

    @functools.cached_property
    def believed(self) -> Problem:
        """The same problem as one sees it who knows the grammar: readings and pay as likely as the board says.

        Nothing is hidden in it; nodes, actions and what each earns on average are the same.
        """
        q, boards, sources, whole = self.q, self.boards, self.boards.sources, int(self.beginnings.first[self.L])
        own, group = self.chance[sources.beginning, sources.group, None], sources.group[:, None]
        after = self.beginnings.longer[sources.beginning]
        law = np.zeros((2, len(own), 1, q))
        law[0, :, 0] = np.where(after >= 0, self.chance[after, group], 0.0) / own
        deeper = np.minimum(2 * group + 1 + np.arange(2), self.chance.shape[1] - 1)
        law[1, :, 0, :2] = np.where(group < 2**self.D - 1, self.chance[sources.beginning[:, None], deeper] / own, 0.5)
        situation = np.full((len(boards.source), q + 2), -1)
        situation[: len(own), q:] = np.arange(2 * len(own)).reshape(2, -1).T
        nodes, texts = len(boards.source), len(self.texts.symbols)
        child = self.problem.child.copy()
        row, column = np.nonzero((child >= nodes) & (child < nodes + texts))
        weight = self.beginnings.chance[sources.beginning] * known_labels(self.D)[sources.group]
        weight = (weight / weight.sum(axis=1, keepdims=True))[boards.source[row]]
        right = (weight * (self.beginnings.chance[whole + child[row, column] - nodes] > 0)).sum(axis=1)
        child[child >= nodes] = nodes + len(row)
        child[row, column] = nodes + np.arange(len(row))
        pay = np.append(np.where(column < q, right, 1.0), 0.0)[:, None]
        changed = {"law": law.reshape(-1, 1, q), "situation": situation, "jump": None, "move": None, "begin": None}
        prior = self.problem.prior.sum(axis=1, keepdims=True)
        outcomes = {"success": pay, "grammatical": pay}
        return dataclasses.replace(self.problem, child=child, pay=pay, prior=prior, outcomes=outcomes, **changed)

    def graph(self, rows: str) -> DecisionGraph:
        """List the decisions, by "nodes" those of `believed`: boards say all that is known of what is hidden."""
        held = self.__dict__.setdefault("_graphs", {})
        if rows == "nodes" and rows not in held:
            held[rows] = DecisionGraph(self.believed, rows)
        return super().graph(rows)

    def symbol_name(self, symbol: int) -> str:
        """Name a symbol in renderings: a letter to write, READ, LABEL, or a number on the board."""
        names = [*"abcd"[: self.q], "READ", "LABEL"]
        return names[symbol] if symbol < self.num_actions else str(symbol - self.num_actions)
