"""Equal beginnings of texts, read once: a row of words holds several texts as a tree, and a word sees its own text."""

import numpy as np
import torch

from theorybench.agents.language.decoding.cache import Tree

#: Words of a row, unless a text is longer: attention costs their square.
ROW = 24
#: Share of the words up to which it pays to read equal beginnings once.
SHARED = 0.8


def packed(words: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, Tree | None, np.ndarray]:
    """Pack texts.

    Args:
        words: int64 (m, words), sorted so that texts that begin alike are neighbours.
        lengths: int64 (m,), words of each text; what stands behind them does not count.

    Returns:
        The words to be read, int64 (rows, size); where they stand and what they see, None if each row is one text; and
        where in the rows the words of each text are, int64 (m, words), numbered row by row.
    """
    count, width = words.shape
    alike = np.zeros(count, np.int64)  # words that a text shares with the one before
    alike[1:] = (words[1:] == words[:-1]).cumprod(axis=1).sum(axis=1)
    np.minimum(alike[1:], lengths[:-1], out=alike[1:])
    new = lengths - alike
    if new.sum() > SHARED * words.size:
        return words, None, np.arange(words.size).reshape(words.shape)
    room, total = max(ROW, int(lengths.max())), np.cumsum(new)
    first, at = np.zeros(count, bool), 0
    while at < count:  # a row holds as many texts as it has room for; the first of them is read as a whole
        first[at], alike[at] = True, 0
        at = int(np.searchsorted(total, total[at] + room - lengths[at], side="right"))
    row, depth = np.cumsum(first) - 1, np.arange(width)
    text, place = np.nonzero((depth >= alike[:, None]) & (depth < lengths[:, None]))  # of the words that are read
    number = np.full(words.shape, -1)
    number[text, place] = np.arange(len(text))
    number = np.maximum.accumulate(number, axis=0)  # a word that is not read again stands in a text before
    begin = number[first, 0]
    column, size = number - begin[row][:, None], int(np.diff(np.append(begin, len(text))).max())

    read, places = np.zeros((2, len(begin), size), np.int64)
    seen = np.zeros((len(begin), 1, size, size), bool)
    seen[..., np.arange(size), np.arange(size)] = True  # padding sees itself
    here = column[text, place]
    read[row[text], here], places[row[text], here] = words[text, place], place
    asking, before = np.nonzero(depth <= place[:, None])
    seen[row[text[asking]], 0, here[asking], column[text[asking], before]] = True
    return read, Tree(torch.from_numpy(places), torch.from_numpy(seen)), row[:, None] * size + column
