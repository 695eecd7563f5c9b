"""GoodBadLabels: laws and labels as stated; metrics against sums by hand."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.streams import Stream, environment_keys
from theorybench.envs.preference.good_bad_labels.oracle import GoodBadLabelsOracle
from theorybench.envs.preference.good_bad_labels.setting import GoodBadLabels


@st.composite
def label_settings(draw, **fixed):
    cyclic = draw(st.booleans())
    parameters = {
        "num_responses": draw(st.integers(3 if cyclic else 2, 24)),
        "num_contexts": draw(st.integers(1, 5)),
        "labels": "cyclic" if cyclic else "mixture",
        "good_share": 0.5 if cyclic else draw(st.floats(0.02, 0.98)),
        "concentration": draw(st.floats(0.2, 5)),
        "contamination": draw(st.sampled_from([0.0, 0.2, 0.5])),
        "instance": draw(st.integers(0, 2**31 - 1)),
    }
    try:
        return GoodBadLabels(**parameters | fixed)
    except ParameterError as error:
        assert error.field == "concentration"  # the reference is nearly the target
        assume(False)


@settings(max_examples=60, deadline=None)
@given(setting=label_settings())
def test_laws_are_distributions_and_the_initial_policy_is_their_mixture(setting):
    tables, oracle = setting.tables, GoodBadLabelsOracle(setting)
    share = setting.good_share
    for law in (tables.good, tables.bad, tables.mixture, setting.reference):
        assert (law > 0).all()
        np.testing.assert_allclose(law.sum(axis=1), 1, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(tables.mixture, share * tables.good + (1 - share) * tables.bad)
    np.testing.assert_allclose(tables.chance * tables.mixture, share * tables.good, rtol=1e-14)
    np.testing.assert_array_equal(oracle.table(oracle.initial_policy), tables.mixture)
    uniform = np.full_like(tables.good, 1 / setting.num_responses)
    wanted = (1 - setting.contamination) * tables.mixture + setting.contamination * uniform
    np.testing.assert_allclose(oracle.table(oracle.reference_policy), wanted, rtol=1e-13)
    assert oracle.evaluate(oracle.initial_policy)["good"] == pytest.approx(share, abs=1e-12)
    assert oracle.optimal_value == 0.0


@settings(max_examples=40, deadline=None)
@given(setting=label_settings(), seed=st.integers(0, 10**6))
def test_metrics_equal_sums_by_hand(setting, seed):
    oracle, tables = GoodBadLabelsOracle(setting), setting.tables
    table = np.random.default_rng(seed).dirichlet(np.ones(setting.num_responses), setting.num_contexts)
    distance = kl = forward = good = 0.0
    for x in range(setting.num_contexts):
        for y in range(setting.num_responses):
            p, target = table[x, y], tables.good[x, y]
            distance += abs(p - target) / 2
            kl += p * math.log(p / setting.reference[x, y]) if p > 0 else 0.0
            forward += target * math.log(target / p) if p > 0 else math.inf
            good += p * tables.chance[x, y]
    found = oracle.evaluate(oracle.policy(table))
    count = setting.num_contexts
    assert found["objective"] == pytest.approx(-distance / count, abs=1e-12)
    assert found["kl"] == pytest.approx(kl / count, abs=1e-10)
    assert found["kl_from_target"] == pytest.approx(min(50.0, forward / count), abs=1e-9)
    assert found["good"] == pytest.approx(good / count, abs=1e-12)


def test_the_divergence_from_the_target_is_cut_at_fifty():
    oracle = GoodBadLabelsOracle(GoodBadLabels())
    table = np.zeros((4, 20))
    table[:, 0] = 1
    assert oracle.evaluate(oracle.policy(table))["kl_from_target"] == 50.0
    assert oracle.evaluate(oracle.optimal_policy)["kl_from_target"] == 0.0


@settings(max_examples=30, deadline=None)
@given(responses=st.integers(3, 15), instance=st.integers(0, 10**6), concentration=st.floats(0.3, 2))
def test_cyclic_labels_are_wins_over_a_hidden_response_in_a_circle(responses, instance, concentration):
    """Somewhere there is an order of the circle; wins in it, counted over all pairs, are the chances of the label."""
    setting = GoodBadLabels(
        num_responses=responses, num_contexts=1, labels="cyclic", instance=instance, concentration=concentration
    )
    start, chance = setting.tables.mixture[0], setting.tables.chance[0]
    rng = np.random.default_rng([2505_07558, instance])
    rng.standard_gamma(concentration, (1, responses)), rng.standard_gamma(concentration, (1, responses))
    place = rng.permuted(np.arange(responses)[None], axis=1)[0]
    for y in range(responses):
        wins = 0.0
        for other in range(responses):
            ahead = (place[other] - place[y]) % responses
            beats = 0.5 if ahead == 0 or 2 * ahead == responses else 0.95 if 2 * ahead < responses else 0.05
            wins += start[other] * beats
        assert chance[y] == pytest.approx(wins, abs=1e-9)
    np.testing.assert_allclose(setting.tables.good[0], 2 * start * chance, atol=1e-9)


@pytest.mark.parametrize("parameters", [{}, {"labels": "cyclic", "num_responses": 5}, {"good_share": 0.2}])
def test_labels_come_with_their_chance_and_fresh_noise(parameters):
    setting, n = GoodBadLabels(**parameters), 40_000
    keys, actions = environment_keys(0, n), np.arange(n) % setting.num_responses
    contexts = np.random.default_rng(0).integers(setting.num_contexts, size=n)
    first, again = (setting.judged(contexts, actions, Stream(keys, step, setting.world, np)) for step in (1, 2))
    assert set(first) == {-0.5, 0.5}
    chance = setting.tables.chance[contexts, actions]
    assert 0.1 < np.mean(first != again) == pytest.approx((2 * chance * (1 - chance)).mean(), abs=0.015)
    for low, high in ((0, 0.3), (0.3, 0.7), (0.7, 1)):
        here = (chance >= low) & (chance < high)
        if here.sum() > 1000:
            error = 4 * 0.5 / np.sqrt(here.sum())
            assert (first[here] > 0).mean() == pytest.approx(chance[here].mean(), abs=error)
