"""Functions that sort a few elements sort them, whatever they are."""

import numpy as np
import pytest

from theorybench.envs.core.compiled.fused.sorting import NETWORK, RANKED, network, sorting, spare


@pytest.mark.parametrize("width", [1, 2, 3, 6, 8, 11, NETWORK, NETWORK + 1, 36, RANKED, RANKED + 1])
def test_elements_are_sorted_and_others_left_alone(width):
    names = {"np": np, "njit": lambda function: function}
    exec(sorting(width), names)
    rng = np.random.default_rng(width)
    for dtype in (np.int64, np.int8):
        extra = [eval(how, names) for how in spare(width, np.dtype(dtype)).values()]
        for high in (2, 100):
            array = rng.integers(-high, high, size=width + 3).astype(dtype)
            expected = np.concatenate([array[:2], np.sort(array[2:-1]), array[-1:]])
            names[f"sort_{width}"](array, 2, *extra)
            assert array.tolist() == expected.tolist()


def test_networks_are_as_short_as_batchers():
    assert [len(list(network(width))) for width in (1, 2, 4, 8, 16)] == [0, 1, 5, 19, 63]
