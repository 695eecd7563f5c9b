"""Functions that sort a few elements, written out without branches: what is drawn at random cannot be foretold."""

from collections.abc import Iterator

import numpy as np

#: More elements than these are sorted by their ranks, which are counted many at once; still more by insertion.
NETWORK, RANKED = 16, 64


def network(width: int) -> Iterator[tuple[int, int]]:
    """Yield the comparisons of Batcher's odd-even merge sort: each puts the smaller of two elements first."""
    part = 1
    while part < width:
        step = part
        while step:
            for start in range(step % part, width - step, 2 * step):
                for first in range(start, start + min(step, width - start - step)):
                    if first // (2 * part) == (first + step) // (2 * part):
                        yield first, first + step
            step //= 2
        part *= 2


def spare(width: int, dtype: np.dtype) -> dict[str, str]:
    """Return the arrays that sorting so many elements needs, by name: how each is made."""
    if not NETWORK < width <= RANKED:
        return {}
    made = {f"spare{width}_{dtype.name}": f"np.empty({width}, np.{dtype.name})"}
    return made | {f"ranks{width}": f"np.empty({width}, np.int64)"}


def sorting(width: int) -> str:
    """Write the function that sorts elements start..start + width - 1 of an array of integers."""
    if width > RANKED:
        return _INSERTION.format(width=width)
    if width > NETWORK:
        return _RANKS.format(width=width)
    lines = [f"x{j} = a[start + {j}]" for j in range(width)]
    for i, j in network(width):
        lines.append(f"x{i}, x{j} = min(x{i}, x{j}), max(x{i}, x{j})")
    lines += [f"a[start + {j}] = x{j}" for j in range(width)]
    return f"@njit\ndef sort_{width}(a, start):\n" + "".join(f"    {line}\n" for line in lines)


_RANKS = """@njit
def sort_{width}(a, start, x, ranks):
    for i in range({width}):
        x[i], ranks[i] = a[start + i], 0
    for i in range({width}):
        y = x[i]
        for j in range({width}):
            ranks[j] += (x[j] > y) | ((x[j] == y) & (j > i))
    for j in range({width}):
        a[start + ranks[j]] = x[j]
"""
_INSERTION = """@njit
def sort_{width}(a, start):
    for i in range(start + 1, start + {width}):
        x, j = a[i], i - 1
        while j >= start and a[j] > x:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = x
"""
