"""Fixtures: vector environments of the toy settings."""

import gymnasium as gym
import pytest


@pytest.fixture
def make():
    """Make vector environments of a toy: make("Copy", 8, size=3)."""

    def vector(name, num_envs, seed=None, **keywords):
        envs = gym.make_vec(f"Toy/{name}-v0", num_envs=num_envs, **keywords)
        if seed is not None:
            envs.reset(seed=seed)
        return envs

    return vector
