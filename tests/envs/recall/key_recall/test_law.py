"""Closed forms of parts of keys and of contexts: known numbers, all contexts tried, and a head written otherwise."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from theorybench.envs.recall.key_recall.law import (
    head_attention,
    lag_weights,
    memory_bits,
    smallest_gap,
    suffix_value,
)


def test_values_of_parts_of_keys_are_those_of_independent_code():
    default = {"key_length": 2, "symbols": 6, "values": 4, "pairs": 16}
    longer = {"key_length": 3, "symbols": 4, "values": 4, "pairs": 24}
    found = [suffix_value(1, **default), suffix_value(1, **longer), suffix_value(2, **longer)]
    assert found == pytest.approx([0.525653, 0.374984, 0.678082], abs=5e-7)
    assert suffix_value(2, **default) == suffix_value(3, **longer) == 1
    assert [memory_bits(**default), memory_bits(**longer)] == pytest.approx([64.7668, 105.7984], abs=5e-5)


@pytest.mark.parametrize(("k", "symbols", "pairs"), [(1, 4, 3), (2, 2, 3), (3, 2, 4)])
def test_values_are_means_over_all_sets_of_keys(k, symbols, pairs):
    keys = list(itertools.product(range(symbols), repeat=k))
    for matched in range(k + 1):
        alike = [
            1 / sum(other[k - matched :] == chosen[asked][k - matched :] for other in chosen)
            for chosen in itertools.combinations(keys, pairs)
            for asked in range(pairs)
        ]
        expected = 1 / 3 + 2 / 3 * np.mean(alike)
        found = suffix_value(matched, key_length=k, symbols=symbols, values=3, pairs=pairs)
        assert found == pytest.approx(expected, rel=1e-12)


def one_hot_context(symbols, order, alphabet=3):
    """Return the context of the answer to some symbols, the last one being the nearest."""
    return sum(w * np.eye(alphabet)[symbols[-lag]] for lag, w in enumerate(lag_weights(order), 1))


@pytest.mark.parametrize(
    ("order", "expected"), [(1, 1), (2, 0.0513167), (3, 0.00345424), (4, 0.000328569), (5, 3.47204e-05)]
)
def test_gaps_are_the_smallest_of_all_contexts(order, expected):
    assert smallest_gap(order) == pytest.approx(expected, rel=2e-6)
    for alphabet in (2, 3) if order < 5 else (2,):
        contexts = itertools.product(range(alphabet), repeat=order)
        unit = np.array([one_hot_context(symbols, order) for symbols in contexts])
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        apart = ((unit[:, None] - unit) ** 2).sum(axis=2) / 2
        assert apart[~np.eye(len(unit), dtype=bool)].min() == pytest.approx(smallest_gap(order), rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(0, 12), st.floats(0.1, 20.0), st.integers(0, 10**6))
def test_attention_is_a_softmax_of_cosines_of_contexts(order, length, sharpness, seed):
    symbols = np.random.default_rng(seed).integers(3, size=length).tolist()
    prompt = np.array([[0] * (12 - length) + [symbol + 1 for symbol in symbols]])
    (found,) = head_attention(prompt, order, sharpness)
    if length <= order:
        assert (found == 0).all()
        return
    asked, scores = one_hot_context(symbols, order), []
    for place in range(order, length):
        own = one_hot_context(symbols[:place], order)
        cosine = own @ asked / np.linalg.norm(own) / np.linalg.norm(asked)
        scores.append(sharpness / smallest_gap(order) * cosine)
    expected = np.zeros(12)
    expected[12 - len(scores) :] = special.softmax(scores)
    np.testing.assert_allclose(found, expected, atol=1e-7)
