"""Operators of inference time: values by enumeration, first variations by finite differences, the constant L."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theorybench.envs.preference.inference_alignment.operators import (
    Aligned,
    BestOfN,
    Inference,
    combine,
)

OPERATORS, AGGREGATES = ("best-of-n", "soft-best-of-n"), ("sum", "soft-min", "min")


def make(criteria, **options):
    weights = options.pop("weights", np.full(len(criteria), 1 / len(criteria)))
    plain = {"operator": "best-of-n", "samples": 3, "temperature": 0.3, "aggregate": "sum", "softness": 0.2}
    return Aligned(np.asarray(criteria, float), Inference(weights=np.asarray(weights), **{**plain, **options}))


@st.composite
def cases(draw, most=4, points=4):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size, rows = draw(st.integers(2, points)), draw(st.integers(1, 3))
    criteria = rng.random((rows, size))
    if draw(st.booleans()):
        criteria = np.round(2 * criteria) / 2  # ties
    probs = rng.dirichlet(np.full(size, 0.7)) * (rng.random(size) < 0.8)
    probs = probs / probs.sum() if probs.sum() > 0 else np.full(size, 1 / size)
    return criteria, probs, draw(st.integers(1, most)), rng


@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_best_of_n_is_the_mean_over_all_outcomes(case):
    criteria, probs, samples, _ = case
    expected = [
        sum(np.prod(probs[list(drawn)]) * values[list(drawn)].max() for drawn in outcomes)
        for values in criteria
        for outcomes in [itertools.product(range(len(probs)), repeat=samples)]
    ]
    np.testing.assert_allclose(make(criteria, samples=samples).values(probs), expected, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(case=cases(points=6), temperature=st.floats(0.05, 5))
def test_the_tilt_is_the_mean_under_the_tilted_law(case, temperature):
    criteria, probs, _, _ = case
    found = make(criteria, operator="soft-best-of-n", temperature=temperature).values(probs)
    for values, value in zip(criteria, found, strict=True):
        weights = [p * math.exp((v - values.max()) / temperature) for p, v in zip(probs, values, strict=True)]
        mean = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
        assert value == pytest.approx(mean, abs=1e-12)


def interior(case):
    criteria, probs, samples, rng = case
    return criteria, 0.5 * probs + 0.5 / len(probs), samples, rng


@settings(max_examples=80, deadline=None)
@given(case=cases(most=6, points=7), operator=st.sampled_from(OPERATORS), aggregate=st.sampled_from(AGGREGATES))
def test_first_variations_are_finite_differences(case, operator, aggregate):
    criteria, probs, samples, rng = interior(case)
    weights = rng.dirichlet(np.ones(len(criteria)))
    aligned = make(criteria, operator=operator, samples=samples, aggregate=aggregate, weights=weights)
    values = np.sort(aligned.values(probs))
    if aggregate == "min" and len(values) > 1 and values[1] - values[0] < 1e-3:
        return  # a kink
    direction = rng.normal(size=len(probs))
    direction -= direction.mean()
    step = 1e-5 / np.abs(direction).max()
    ahead, behind = (float(aligned.value(probs + sign * step * direction)) for sign in (1, -1))
    slope = float(aligned.variation(probs) @ direction)
    assert (ahead - behind) / (2 * step) == pytest.approx(slope, rel=1e-6, abs=1e-7)


@settings(max_examples=40, deadline=None)
@given(case=cases(most=6, points=6))
def test_curvatures_are_differences_of_first_variations_and_never_rise(case):
    criteria, probs, samples, rng = interior(case)
    aligned, shares = make(criteria, samples=samples), rng.dirichlet(np.ones(len(criteria)))
    bend = aligned.curvature(probs, shares)
    direction = rng.normal(size=len(probs))
    direction -= direction.mean()
    change = shares @ (aligned.slopes(probs + 1e-6 * direction) - aligned.slopes(probs - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(change, bend @ direction, atol=1e-5 * (1 + np.abs(bend).max()))
    assert np.linalg.eigvalsh(bend).max() < 1e-10


@settings(max_examples=80, deadline=None)
@given(case=cases(most=12, points=6))
def test_the_bend_is_at_most_l_relative_to_kl(case):
    criteria, probs, samples, rng = interior(case)
    weights = rng.dirichlet(np.ones(len(criteria)))
    aligned = make(criteria, samples=samples, weights=weights)
    root = np.sqrt(probs)
    bend = -root[:, None] * aligned.curvature(probs, weights) * root  # d = sqrt(pi) e: sum d^2 / pi = |e|^2
    across = np.eye(len(probs)) - np.outer(root, root)  # sum d = 0
    assert np.linalg.eigvalsh(across @ bend @ across).max() <= aligned.smoothness + 1e-10


def test_l_is_reached_by_a_criterion_that_is_passed_or_failed():
    for samples in (2, 4, 9):
        aligned = make([[0.0, 1.0]], samples=samples)
        best = 1 - 1 / samples
        probs = np.array([best, 1 - best])
        bend = -aligned.curvature(probs, np.ones(1))[0, 0] * probs[0] * probs[1]
        assert bend == pytest.approx(aligned.smoothness, rel=1e-12)
        assert aligned.smoothness == pytest.approx((samples - 1) * best ** (samples - 1))


def test_batches_are_single_policies():
    rng = np.random.default_rng(0)
    criteria, probs = rng.random((2, 5)), rng.dirichlet(np.ones(5), size=(3, 4))
    for operator, aggregate in itertools.product(OPERATORS, AGGREGATES):
        aligned = make(criteria, operator=operator, aggregate=aggregate)
        for function in (aligned.values, aligned.value, aligned.slopes, aligned.variation):
            whole = function(probs)
            np.testing.assert_allclose(whole[2, 3], function(probs[2, 3]), atol=1e-14)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), softness=st.floats(0.01, 10))
def test_the_soft_min_lies_between_minimum_and_mean(seed, softness):
    rng = np.random.default_rng(seed)
    values, weights = rng.random(4), rng.dirichlet(np.ones(4))
    how = make(np.zeros((4, 2)), aggregate="soft-min", softness=softness, weights=weights).inference
    found = float(combine(values, how))
    assert found == pytest.approx(-softness * math.log(np.sum(weights * np.exp(-values / softness))), rel=1e-9)
    assert values.min() - 1e-12 <= found <= values @ weights + 1e-12


def test_levels_take_ties_together():
    operator = BestOfN(np.array([0.5, 1.0, 0.5, 0.0]), samples=2)
    np.testing.assert_array_equal(operator.below, [[0, 0, 0, 1], [1, 0, 1, 1]])
    np.testing.assert_array_equal(operator.steps, [0.5, 0.5])
    assert operator.value(np.array([0.2, 0.3, 0.1, 0.4])) == pytest.approx(1 - 0.5 * (0.4**2 + 0.7**2))
