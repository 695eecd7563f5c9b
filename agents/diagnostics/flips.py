"""A regression of velocities on features, and the same with the signs of whole rows flipped at random."""

from typing import NamedTuple

import numpy as np

#: Rows up to which what the features explain is kept as one number for each two rows.
MOST_ROWS = 6000
#: Signs that are drawn at a time.
CHUNK = 128


class Flipped(NamedTuple):
    """What T is among its values with random signs."""

    p_value: float
    excess: float  # T less its mean over random signs


def flipped(d: np.ndarray, features: np.ndarray, flips: int, ridge: float, rng: np.random.Generator) -> Flipped:
    """Compare T = sum over coordinates of d' F (F'F + ridge I)^-1 F' d with its values under random signs of rows.

    Args:
        d: float64 (n, q).
        features: F, float64 (n, k).
        flips: how many times signs are drawn.
        ridge: above 0.
        rng: draws the signs.

    Returns:
        The share of T and its values with random signs that are at least as large as T; and the excess of T.
    """
    moving = d.any(axis=1)  # elsewhere a sign changes nothing
    d, root = d[moving], _root(features, ridge)[moving]
    if not root.size:
        return Flipped(1.0, 0.0)
    (n, k), q = root.shape, d.shape[1]
    whole = n <= MOST_ROWS and n < k * q
    kernel = (root @ root.T) * (d @ d.T) if whole else None

    def explained(signs: np.ndarray) -> np.ndarray:  # (s, n) -> (s,)
        if kernel is not None:
            return np.einsum("sn,sn->s", signs @ kernel, signs)
        return np.asarray(sum(np.square((signs * part) @ root).sum(axis=1) for part in d.T))

    value = float(explained(np.ones((1, n)))[0])
    drawn = []
    for begin in range(0, flips, CHUNK):
        signs = rng.integers(0, 2, (min(CHUNK, flips - begin), n), dtype=np.int8) * 2.0 - 1.0
        drawn.append(explained(signs))
    others = np.concatenate(drawn)
    # Equal values, computed in another order, count as equal.
    reached = int((others >= value * (1 - 1e-9)).sum())
    return Flipped((1 + reached) / (flips + 1), value - float(others.mean()))


def _root(features: np.ndarray, ridge: float) -> np.ndarray:
    """Return a factor R (n, min(n, k)) of what the features explain: R R' = F (F'F + ridge I)^-1 F'."""
    n, k = features.shape
    small = features.T @ features if k <= n else features @ features.T
    values, vectors = np.linalg.eigh(small)
    kept = values > 1e-10 * max(1.0, float(values.max(initial=0.0)))
    values, vectors = values[kept], vectors[:, kept]
    if k <= n:
        return np.asarray(features @ (vectors / np.sqrt(values + ridge)))
    return np.asarray(vectors * np.sqrt(values / (values + ridge)))
