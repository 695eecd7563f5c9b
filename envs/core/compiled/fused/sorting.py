"""Functions that sort a few elements, written out without branches: what is drawn at random cannot be foretold."""

from collections.abc import Iterator

#: More elements than these are sorted by insertion: networks of more would take seconds to compile.
NETWORK = 40


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


def sorting(width: int) -> str:
    """Write the function that sorts elements start..start + width - 1 of an array of integers."""
    if width > NETWORK:
        return _INSERTION.format(width=width)
    held = [f"x{j}" for j in range(width)]
    lines = [f"{name} = a[start + {j}]" for j, name in enumerate(held)]
    for number, (i, j) in enumerate(network(width)):  # each number has a name of its own, which compiles faster
        small, large = f"s{number}", f"l{number}"
        lines.append(f"{small}, {large} = min({held[i]}, {held[j]}), max({held[i]}, {held[j]})")
        held[i], held[j] = small, large
    lines += [f"a[start + {j}] = {name}" for j, name in enumerate(held)]
    return f"@njit\ndef sort_{width}(a, start):\n" + "".join(f"    {line}\n" for line in lines)


_INSERTION = """@njit
def sort_{width}(a, start):
    for i in range(start + 1, start + {width}):
        x, j = a[i], i - 1
        while j >= start and a[j] > x:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = x
"""
