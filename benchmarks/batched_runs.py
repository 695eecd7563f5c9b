"""What training many seeds together saves: the time of 32 seeds over the time of one.

    python benchmarks/batched_runs.py [--seeds 32] [--updates 100] [--repeats 5]

Tabular agents on the tree and the exact linear learner on the preference bandit, 64 episodes an update. Repeats are
interleaved; the policies are compared with those trained alone.
"""

import argparse
import statistics
import time

import numpy as np

from theorybench.agents import make_agent, train
from theorybench.envs.core.policy import TablePolicy

EPISODES_PER_UPDATE = 64
AGENTS = (
    ("rlvr", "TheoryBench/TreeMarkovChain-v0"),
    ("astar-po", "TheoryBench/TreeMarkovChain-v0"),
    ("dpo-on-policy", "TheoryBench/PreferenceBandit-v0"),
)
#: The most that `--seeds` 32 tabular runs may cost, in runs.
GOAL = 4.0


def timed(name: str, env_id: str, seeds: range, budget: int) -> tuple[float, list[np.ndarray]]:
    """Train once for each seed, together: seconds, and the parameters of the policies."""
    start = time.perf_counter()
    outcomes = train(make_agent(name), env_id, {}, list(seeds), budget)
    seconds = time.perf_counter() - start
    policies = [outcome.policy for outcome in outcomes]
    return seconds, [policy.table if isinstance(policy, TablePolicy) else policy.theta for policy in policies]


def main() -> None:
    """Measure and print one row for each agent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=32)
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    budget = EPISODES_PER_UPDATE * options.updates
    print(
        f"{options.seeds} seeds, {options.updates} updates of {EPISODES_PER_UPDATE} episodes, {options.repeats} repeats"
    )
    print(f"{'agent':16}{'one seed':>12}{f'{options.seeds} seeds':>12}{'ratio':>8}   largest difference to runs alone")
    for name, env_id in AGENTS:
        one, many = [], []
        for repeat in range(options.repeats + 1):
            alone, first = timed(name, env_id, range(1), budget)
            together, all_of_them = timed(name, env_id, range(options.seeds), budget)
            if repeat:  # the first one warms up
                one.append(alone)
                many.append(together)
        last = options.seeds - 1
        pairs = (
            (first[0], all_of_them[0]),
            (timed(name, env_id, range(last, last + 1), budget)[1][0], all_of_them[-1]),
        )
        difference = max(float(np.abs(a - b).max()) for a, b in pairs)
        ratio = statistics.median(many) / statistics.median(one)
        times = f"{statistics.median(one) * 1e3:9.0f} ms{statistics.median(many) * 1e3:9.0f} ms{ratio:7.2f}x"
        print(f"{name:16}{times}   {difference:.1e}")
    print(f"goal: tabular agents below {GOAL:g}x")


if __name__ == "__main__":
    main()
