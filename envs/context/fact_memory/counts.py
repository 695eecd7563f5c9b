"""Count vectors by rank: how many of some things are of each of several kinds, listed by their total.

Vectors n of m kinds that sum to t are ranked from 0 to binom(t + m - 1, m - 1) - 1 by the combinatorial number system:
with s_i = n_0 + ... + n_i, the numbers s_i + i increase strictly for i = 0, ..., m - 2, and the rank is the sum of
binom(s_i + i, i + 1). One thing more of kind j raises s_i for i >= j, so that ranks of all successors are two running
sums.
"""

import math

import numpy as np


def count_levels(kinds: int, most: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """List count vectors of 0, 1, ..., `most` things, in the order of their ranks.

    Args:
        kinds: m, at least 2.
        most: the largest number of things.

    Returns:
        The vectors of each total, int8 (N_t, m), and for each total but the last the ranks of the vectors with one
        thing more of each kind, int64 (N_t, m).
    """
    place = np.arange(kinds - 1)
    binomial = np.array([[math.comb(top, i + 1) for i in place] for top in range(most + kinds)], np.int32)
    levels, longer = [np.zeros((1, kinds), np.int8)], []
    for total in range(most):
        counts = levels[-1]
        top = np.cumsum(counts[:, :-1], axis=1, dtype=np.int64) + place
        after = np.zeros(counts.shape, np.int32)
        after[:, 1:] = np.cumsum(binomial[top, place], axis=1, dtype=np.int32)
        after[:, :-1] += np.cumsum(binomial[top + 1, place][:, ::-1], axis=1, dtype=np.int32)[:, ::-1]
        more = np.empty((math.comb(total + kinds, kinds - 1), kinds), np.int8)
        for kind in range(kinds):
            more[after[:, kind]] = counts + (np.arange(kinds) == kind).astype(np.int8)
        levels.append(more)
        longer.append(after)
    return levels, longer
