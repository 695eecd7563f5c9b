"""Transitions a second of every setting's vector environment, beside Gymnasium's own native vector CartPole.

    python benchmarks/environments.py [--num-envs 4096] [--repeats 30] [--steps 50]
    python benchmarks/environments.py --single [--repeats 30]

With `--single`: steps a second of every setting's single environment, `gym.make(id)` and a reset after each episode,
beside Gymnasium's CartPole, with Gymnasium's passive checkers and without.

Everything is on: actions are validated, observations and masks are made, finished episodes begin again in the same
step, and the phases of episodes are spread so that every step sees its share of endings. Actions are random; where most
would soon be illegal, in the families `training` and `context`, they are random legal ones. Repeats of all environments
are interleaved, so that a busy machine slows all of them alike, and seconds are the processor's.
"""

import argparse
import platform
import statistics
import time

import gymnasium as gym
import numpy as np

import theorybench as tb
from theorybench.envs.core.registry import lookup
from theorybench.envs.recall.setting import RecallSetting

CARTPOLE = "CartPole-v1"
#: Steps of a single environment that are measured at once.
STEPS = 1000
IDS = [env_id for env_id in tb.list_envs() if env_id.startswith("TheoryBench/")]
#: Settings whose step reads a whole prompt.
RECALL = [env_id for env_id in IDS if issubclass(lookup(env_id).setting, RecallSetting)]
#: Parameters other than the defaults, in rows of their own.
LARGE = {
    "TheoryBench/KFoldComposition-v0": {"N": 16, "k": 8},
    **{env_id: {"trained": 0} for env_id in RECALL},
}
#: Transitions a second that are asked of a row; less where each prompt is a table that is drawn or looked up, and ten
#: million prompt tokens where a step is a prompt.
GOALS = {
    "TheoryBench/TreeMarkovChain-v0": 10e6,
    "TheoryBench/ReasoningTree-v0": 5e6,
    "TheoryBench/Parity-v0": 5e6,
    "TheoryBench/Semiautomaton-v0": 5e6,
    "TheoryBench/RelativeBudget-v0": 5e6,
    "TheoryBench/Countdown-v0": 1e6,
    "TheoryBench/KFoldComposition-v0": 1e6,
    "TheoryBench/KFoldComposition-v0 N=16 k=8": 1e6,
    "TheoryBench/InductionMixture-v0": 5e6,
    "TheoryBench/LabelNoise-v0": 5e6,
    "TheoryBench/StepSizes-v0": 5e6,
    "TheoryBench/ThinkingSteps-v0": 5e6,
    **{env_id: 5e6 for env_id in IDS if lookup(env_id).setting.track in ("context", "supervision", "features")},
    **{
        f"{env_id}{row}": 10e6 / lookup(env_id).make_setting({}).prompt_length
        for env_id in RECALL
        for row in ("", " trained=0")
    },
}


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


def make(env_id: str, num_envs: int, **parameters: int) -> gym.vector.VectorEnv:
    """Make and reset the native vector environment of an id."""
    envs = gym.make_vec(env_id, num_envs=num_envs, vectorization_mode="vector_entry_point", **parameters)
    envs.reset(seed=0)
    if env_id != CARTPOLE:
        spread_phases(envs, np.random.default_rng(0))
    return envs


def seconds_per_step(envs: gym.vector.VectorEnv, steps: int, rng: np.random.Generator) -> float:
    """Step some times with random actions."""
    seconds, space = 0.0, envs.single_action_space
    legal = envs.spec.id != CARTPOLE and envs.unwrapped.setting.track in ("training", "context")
    for _ in range(steps):
        if legal:
            masks = envs.unwrapped.action_masks()
            chosen = (rng.random(masks.shape) * masks).argmax(axis=1)
        else:
            high = space.n if isinstance(space, gym.spaces.Discrete) else space.nvec
            chosen = rng.integers(high, size=envs.action_space.shape)
        start = time.process_time()
        envs.step(chosen)
        seconds += time.process_time() - start
    return seconds / steps


def main() -> None:
    """Measure and print one row for each environment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-envs", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--single", action="store_true", help="single environments")
    options = parser.parse_args()
    if options.single:
        report_singles(options.repeats)
        return
    environments = {env_id: make(env_id, options.num_envs) for env_id in (CARTPOLE, *IDS)}
    for env_id, parameters in LARGE.items():
        name = " ".join((env_id, *(f"{key}={value}" for key, value in parameters.items())))
        environments[name] = make(env_id, options.num_envs, **parameters)
    rng = np.random.default_rng(1)
    seconds: dict[str, list[float]] = {name: [] for name in environments}
    for repeat in range(options.repeats + 1):
        for name, envs in environments.items():
            measured = seconds_per_step(envs, options.steps, rng)
            if repeat:  # the first one warms up
                seconds[name].append(measured)
    report(options, seconds)


def single_rate(env: gym.Env) -> float:
    """Return steps a second of a single environment under random actions, resets after each episode included."""
    actions = [env.action_space.sample() for _ in range(STEPS)]
    start = time.process_time()
    for action in actions:
        if env.step(action)[2]:
            env.reset()
    return STEPS / (time.process_time() - start)


def report_singles(repeats: int) -> None:
    """Measure single environments, interleaved, and print the table."""
    names = (CARTPOLE, *IDS)
    rates: dict[str, list[list[float]]] = {name: [] for name in names}
    for checked in (True, False):
        environments = {name: gym.make(name, disable_env_checker=not checked) for name in names}
        for name, env in environments.items():
            env.reset(seed=0)
            env.action_space.seed(0)
            single_rate(env)  # warms up
            rates[name].append([])
        for _ in range(repeats):
            for name, env in environments.items():
                rates[name][-1].append(single_rate(env))
    print(f"single environments, {repeats} repeats of {STEPS} steps, interleaved; thousand steps a second")
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}")
    print(f"{'environment':42}{'checked':>10}{'to CartPole':>13}{'unchecked':>12}{'to CartPole':>13}")
    medians = {name: [statistics.median(each) for each in measured] for name, measured in rates.items()}
    for name, (with_checks, without) in medians.items():
        ratios = with_checks / medians[CARTPOLE][0], without / medians[CARTPOLE][1]
        print(f"{name:42}{with_checks / 1e3:10.1f}{ratios[0]:12.2f}x{without / 1e3:12.1f}{ratios[1]:12.2f}x")
    slower = [
        name for name, rate in medians.items() if any(a < b for a, b in zip(rate, medians[CARTPOLE], strict=True))
    ]
    print(f"goal, as fast as CartPole: {', '.join(slower) + ' MISSED' if slower else 'all reached'}")


def report(options: argparse.Namespace, seconds: dict[str, list[float]]) -> None:
    """Print the table."""
    print(f"{options.num_envs} environments, {options.repeats} repeats of {options.steps} steps, interleaved")
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}; M/s = 10^6 transitions/s")
    print(f"{'environment':42}{'us a step':>10}{'median M/s':>12}{'best M/s':>10}{'to CartPole':>13}{'goal M/s':>10}")
    cartpole = statistics.median(seconds[CARTPOLE])
    missed = []
    for name, measured in seconds.items():
        median, best = statistics.median(measured), min(measured)
        speed, top = options.num_envs / median / 1e6, options.num_envs / best / 1e6
        goal = GOALS.get(name, 0.0) / 1e6
        line = f"{name:42}{median * 1e6:10.0f}{speed:12.2f}{top:10.2f}{cartpole / median:12.2f}x"
        print(f"{line}{goal:10.3g}" if goal else line)
        if speed < goal:
            missed.append(name)
    print(f"goals, at 4096 environments: {', '.join(missed) + ' MISSED' if missed else 'all reached'}")


if __name__ == "__main__":
    main()
