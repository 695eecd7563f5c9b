"""stable-baselines3 as an outside agent: the bridge, the snapshot, the budget and the global generators."""

import gymnasium as gym
import numpy as np
import pytest

from theorybench.agents import make_agent, train
from theorybench.agents.budget import attach
from theorybench.agents.sb3 import SB3Policy, VectorBridge, train_sb3
from theorybench.envs.core.policy import Policy
from theorybench.envs.core.registry import lookup
from theorybench.envs.core.testing import global_random_state


@pytest.fixture
def bridge(make):
    return VectorBridge(make("Copy", 5), seed=3)


def test_the_bridge_is_our_vector_environment(bridge, make):
    envs = make("Copy", 5)
    observations, _ = envs.reset(seed=3)
    np.testing.assert_array_equal(bridge.reset(), observations)
    assert bridge.num_envs == 5
    assert bridge.observation_space == envs.single_observation_space
    assert bridge.action_space == envs.single_action_space
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(12):
        actions = rng.integers(3, size=5)
        theirs, rewards, dones, infos = bridge.step(actions)
        ours, paid, terminated, _, info = envs.step(actions)
        np.testing.assert_array_equal(theirs, ours)
        np.testing.assert_array_equal(rewards, paid)
        np.testing.assert_array_equal(dones, terminated)
        assert rewards.dtype == np.float32
        for i in range(5):
            assert ("terminal_observation" in infos[i]) == dones[i]
            if dones[i]:
                ended += 1
                np.testing.assert_array_equal(infos[i]["terminal_observation"], info["final_obs"][i])
                assert infos[i]["TimeLimit.truncated"] is False
    assert ended > 5


def test_the_rest_of_the_interface(bridge):
    bridge.reset()
    assert bridge.get_attr("setting", [0, 2]) == [bridge._envs.unwrapped.setting] * 2
    assert bridge.get_attr("render_mode") == [None] * 5
    assert bridge.env_is_wrapped(gym.Wrapper) == [False] * 5
    masks = bridge.env_method("action_masks", indices=[1])
    np.testing.assert_array_equal(masks, bridge.action_masks()[1:2])
    with pytest.raises(AttributeError, match="frozen"):
        bridge.set_attr("setting", None)


def test_ppo_learns_the_bandit_within_its_budget_and_leaves_global_generators_alone():
    before = global_random_state()
    spent = []
    (outcome,) = train(
        make_agent("sb3-ppo"), "Toy/TwoArms-v0", {}, [0], 6000, [lambda policy, episodes, _: spent.append(episodes)]
    )
    assert global_random_state() == before
    assert 6000 - 64 < outcome.budget.spent <= 6000
    assert outcome.policy.probs(np.zeros((1, 1), np.int8))[0, 1] > 0.9
    assert len(spent) >= 4
    assert spent == sorted(spent)


def test_a_snapshot_stays_and_survives_saving(tmp_path):
    seen = []

    def checkpoint(policy, spent, scalars):
        seen.append((policy, policy.probs(observations)))

    observations = np.zeros((3, 6), np.int8)
    observations[:, :2] = [[4, 5], [6, 7], [4, 4]]
    (outcome,) = train(make_agent("sb3-ppo"), "Toy/Copy-v0", {}, [1], 2000, [checkpoint])
    assert not np.allclose(seen[0][1], seen[-1][1])
    for policy, probs in seen:
        np.testing.assert_array_equal(policy.probs(observations), probs)
    final = outcome.policy.probs(observations)
    assert final.dtype == np.float64
    np.testing.assert_allclose(final.sum(axis=1), 1, atol=1e-12)
    outcome.policy.save(tmp_path / "ppo")
    for kind in (SB3Policy, Policy):
        np.testing.assert_array_equal(kind.load(tmp_path / "ppo").probs(observations), final)


def test_other_algorithms_and_networks():
    envs = gym.make_vec("Toy/TwoArms-v0", num_envs=16, scored=True)
    (budget,) = attach(envs, 2000)
    logged = []

    class Log:
        due = True

        def __call__(self, policy, **scalars):
            logged.append(policy)

    policy = train_sb3(
        "A2C", envs, budget, seed=5, log=Log(), n_steps=5, learning_rate=0.01, policy_kwargs={"net_arch": [8]}
    )
    assert policy.weights.size < 200
    assert len(logged) > 10
    assert policy.probs(np.zeros((1, 1), np.int8))[0, 1] > 0.8
    assert lookup("Toy/TwoArms-v0").make_setting({}).num_actions == policy.num_actions
