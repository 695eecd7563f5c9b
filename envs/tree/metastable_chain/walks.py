"""Walks through a ring of clusters, exactly and by sampling: pure functions of the ring and of probabilities.

All clusters are copies of one another, so the state of a walk is its cluster and the place that its last token names.
A policy that sees position and last token is evaluated by a forward pass over (cluster, last token), any other on all
prefixes or on sampled ones. Both return `Endings`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from theorybench.envs.core.numerics import divergence
from theorybench.envs.core.policy import inverse_cdf

#: Probability of steps that the reference never takes that is treated as 0: softmax tables cannot represent zero.
NEGLIGIBLE = 1e-12
#: Maximum number of observations per call of a policy.
HELD = 2**16

Probs = Callable[[np.ndarray], np.ndarray]


class Ring(NamedTuple):
    """The effect of each token; there are A = M + 1 tokens, or M + 2 with steps back."""

    clusters: int  # K, the number of clusters; the last is the target
    size: int  # M, the number of places in a cluster
    place: np.ndarray  # int64 (A,), the place to which a token leads
    move: np.ndarray  # int64 (A,), the change of cluster: 0, +1 for a leap, -1 for a step back (0 in the first cluster)
    wrong: np.ndarray  # bool (M, A), tokens for which a place has no edge

    @property
    def entry(self) -> int:
        """The place to which leaps lead."""
        return int(self.place[self.size])

    @property
    def exit(self) -> int:
        """The place from which they start."""
        return int(self.wrong[:, self.size].argmin())

    @staticmethod
    def of(clusters: int, size: int, entry: int, exit: int, two_way: bool) -> "Ring":
        """Build the ring whose leaps go from the exit of a cluster to the entry of the next."""
        place = np.array([*range(size), entry, exit][: size + 1 + two_way])
        move = np.array([0] * size + [1, -1][: 1 + two_way])
        wrong = np.zeros((size, len(place)), bool)
        wrong[:, size] = np.arange(size) != exit
        if two_way:
            wrong[:, size + 1] = np.arange(size) != entry
        return Ring(clusters, size, place, move, wrong)


class Endings(NamedTuple):
    """How episodes end; entries are classes of episodes, or samples of equal weight."""

    weight: np.ndarray  # float64 (n,), probabilities that sum to 1
    time: np.ndarray  # int64 (n,), the step that reached the target; horizon + 1 if none did
    cluster: np.ndarray  # int64 (n,), the cluster at the end, 0..K - 1
    wrong: np.ndarray  # bool (n,), whether a step without an edge ended it
    #: float64 (n,), ln(policy / reference) of the episode in expectation over each row; infinite where the policy puts
    #: more than `NEGLIGIBLE` on a step that the reference never takes
    kl: np.ndarray
    sampled: bool = False  # whether the entries are samples


def initial_mass(ring: Ring, mass: float) -> np.ndarray:
    """Put mass on each place of the first cluster: float64 (K, A), by cluster and last token."""
    start = np.zeros((ring.clusters, len(ring.place)))
    start[0, : ring.size] = mass
    return start


def flow(ring: Ring, rows: Iterable[np.ndarray], mass: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Propagate mass forward, one step for each table of rows.

    Args:
        ring: the ring.
        rows: float64 (A, A) for each step, the weight of each token after each last token.
        mass: float64 (K, A), by cluster and last token.

    Yields:
        Mass that continues after the step, float64 (K, A), that a wrong token ends, (K,), and that reaches the target.
    """
    edgeless = ring.wrong[ring.place]
    for row in rows:
        moved, lost = mass @ np.where(edgeless, 0.0, row), mass @ np.where(edgeless, row, 0.0).sum(axis=1)
        mass = moved.copy()
        mass[1:, ring.size], mass[0, ring.size] = moved[:-1, ring.size], 0.0
        for back in range(ring.size + 1, len(ring.place)):
            mass[:-1, back] = moved[1:, back]
            mass[0, back] += moved[0, back]
        reached = float(mass[-1].sum())
        mass[-1] = 0.0
        yield mass, lost, reached


def row_kl(rows: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return KL(row || reference) in nats over the last axis; infinite as `Endings.kl` says."""
    taken = np.where(reference > 0, rows, 0.0)
    return np.where((rows - taken).sum(axis=-1) > NEGLIGIBLE, np.inf, divergence(taken, reference))


def follow(ring: Ring, rows: np.ndarray, reference: np.ndarray) -> Endings:
    """Evaluate a policy that sees position and last token.

    Args:
        ring: the ring.
        rows: float64 (H, A, A), its probabilities at each position after each last token.
        reference: float64 (A, A), the reference's.
    """
    horizon, clusters = len(rows), np.arange(ring.clusters)
    hits, lost, kl = np.zeros(horizon), np.zeros(ring.clusters), 0.0
    mass = initial_mass(ring, 1 / ring.size)
    for position, (after, ended, reached) in enumerate(flow(ring, rows, mass)):
        visits = mass.sum(axis=0)
        kl += float(visits[visits > 0] @ row_kl(rows[position], reference)[visits > 0])
        hits[position], mass = reached, after
        lost += ended
    late = np.full(ring.clusters, horizon + 1)
    return Endings(
        weight=np.concatenate([hits, lost, mass.sum(axis=1)]),
        time=np.concatenate([np.arange(1, horizon + 1), late, late]),
        cluster=np.concatenate([np.full(horizon, ring.clusters - 1), clusters, clusters]),
        wrong=np.repeat([False, True, False], [horizon, ring.clusters, ring.clusters]),
        kl=np.full(horizon + 2 * ring.clusters, kl),
    )


def count_prefixes(ring: Ring, horizon: int, most: int) -> int:
    """Count the prefixes at which a policy decides, without wrong tokens; stop counting above `most`."""
    total = mass = initial_mass(ring, 1.0)
    edges = np.ones((len(ring.place),) * 2)
    for after, _, _ in flow(ring, (edges for _ in range(horizon - 1)), mass):
        total = total + after
        if total.sum() > most:
            break
    return int(total.sum())


def walk(
    ring: Ring, probs: Probs, reference: np.ndarray, tokens: np.ndarray, rng: np.random.Generator | None = None
) -> Endings:
    """Evaluate any policy.

    Args:
        ring: the ring.
        probs: maps observations (m, 1 + H) to probabilities float64 (m, A).
        reference: float64 (A, A), the reference's probabilities after each last token.
        tokens: integers (n, 1 + H), first observations of equal weight.
        rng: None to visit all prefixes; otherwise one continuation of each first observation is sampled.
    """
    n, horizon = len(tokens), tokens.shape[1] - 1
    weight, cluster, last, kl = np.full(n, 1 / n), np.zeros(n, np.int64), tokens[:, 0].astype(np.int64) - 1, np.zeros(n)
    ended: list[tuple[np.ndarray, ...]] = []
    for step in range(1, horizon + 1):
        parts = [probs(tokens[i : i + HELD]) for i in range(0, len(tokens), HELD)]
        rows = np.concatenate([np.zeros((0, len(ring.place))), *parts])
        kl = kl + row_kl(rows, reference[last])
        if rng is None:
            row, token = np.nonzero(rows > 0)
            weight = weight[row] * rows[row, token]
        else:
            row, token = np.arange(len(rows)), inverse_cdf(rows, rng.random(len(rows)))
        wrong, cluster, kl = ring.wrong[ring.place[last[row]], token], cluster[row], kl[row]
        cluster = np.where(wrong, cluster, np.maximum(cluster + ring.move[token], 0))
        reached = ~wrong & (cluster == ring.clusters - 1)
        over = wrong | reached | (step == horizon)
        time = np.where(reached, step, horizon + 1)
        ended.append((weight[over], time[over], cluster[over], wrong[over], kl[over]))
        weight, cluster, kl, last = weight[~over], cluster[~over], kl[~over], token[~over]
        tokens = tokens[row[~over]]
        tokens[:, step] = last + 1
    weight, time, cluster, wrong, kl = (np.concatenate(column) for column in zip(*ended, strict=True))
    return Endings(weight, time, cluster, wrong, kl, rng is not None)
