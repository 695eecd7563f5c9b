"""Fixtures: the toy settings of the core's tests, vector environments of them, and trainers without an agent."""

from pathlib import Path

import gymnasium as gym
import pytest

from theorybench.envs.core.registry import load_module

TOYS = load_module(str(Path(__file__).parents[1] / "envs" / "core" / "toys.py"))


@pytest.fixture
def toys():
    """The module of toy settings."""
    return TOYS


@pytest.fixture
def make():
    """Make vector environments of a toy: make("Copy", 8, size=3)."""

    def vector(name, num_envs, seed=None, **keywords):
        envs = gym.make_vec(f"Toy/{name}-v0", num_envs=num_envs, **keywords)
        if seed is not None:
            envs.reset(seed=seed)
        return envs

    return vector
