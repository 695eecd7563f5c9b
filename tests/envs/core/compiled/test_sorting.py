"""Functions that sort a few elements sort them, whatever they are."""

import numpy as np
import pytest

from theorybench.envs.core.compiled.fused.sorting import NETWORK, network, sorting


@pytest.mark.parametrize("width", [1, 2, 3, 6, 8, 11, 16, 36, NETWORK, NETWORK + 1])
def test_elements_are_sorted_and_others_left_alone(width):
    names = {"np": np, "njit": lambda function: function}
    exec(sorting(width), names)
    rng = np.random.default_rng(width)
    for dtype in (np.int64, np.int8):
        for high in (2, 100):
            array = rng.integers(-high, high, size=width + 3).astype(dtype)
            expected = np.concatenate([array[:2], np.sort(array[2:-1]), array[-1:]])
            names[f"sort_{width}"](array, 2)
            assert array.tolist() == expected.tolist()


def test_networks_compile_for_every_integer_type():
    numba = pytest.importorskip("numba")
    names = {"njit": numba.njit}
    exec(sorting(16), names)
    for dtype in (np.int8, np.int32, np.int64):
        array = np.random.default_rng(0).permutation(16).astype(dtype)
        names["sort_16"](array, 0)
        assert array.tolist() == list(range(16))


def test_networks_are_as_short_as_batchers():
    assert [len(list(network(width))) for width in (1, 2, 4, 8, 16)] == [0, 1, 5, 19, 63]
