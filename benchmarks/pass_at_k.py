"""pass@K of a language model before and after TRL's A*-PO, on prompts that it can and cannot solve.

    python benchmarks/pass_at_k.py [--seeds 5] [--episodes 3000]

`OptimalAdvantage` with 16 prompts of 8 responses; on some prompts no response is right. Every number is exact, of the
oracle, and a mean over seeds and prompts.
"""

import argparse

import gymnasium as gym
import numpy as np

import theorybench as tb

ENV, PARAMETERS = "TheoryBench/OptimalAdvantage-v0", {"num_prompts": 16, "num_responses": 8, "accuracy": 0.2}
KS = (1, 8, 128)


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=3000)
    options = parser.parse_args()
    oracle = gym.make(ENV, **PARAMETERS).unwrapped.oracle
    names = [f"pass@{k}" for k in KS]
    print(f"{'':40}" + "".join(f"{name:>9}" for name in names))
    base = oracle.evaluate(oracle.reference_policy, names)
    print(f"{'base model':40}" + "".join(f"{base[name]:9.3f}" for name in names))
    for agent in ("trl-astar-po[keep_hopeless=true]", "trl-astar-po[keep_hopeless=false]"):
        runs = [
            tb.run(ENV, agent, seed=seed, budget=options.episodes, **PARAMETERS).metrics
            for seed in range(options.seeds)
        ]
        print(f"{agent:40}" + "".join(f"{np.mean([run[name] for run in runs]):9.3f}" for name in names), flush=True)


if __name__ == "__main__":
    main()
