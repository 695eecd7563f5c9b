"""stable-baselines3 on our vector environments, beside its own vector of `gym.make`: the same PPO, steps per second."""

import time

import gymnasium as gym
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

import theorybench as tb
from theorybench.agents.external.sb3 import SB3Policy, VectorBridge

ENV, NUM_ENVS, STEPS = "TheoryBench/TreeMarkovChain-v0", 256, 65_536
torch.set_num_threads(1)  # small networks are several times slower on many threads


def native():
    """Array code: one call moves all environments."""
    return VectorBridge(gym.make_vec(ENV, num_envs=NUM_ENVS))


def dummy():
    """A Python loop over environments."""
    return DummyVecEnv([lambda: gym.make(ENV)] * NUM_ENVS)


def alone(envs):
    """Steps a second of the environments, within half a second."""
    actions, steps, began = [envs.action_space.sample() for _ in range(NUM_ENVS)], 0, time.perf_counter()
    while time.perf_counter() - began < 0.5:
        envs.step(actions)
        steps += NUM_ENVS
    return steps / (time.perf_counter() - began)


speeds = {}
for make in (dummy, native):
    envs = make()
    model = PPO("MlpPolicy", envs, n_steps=16, batch_size=1024, n_epochs=4, gamma=1.0, seed=0, device="cpu")
    began = time.perf_counter()
    model.learn(STEPS)
    learning = STEPS / (time.perf_counter() - began)
    score = tb.evaluate(SB3Policy.of(model), ENV)["score"]
    speeds[make] = alone(envs), learning
    print(
        f"{type(envs).__name__:12}  {speeds[make][0]:9,.0f} steps/s alone  {learning:6,.0f} with PPO  score {score:.3f}"
    )
ratios = [ours / theirs for ours, theirs in zip(speeds[native], speeds[dummy], strict=True)]
print(f"ratio         {ratios[0]:.0f} alone, {ratios[1]:.1f} with PPO")
