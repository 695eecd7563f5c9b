"""Transitions a second of every setting's vector environment, beside Gymnasium's own native vector CartPole.

    python benchmarks/environments.py [--num-envs 4096] [--repeats 30] [--steps 50]

Everything is on: actions are validated, observations and masks are made, finished episodes begin again in the same
step, and the phases of episodes are spread so that every step sees its share of endings. Repeats of all environments
are interleaved, so that a busy machine slows all of them alike.
"""

import argparse
import platform
import statistics
import time

import gymnasium as gym
import numpy as np

import theorybench as tb

CARTPOLE = "CartPole-v1"
GOAL = ("TheoryBench/TreeMarkovChain-v0", 10e6)


def spread_phases(envs: gym.vector.VectorEnv, rng: np.random.Generator) -> None:
    """Bring environment i of TheoryBench to its step i modulo the horizon."""
    batch, horizon = envs.unwrapped.batch, envs.unwrapped.setting.horizon
    for step in range(1, horizon):
        rows = np.flatnonzero((np.arange(batch.n) % horizon >= step) & ~batch.ended)
        if len(rows):
            batch.step(batch.actions(rng.integers(envs.unwrapped.setting.num_actions, size=len(rows)), len(rows)), rows)
    rows = np.flatnonzero(batch.ended)
    if len(rows):
        batch.begin(rows)


def make(env_id: str, num_envs: int) -> gym.vector.VectorEnv:
    """Make and reset the native vector environment of an id."""
    envs = gym.make_vec(env_id, num_envs=num_envs, vectorization_mode="vector_entry_point")
    envs.reset(seed=0)
    if env_id != CARTPOLE:
        spread_phases(envs, np.random.default_rng(0))
    return envs


def seconds_per_step(envs: gym.vector.VectorEnv, actions: np.ndarray) -> float:
    """Step once with each row of actions."""
    start = time.perf_counter()
    for chosen in actions:
        envs.step(chosen)
    return (time.perf_counter() - start) / len(actions)


def main() -> None:
    """Measure and print one row for each environment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-envs", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    ids = [CARTPOLE, *(env_id for env_id in tb.list_envs() if env_id.startswith("TheoryBench/"))]
    environments = {env_id: make(env_id, options.num_envs) for env_id in ids}
    rng = np.random.default_rng(1)
    actions = {}
    for env_id, envs in environments.items():
        high = getattr(envs.single_action_space, "n", None) or envs.single_action_space.nvec
        actions[env_id] = rng.integers(high, size=(options.steps, *envs.action_space.shape))
    seconds: dict[str, list[float]] = {env_id: [] for env_id in ids}
    for repeat in range(options.repeats + 1):
        for env_id, envs in environments.items():
            measured = seconds_per_step(envs, actions[env_id])
            if repeat:  # the first one warms up
                seconds[env_id].append(measured)
    report(options, seconds)


def report(options: argparse.Namespace, seconds: dict[str, list[float]]) -> None:
    """Print the table."""
    print(f"{options.num_envs} environments, {options.repeats} repeats of {options.steps} steps, interleaved")
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}; M/s = 10^6 transitions/s")
    print(f"{'environment':36}{'us a step':>10}{'median M/s':>12}{'best M/s':>10}{'to CartPole':>13}")
    cartpole = statistics.median(seconds[CARTPOLE])
    for env_id, measured in seconds.items():
        median, best = statistics.median(measured), min(measured)
        speed, top = options.num_envs / median / 1e6, options.num_envs / best / 1e6
        print(f"{env_id:36}{median * 1e6:10.0f}{speed:12.2f}{top:10.2f}{cartpole / median:12.2f}x")
    env_id, goal = GOAL
    speed = options.num_envs / statistics.median(seconds[env_id])
    print(f"goal: {env_id} at {goal / 1e6:.0f} M/s at 4096 environments: {'reached' if speed >= goal else 'MISSED'}")


if __name__ == "__main__":
    main()
