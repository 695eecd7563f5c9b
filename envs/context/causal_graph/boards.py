"""Boards of counts: how often each of some answers was given, whatever their order."""

import math
from typing import NamedTuple

import numpy as np


class Counts(NamedTuple):
    """All boards of at most some number of answers: by number of answers, then in the order of sorted answers."""

    shown: np.ndarray  # int64 (D, kinds), how often each answer was given
    done: np.ndarray  # int64 (D,), how many answers there are
    after: np.ndarray  # int32 (D, kinds), the board after one more answer; 0 where no more are possible
    #: int64 (kinds, most + 1): of boards that agree up to some kind, how many with m answers of later kinds come after
    #: those with fewer: the number of a board is the sum over kinds of these, beside where its number of answers begins
    behind: np.ndarray

    def number(self, shown: np.ndarray) -> np.ndarray:
        """Return the number of each board (n, kinds): int64 (n,); 0 for what is none."""
        most, kinds = self.behind.shape[1] - 1, self.behind.shape[0]
        total = shown.sum(axis=1)
        good = (shown >= 0).all(axis=1) & (total <= most)
        left = np.where(good, total, 0)
        found = np.array([board_number(kinds, done - 1) if done else 0 for done in range(most + 1)])[left]
        for column, behind in zip(np.where(good[:, None], shown, 0).T, self.behind, strict=True):
            left = left - column
            found += behind[left]
        return np.asarray(found)


def board_number(kinds: int, most: int) -> int:
    """Return the number of boards of at most `most` answers of `kinds` kinds."""
    return math.comb(kinds + most, most)


def all_counts(kinds: int, most: int) -> Counts:
    """List the boards of at most `most` answers of `kinds` kinds, starting with the empty one.

    A board is made from the one without its largest answer. Where one more answer leads follows from the same step: an
    answer that is at least the largest extends a board; a smaller one is put into the board without its largest, which
    is then added again.
    """
    total, each = board_number(kinds, most), np.arange(kinds)
    shown, after = np.zeros((total, kinds), np.int64), np.zeros((total, kinds), np.int32)
    # The largest answer of each board, the board without it, and where the boards begin that extend it.
    largest, shorter, first = (np.zeros(total, np.int64) for _ in range(3))
    layer, end = slice(0, 1), 1
    for done in range(most):
        boards = np.arange(layer.start, layer.stop)
        more = kinds - largest[layer]
        first[layer] = end + np.cumsum(more) - more
        source = np.repeat(boards, more)
        fresh = slice(end, end + len(source))
        shorter[fresh] = source
        largest[fresh] = np.arange(*fresh.indices(total)) - first[source] + largest[source]
        shown[fresh] = shown[source]
        shown[np.arange(*fresh.indices(total)), largest[fresh]] += 1
        appended = first[layer, None] + each - largest[layer, None]
        if done:
            inserted = after[shorter[layer]]
            put = first[inserted] + largest[layer, None] - largest[inserted]
            appended = np.where(each < largest[layer, None], put, appended)
        after[layer] = appended
        layer, end = fresh, fresh.stop
    # With m answers left behind kind j, boards with more answers j come first: m - 1 answers of the kinds j and on.
    behind = [[math.comb(m + kinds - j - 2, m - 1) if m else 0 for m in range(most + 1)] for j in range(kinds)]
    return Counts(shown, shown.sum(axis=1), after, np.array(behind))
