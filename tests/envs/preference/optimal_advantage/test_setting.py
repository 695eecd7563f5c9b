"""OptimalAdvantage: the instance, closed forms against enumeration, exactness of scores, small beta."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theorybench.envs.core.errors import ParameterError
from theorybench.envs.preference.optimal_advantage.oracle import OptimalAdvantageOracle
from theorybench.envs.preference.optimal_advantage.setting import OptimalAdvantage

any_setting = st.builds(
    OptimalAdvantage,
    num_prompts=st.integers(2, 6),
    num_responses=st.integers(2, 12),
    accuracy=st.floats(0.05, 0.95),
    concentration=st.floats(0.1, 100),
    zero_share=st.floats(0, 0.6),
    beta=st.floats(0.05, 5),
    instance=st.integers(0, 2**31 - 1),
)


def drawn(setting, seed):
    return np.random.default_rng(seed).dirichlet(np.full(setting.num_responses, 0.5), setting.num_prompts)


def test_ground_truths():
    one = {"num_prompts": 3, "num_responses": 20, "accuracy": 0.1, "concentration": 1e9, "zero_share": 0.0}
    for beta, value, success in ((0.1, 0.76978, 0.99959), (0.5, 0.24701, 0.45085)):
        oracle = OptimalAdvantageOracle(OptimalAdvantage(beta=beta, **one))
        assert oracle.reference_value == pytest.approx(0.1, abs=1e-12)
        assert oracle.optimal_value == pytest.approx(value, abs=5e-6)
        assert oracle.evaluate(oracle.optimal_policy)["success"] == pytest.approx(success, abs=5e-6)


@settings(max_examples=40, deadline=None)
@given(setting=any_setting, seed=st.integers(0, 10**6))
def test_metrics_equal_enumeration(setting, seed):
    """Sums over prompts and responses, written out; J* - J = beta KL(pi || pi*); J* = E beta ln mean e^{r / beta}."""
    oracle, table, rewards = OptimalAdvantageOracle(setting), drawn(setting, seed), setting.tables.rewards
    values = oracle.evaluate(oracle.policy(table), [*oracle.metrics, "pass@3"])
    pairs = list(itertools.product(range(setting.num_prompts), range(setting.num_responses)))
    share = 1 / setting.num_prompts
    kl = sum(share * table[x, y] * np.log(table[x, y] * setting.num_responses) for x, y in pairs)
    assert values["kl"] == pytest.approx(kl, abs=1e-9)
    assert values["success"] == pytest.approx(sum(share * table[x, y] for x, y in pairs if rewards[x, y]), abs=1e-9)
    assert values["objective"] == pytest.approx(values["success"] - setting.beta * kl, abs=1e-9)
    assert values["success"] == pytest.approx(values["pass@1"], abs=1e-12)
    best = setting.beta * np.mean(np.log(np.mean(np.exp(rewards / setting.beta), axis=1)))
    assert oracle.optimal_value == pytest.approx(best, rel=1e-9)
    assert values["objective"] == pytest.approx(best - setting.beta * values["kl_to_optimal"], abs=1e-9)
    star = np.exp(rewards / setting.beta) / np.exp(rewards / setting.beta).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(oracle.table(oracle.optimal_policy), star, atol=1e-12)
    backwards = sum(share * star[x, y] * np.log(star[x, y] / table[x, y]) for x, y in pairs)
    assert values["kl_from_optimal"] == pytest.approx(backwards, abs=1e-8)
    tries = itertools.product(range(setting.num_responses), repeat=3)
    first = sum(np.prod(table[0, list(three)]) for three in tries if rewards[0, list(three)].any())
    rest = [1 - (1 - table[x] @ rewards[x]) ** 3 for x in range(1, setting.num_prompts)]
    assert values["pass@3"] == pytest.approx(share * (first + sum(rest)), abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(setting=any_setting, seed=st.integers(0, 10**6))
def test_no_policy_beats_the_optimum_or_the_ceiling(setting, seed):
    oracle, rng = OptimalAdvantageOracle(setting), np.random.default_rng(seed)
    optimum = oracle.table(oracle.optimal_policy)
    for size in 10.0 ** -rng.uniform(0, 8, 20):
        values = oracle.evaluate(oracle.policy((1 - size) * optimum + size * drawn(setting, seed)))
        assert oracle.normalise(values["objective"]) <= 1 + 1e-12
        passes = [values[f"pass@{k}"] for k in (1, 2, 4, 8, 16, 32, 64, 128)]
        assert (np.diff(passes) >= 0).all()
        assert passes[-1] <= oracle.ceiling + 1e-12
        assert values["ceiling"] == pytest.approx(oracle.ceiling)


@pytest.mark.parametrize("beta", [1e-3, 0.01, 0.1, 1.0, 10.0])
def test_scores_are_exact_at_every_beta(beta):
    for instance in range(10):
        oracle = OptimalAdvantageOracle(OptimalAdvantage(beta=beta, instance=instance))
        assert oracle.score(oracle.reference_policy) == 0.0
        assert oracle.score(oracle.optimal_policy) == 1.0
        values = oracle.evaluate(oracle.optimal_policy)
        assert all(np.isfinite(value) for value in values.values())
        assert values["objective"] == pytest.approx(oracle.values.mean(), rel=1e-12)
        assert values["kl_to_optimal"] == pytest.approx(0, abs=1e-9)
        assert oracle.optimal_value - oracle.reference_value > 0.02 * oracle.optimal_value


def test_a_policy_that_gives_prompts_up():
    setting = OptimalAdvantage()
    oracle = OptimalAdvantageOracle(setting)
    point = np.zeros((32, 32))
    point[np.arange(32), setting.tables.rewards.argmin(axis=1)] = 1  # a wrong response wherever there is one
    values = oracle.evaluate(oracle.policy(point))
    assert values["success"] == values["pass@128"] == values["ceiling"] == 0.0
    assert values["kl"] == pytest.approx(np.log(32))
    assert values["kl_from_optimal"] == np.inf
    assert np.isfinite(values["kl_to_optimal"])
    assert oracle.evaluate(oracle.reference_policy, ["pass@1000"])["pass@1000"] == pytest.approx(0.75)
    for name in ("pass@0", "pass@x", "accuracy"):
        with pytest.raises(ParameterError):
            oracle.evaluate(oracle.reference_policy, [name])


@settings(max_examples=40, deadline=None)
@given(setting=any_setting)
def test_instances(setting):
    rewards = setting.tables.rewards
    right = rewards.sum(axis=1)
    assert set(np.unique(rewards)) <= {0.0, 1.0}
    assert np.sum(right == 0) == setting.num_zeros == round(setting.zero_share * setting.num_prompts)
    assert (right < setting.num_responses).all()
    assert OptimalAdvantageOracle(setting).ceiling == pytest.approx(np.mean(right > 0))
    np.testing.assert_allclose(setting.chances * setting.num_responses, right)


def test_chances_follow_the_beta_distribution():
    setting = OptimalAdvantage(num_prompts=4096, num_responses=1024, zero_share=0.25, concentration=3.0)
    solvable = setting.chances[setting.chances > 0]
    assert len(solvable) == 3072
    assert solvable.mean() == pytest.approx(0.25, abs=4 * np.sqrt(0.25 * 0.75 / 4 / 3072))
    assert solvable.var() == pytest.approx(0.25 * 0.75 / 4, rel=0.1)
    places = setting.tables.rewards.sum(axis=0)  # right responses stand anywhere
    assert abs(np.corrcoef(np.arange(1024), places)[0, 1]) < 0.15
    same = OptimalAdvantage(num_responses=20, accuracy=0.1, concentration=1e9, zero_share=0.0)
    assert set(same.chances) == {0.1}
