"""Exact least squares in a box: optimality conditions, no information, many runs at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from theorybench.agents.training.least_squares import fit_least_squares
from theorybench.envs.core.errors import ParameterError


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 30),
    d=st.integers(1, 5),
    ridge=st.sampled_from([1e-3, 1.0]),
    box=st.sampled_from([0.5, 20.0]),
)
def test_the_fit_is_that_of_a_stock_solver(seed, n, d, ridge, box):
    rng = np.random.default_rng(seed)
    rows, targets = rng.standard_normal((3, n, d)), 2 * rng.standard_normal((3, n))
    weights, start = rng.uniform(0, 3, (3, n)), rng.uniform(-0.5, 0.5, (3, d))
    found = fit_least_squares(rows, targets, start, weights=weights, ridge=ridge, box=box)
    for own, x, t, w, s in zip(found, rows, targets, weights, start, strict=True):
        wide = np.vstack([x * np.sqrt(w)[:, None], np.sqrt(ridge / 2) * np.eye(d)])
        aims = np.concatenate([t * np.sqrt(w), np.sqrt(ridge / 2) * s])
        stock = lsq_linear(wide, aims, (-box, box), tol=1e-13, method="bvls").x
        np.testing.assert_allclose(own, stock, atol=1e-6)


def test_a_direction_without_information_stays():
    rows = np.zeros((2, 5, 3))
    rows[:, :, 0] = 1.0
    start = np.array([[1.0, 2.0, 3.0], [0.0, -4.0, 19.0]])
    found = fit_least_squares(rows, np.full((2, 5), 7.0), start)
    np.testing.assert_allclose(found[:, 0], 7.0, atol=1e-5)
    np.testing.assert_array_equal(found[:, 1:], start[:, 1:])


def test_runs_together_equal_runs_alone_and_shared_rows_those_of_each():
    rng = np.random.default_rng(0)
    rows, targets, start = rng.standard_normal((12, 4)), rng.standard_normal((5, 12)), rng.standard_normal((5, 4))
    together = fit_least_squares(rows, targets, start)
    np.testing.assert_allclose(together, fit_least_squares(np.tile(rows, (5, 1, 1)), targets, start), atol=1e-12)
    for r in range(5):
        alone = fit_least_squares(rows, targets[r : r + 1], start[r : r + 1])
        np.testing.assert_allclose(alone[0], together[r], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("ridge", {"ridge": 0.0}),
        ("box", {"box": -1.0}),
        ("targets", {"targets": np.array([[np.inf]])}),
        ("start", {"start": np.array([[21.0]])}),
    ],
)
def test_bad_input_is_named(field, arguments):
    good = {"rows": np.ones((1, 1)), "targets": np.ones((1, 1)), "start": np.zeros((1, 1))}
    with pytest.raises(ParameterError) as caught:
        fit_least_squares(**good | arguments)
    assert caught.value.field == field
