"""Steps on a device: the same bits as in NumPy, and no step waits for the host."""

import gymnasium as gym
import numpy as np
import pytest
import torch

import theorybench as tb
from theorybench.envs.core.compiled.graph import Untraceable
from theorybench.envs.core.compiled.tensors import TensorSteps

IDS = [id for id in tb.list_envs() if id.startswith("TheoryBench/")]
#: Settings whose steps must be traced: the fall-back would hide them.
SURE = ("TreeMarkovChain", "ReasoningTree", "PreferenceBandit", "Parity", "KeyRecall", "RelativeBudget", "FactMemory")
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no device")),
]


def both(id, device, n=19):
    """The same environments in NumPy, and on a device."""
    envs = gym.make_vec(id, num_envs=n, compiled=False)
    envs.reset(seed=3)
    other = gym.make_vec(id, num_envs=n, backend="torch", device=device)
    other.reset(seed=3)
    return envs, TensorSteps(other.unwrapped.batch)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "id", [pytest.param(id, marks=[pytest.mark.rotating(daily=6)] * (id[12:-3] not in SURE)) for id in IDS]
)
def test_trajectories_are_those_of_numpy(id, device):
    try:
        envs, steps = both(id, device)
    except Untraceable:
        assert id[12:-3] not in SURE
        return
    rng, space = np.random.default_rng(0), envs.single_action_space
    high = space.n if isinstance(space, gym.spaces.Discrete) else space.nvec
    ended = 0
    for _ in range(min(2 * envs.unwrapped.setting.horizon + 3, 40)):
        actions = rng.integers(high, size=envs.action_space.shape)
        observations, rewards, terminated, _, info = envs.step(actions)
        found = steps.step(torch.as_tensor(actions, device=device))
        assert (found.observations.cpu().numpy() == observations).all()
        assert (found.rewards.cpu().numpy() == rewards).all() and (found.terminated.cpu().numpy() == terminated).all()
        masks = np.ones_like(info["action_mask"]) if found.masks is None else found.masks.cpu().numpy()
        assert (masks == info["action_mask"]).all()
        ended += terminated.sum()
    assert ended or envs.unwrapped.setting.horizon > 40


def test_random_actions_are_of_the_space_and_differ():
    _, steps = both("TheoryBench/TreeMarkovChain-v0", "cpu", n=4096)
    first = steps.random_actions()
    steps.step(first)
    counts = torch.bincount(first, minlength=steps.num_actions) / 4096
    assert (counts - 1 / steps.num_actions).abs().max() < 0.04 and (first != steps.random_actions()).any()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no device")
@pytest.mark.parametrize("id", [f"TheoryBench/{name}-v0" for name in SURE])
def test_no_step_waits_for_the_host(id):
    _, steps = both(id, "cuda", n=1024)
    actions = torch.zeros_like(steps.random_actions())
    actions = actions[:, None].expand(-1, 2) if id == "TheoryBench/PreferenceBandit-v0" else actions
    steps.step(actions)  # makes what all steps share
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = [steps.step(actions) for _ in range(8)]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.stack([one.terminated for one in found]).any()
