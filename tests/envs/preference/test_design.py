"""Preferential G-optimal designs: against direct optimisation, their certificate, and the information they bring."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from theorybench.envs.core.policy import LinearPolicy
from theorybench.envs.preference.bandit.oracle import PreferenceBanditOracle
from theorybench.envs.preference.bandit.setting import PreferenceBandit
from theorybench.envs.preference.design import optimal_design, preferential_design, spanned


def worth(vectors, design):
    information = (vectors * design[:, None]).T @ vectors
    return np.einsum("ni,ij,nj->n", vectors, np.linalg.inv(information), vectors)


def random_vectors(seed, designs, count, size):
    return np.random.default_rng(seed).standard_normal((designs, count, size))


@pytest.mark.parametrize("seed", range(3))
def test_the_design_is_what_a_stock_optimiser_finds(seed):
    """Maximise ln det A over softmax weights by BFGS: the same determinant, and worst g = d."""
    (vectors,) = random_vectors(seed, 1, 9, 3)

    def loss(logits):
        weights = np.exp(logits - logits.max())
        weights /= weights.sum()
        slope = weights * (worth(vectors, weights) - 3)
        return -np.linalg.slogdet((vectors * weights[:, None]).T @ vectors)[1], -slope

    stock = minimize(loss, np.zeros(9), jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 2000})
    (design,), (gap,) = optimal_design(vectors[None], gap=1e-9)
    assert -loss(np.log(np.maximum(design, 1e-300)))[0] == pytest.approx(-stock.fun, abs=1e-6)
    assert worth(vectors, design).max() == pytest.approx(3, abs=1e-8)
    assert gap < 1e-9


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 5), more=st.integers(1, 12))
def test_the_certificate_holds(seed, size, more):
    """The gap is the worst g less d, it is never negative, and no random design has a larger determinant by more."""
    vectors = random_vectors(seed, 2, size + more, size)
    designs, gaps = optimal_design(vectors, gap=1e-3)
    rng = np.random.default_rng(seed)
    for rows, design, gap in zip(vectors, designs, gaps, strict=True):
        assert design.sum() == pytest.approx(1)
        assert (design >= 0).all()
        assert worth(rows, design).max() - size == pytest.approx(gap, abs=1e-8)
        assert -1e-9 < gap < 1e-3
        ours = np.linalg.slogdet((rows * design[:, None]).T @ rows)[1]
        for other in rng.dirichlet(np.ones(len(rows)), 5):
            assert np.linalg.slogdet((rows * other[:, None]).T @ rows)[1] <= ours + gap + 1e-9


def test_designs_found_together_are_those_found_alone():
    vectors = random_vectors(0, 4, 20, 3) * np.array([1.0, 5.0, 0.2, 1.0])[:, None, None]
    together, gaps = optimal_design(vectors)
    for rows, design, gap in zip(vectors, together, gaps, strict=True):
        (alone,), (own,) = optimal_design(rows[None])
        np.testing.assert_array_equal(alone, design)
        assert own == gap


def test_few_steps_leave_an_honest_gap():
    vectors = random_vectors(1, 1, 30, 4)
    designs, gaps = optimal_design(vectors, steps=3)
    assert gaps[0] > 0.01
    assert worth(vectors[0], designs[0]).max() - 4 == pytest.approx(gaps[0])


def test_a_simplex_is_designed_uniformly():
    """Relative to the uniform policy, one feature a response is a regular simplex: all responses count equally."""
    (design,), _ = preferential_design(np.eye(5)[None], np.full((1, 1, 5), 0.2))
    np.testing.assert_allclose(design, 0.2, atol=1e-12)


def test_features_that_never_differ_are_left_out():
    features = np.random.default_rng(0).standard_normal((2, 6, 3))
    padded = np.concatenate([features, np.ones((2, 6, 1)), features[..., :1] + features[..., 1:2]], axis=2)
    assert spanned(padded).shape == (2, 6, 3)
    probs = np.random.default_rng(1).dirichlet(np.ones(6), (1, 2))
    np.testing.assert_allclose(
        preferential_design(padded, probs)[0], preferential_design(features, probs)[0], atol=1e-9
    )


def test_contexts_with_equal_features_share_one_design():
    """What is merged on the hypercube is what all candidates give one by one."""
    setting = PreferenceBandit(dimension=3, theta_init=1.5)
    features, probs = setting.tables.features, setting.linear_probs(np.full(3, 1.5))
    (design,), (gap,) = preferential_design(features, probs[None])
    vectors = (features - probs[:, None] @ features).reshape(1, -1, 3)
    (single,), (own,) = optimal_design(vectors)
    np.testing.assert_allclose(design.ravel(), single, atol=1e-12)
    assert gap == pytest.approx(own, abs=1e-12)


@pytest.mark.parametrize("theta_init", [0.3, 1.0, 3.0, 6.0])
def test_a_gap_of_a_millionth_takes_at_most_some_hundred_updates(theta_init):
    setting = PreferenceBandit(theta_init=theta_init)
    policy = setting.linear_probs(np.full(6, theta_init))[None]
    _, gaps = preferential_design(setting.tables.features, policy, gap=1e-6, steps=700)
    assert gaps[0] < 1e-6


@pytest.mark.parametrize("geometry", ["hypercube", "gaussian"])
def test_the_hybrid_floor_is_the_information_of_every_pair_summed(geometry):
    setting = PreferenceBandit(
        geometry=geometry, dimension=3, num_responses=6, num_contexts=3, theta_init=1.0, beta=0.7
    )
    oracle = PreferenceBanditOracle(setting)
    theta = np.array([0.5, -1.0, 2.0])
    policy = LinearPolicy(setting, theta)
    features, probs = setting.tables.features, setting.linear_probs(theta)
    (design,), _ = preferential_design(features, probs[None])
    information = np.zeros((3, 3))
    for x in range(setting.num_contexts):
        for y in range(setting.num_actions):
            for z in range(setting.num_actions):
                difference = features[x, y] - features[x, z]
                win = 1 / (1 + np.exp(-setting.beta * difference @ setting.tables.theta))
                weight = probs[x, y] / probs[x].sum() * design[x, z]  # the context is the design's
                information += weight * setting.beta**2 * win * (1 - win) * np.outer(difference, difference)
    expected = np.trace(oracle.optimal_covariance @ np.linalg.inv(information)) / 50
    assert oracle.hybrid_floor(50, policy) == pytest.approx(expected, rel=1e-9)
