"""stable-baselines3 on what `gym.make` returns: PPO beside MaskablePPO of sb3-contrib, scored by the answer key."""

import time

import gymnasium as gym
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO

import theorybench as tb
from theorybench.agents.external.sb3 import SB3Policy

ENV, STEPS = "TheoryBench/Countdown-v0", 6_144
torch.set_num_threads(1)  # small networks are several times slower on many threads

for algorithm in (PPO, MaskablePPO):
    began, env = time.perf_counter(), gym.make(ENV)
    model = algorithm("MlpPolicy", env, n_steps=512, n_epochs=5, gamma=1.0, seed=0, device="cpu").learn(STEPS)
    result = tb.evaluate(SB3Policy.of(model), ENV)  # exact: the score is 0 for the base model and 1 for the optimum
    seconds = time.perf_counter() - began
    print(f"{algorithm.__name__:12} score {result['score']:+.3f}  objective {result['objective']:.3f}  {seconds:.0f} s")
