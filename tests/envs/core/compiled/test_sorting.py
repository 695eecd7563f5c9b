"""Rows of integers are sorted, whatever they are, by the Python function and by what numba makes of it."""

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from theorybench.envs.core.compiled.fused.sorting import NETWORK, network, sort_rows  # noqa: E402  # it imports numba
from theorybench.envs.core.compiled.fused.statements import ROWS  # noqa: E402


def rows(width, count, dtype, seed=0):
    """Draw rows, and room for as many as may be sorted at a time."""
    high = min(100, np.iinfo(dtype).max)
    return np.random.default_rng(seed).integers(-high, high, size=(count + ROWS) * width).astype(dtype)


@pytest.mark.parametrize("width", [1, 2, 3, 6, 8, 11, 16, 36, NETWORK, NETWORK + 1])
def test_comparisons_of_a_network_sort(width):
    for high in (2, 100):
        held = np.random.default_rng(width).integers(-high, high, size=width).tolist()
        expected = sorted(held)
        for i, j in network(width):
            held[i], held[j] = min(held[i], held[j]), max(held[i], held[j])
        assert held == expected


@pytest.mark.parametrize("width, dtype", [(1, np.int64), (5, np.int32), (16, np.int8), (9, np.int64), (41, np.int64)])
def test_rows_are_sorted_and_those_far_behind_left_alone(width, dtype):
    assert (width > NETWORK) == (width == 41)
    compiled = numba.njit(lambda array, count: sort_rows(array, width, count))
    for count in (0, 1, 7, 16, 19):
        array = rows(width, count, dtype, count)
        whole = array.reshape(-1, width)
        expected, last = np.sort(whole[:count], axis=1), whole[-1].copy()
        written = array.copy()
        sort_rows(written, width, count)
        assert np.array_equal(written[: count * width].reshape(-1, width), expected)
        compiled(array, count)
        assert np.array_equal(whole[:count], expected) and np.array_equal(whole[-1], last)


def test_networks_are_as_short_as_batchers():
    assert [len(list(network(width))) for width in (1, 2, 4, 8, 16)] == [0, 1, 5, 19, 63]
