"""stable-baselines3 and sb3-contrib through our vector bridge, and through their DummyVecEnv of single environments."""

from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from contest import TREE, Contest, Side
from sb3_contrib import MaskablePPO
from sb3_contrib.common.wrappers import ActionMasker
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from theorybench.agents.external.sb3 import VectorBridge

DISTRIBUTION = "stable-baselines3"
#: Environments that an algorithm steps together, and steps of each between updates.
COUNTS, STEPS = (64, 1024), 8
OPTIONS = {"n_steps": STEPS, "n_epochs": 4, "learning_rate": 1e-3, "gamma": 1.0, "seed": 0, "device": "cpu"}


def contests(sizes: Sequence[int]) -> Iterator[Contest]:
    """Yield contests of steps without an agent, and of `learn`."""
    for n in COUNTS:
        sides = [
            Side(name, "step_async and step_wait of a VecEnv, random actions", _steps(envs, n))
            for name, envs in (("vector bridge", _bridge(n)), ("DummyVecEnv", _dummy(n, masked=False)))
        ]
        yield Contest("VecEnv steps", "transitions", n, sides[0], (sides[1],))
    for algorithm, n in ((PPO, COUNTS[0]), (PPO, COUNTS[1]), (MaskablePPO, COUNTS[0]), (MaskablePPO, COUNTS[1])):
        masked = algorithm is MaskablePPO
        step = f"learn(): {STEPS} steps of each environment, 4 epochs, mini-batches of a quarter"
        sides = [
            Side(name, step, _learn(algorithm, envs, n))
            for name, envs in (("vector bridge", _bridge(n)), ("DummyVecEnv", _dummy(n, masked=masked)))
        ]
        yield Contest(f"{algorithm.__name__}.learn", "transitions", n, sides[0], (sides[1],))


def _bridge(n: int) -> VectorBridge:
    return VectorBridge(gym.make_vec(TREE, num_envs=n), seed=0)


def _dummy(n: int, *, masked: bool) -> DummyVecEnv:
    def make() -> gym.Env[Any, Any]:
        env = gym.make(TREE, disable_env_checker=True)
        return ActionMasker(env, lambda own: own.unwrapped.action_masks()) if masked else env

    return DummyVecEnv([make for _ in range(n)])


def _steps(envs: Any, n: int) -> Any:
    envs.reset()
    draws = np.random.default_rng(0).integers(envs.action_space.n, size=(STEPS, n))

    def work() -> int:
        for actions in draws:
            envs.step(actions)
        return draws.size

    return work


def _learn(algorithm: Any, envs: Any, n: int) -> Any:
    model = algorithm("MlpPolicy", envs, batch_size=n * STEPS // 4, **OPTIONS)

    def work() -> int:
        model.learn(n * STEPS, reset_num_timesteps=False)
        return n * STEPS

    return work
