"""Tables and linear classes: where they start, what they look up, and their gradients by finite differences."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from theorybench.agents import View, rollout
from theorybench.agents.policies.catalogue import PolicyOptions
from theorybench.agents.policies.softmax import LinearSoftmax, TabularSoftmax
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.policy import LegalTablePolicy, LinearPolicy, SettingPolicy, TablePolicy
from theorybench.envs.core.registry import lookup

BANDIT = "TheoryBench/PreferenceBandit-v0"
CASES = [
    ("Toy/Copy-v0", {}, "prefix"),
    ("Toy/Copy-v0", {"size": 3}, "markov"),
    ("Toy/TwoArms-v0", {}, "position"),
    ("Toy/Duel-v0", {}, "prompt"),
    (BANDIT, {"dimension": 3}, "prompt"),
    (BANDIT, {"dimension": 3}, "linear"),
    (BANDIT, {"geometry": "gaussian", "num_responses": 9, "theta_init": 1.0}, "linear"),
]


@pytest.mark.parametrize(("env_id", "parameters", "name"), CASES)
@pytest.mark.parametrize("start", ["initial", "reference"])
def test_training_begins_at_the_named_policy(env_id, parameters, name, start):
    envs = gym.make_vec(env_id, num_envs=64, **parameters)
    envs.reset(seed=0)
    setting = envs.unwrapped.setting
    softmax, wanted = PolicyOptions(policy=name, start=start).build(setting), SettingPolicy(setting, start)
    ours = softmax.snapshot(softmax.start(0))
    episodes = rollout(envs, envs.unwrapped.reference_policy, episodes=300, rng=np.random.default_rng(0))
    seen = episodes.observations[np.arange(setting.horizon) < episodes.lengths[:, None]]
    np.testing.assert_allclose(ours.probs(seen), wanted.probs(seen), atol=1e-12)


@pytest.mark.parametrize(("env_id", "parameters", "name"), CASES)
def test_rows_are_the_logits_of_the_snapshot_and_have_its_gradient(env_id, parameters, name):
    setting = lookup(env_id).make_setting(parameters)
    softmax = PolicyOptions(policy=name).build(setting)
    rng = np.random.default_rng(1)
    parameter = rng.normal(size=softmax.start(0).shape)
    view = View.of(setting)
    observations = view.observations(setting.observation_dtype)[rng.integers(view.rows, size=20)]
    encoded = torch.as_tensor(softmax.encode(observations))
    reference = setting.reference_probs(observations)
    actions = (reference * rng.random((20, 1))).argmax(axis=1)
    restricted = isinstance(softmax.snapshot(parameter), LegalTablePolicy)
    legal = torch.as_tensor((reference > 0) | (not restricted))

    def likelihood(values):
        logits = torch.where(legal, softmax.logits(values, encoded), -torch.inf)
        logs = torch.log_softmax(logits, dim=-1)
        return logs[torch.arange(20), torch.as_tensor(actions)].sum()

    variable = torch.tensor(parameter, requires_grad=True)
    value = likelihood(variable)
    probs = softmax.snapshot(parameter).probs(observations)
    assert float(value.detach()) == pytest.approx(np.log(probs[np.arange(20), actions]).sum(), rel=1e-12)
    value.backward()
    for _ in range(10):
        direction = rng.normal(size=parameter.shape)
        step = 1e-6
        ahead, behind = (float(likelihood(torch.tensor(parameter + s * step * direction))) for s in (1, -1))
        slope = float((variable.grad.numpy() * direction).sum())
        assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-6, abs=1e-6)


def test_value_functions_start_at_zero_and_read_what_the_policy_reads():
    setting = lookup("Toy/Copy-v0").make_setting({})
    observations = View.of(setting).observations(setting.observation_dtype)
    for name in ("prefix", "markov"):
        softmax = PolicyOptions(policy=name).build(setting)
        encoded, start = torch.as_tensor(softmax.encode(observations)), softmax.value_start(0)
        assert not softmax.values(torch.as_tensor(start), encoded).any()
        values = softmax.values(torch.as_tensor(np.random.default_rng(0).normal(size=start.shape)), encoded)
        assert values.shape == (len(observations),)
        assert len(np.unique(values)) > 10


def test_auto_is_linear_where_there_are_features_and_the_view_of_the_setting_elsewhere():
    linear = PolicyOptions(policy="auto").build(lookup(BANDIT).make_setting({}))
    assert isinstance(linear, LinearSoftmax)
    assert isinstance(linear.snapshot(np.zeros(6)), LinearPolicy)
    table = PolicyOptions(policy="auto").build(lookup("Toy/Copy-v0").make_setting({}))
    assert isinstance(table, TabularSoftmax)
    assert table.view.name == "prefix"
    assert isinstance(table.snapshot(np.zeros((table.view.rows, 3))), LegalTablePolicy)
    free = PolicyOptions(policy="auto").build(lookup("Toy/TwoArms-v0").make_setting({}))
    assert isinstance(free.snapshot(np.zeros((free.view.rows, 2))), TablePolicy)


def test_linear_needs_features_and_a_linear_start():
    with pytest.raises(ParameterError, match="no features"):
        PolicyOptions(policy="linear").build(lookup("Toy/Duel-v0").make_setting({}))
    setting = lookup(BANDIT).make_setting({"dimension": 2})
    softmax = PolicyOptions(policy="linear").build(setting)
    skewed = TablePolicy(softmax.view, np.tile([0.7, 0.1, 0.1, 0.1], (8, 1)))
    with pytest.raises(ParameterError, match="not linear in the features"):
        softmax.fit(skewed)


def test_zero_probabilities_have_a_finite_logarithm():
    setting = lookup("Toy/Copy-v0").make_setting({})
    softmax = PolicyOptions(policy="prefix").build(setting)
    start = softmax.start(0)
    assert np.isfinite(start).all()
    assert start.min() < -600
    assert softmax.snapshot(start).table.min() < 1e-280
