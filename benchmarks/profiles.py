"""Where agents spend their time: the share outside array code, copies and the optimiser.

    python benchmarks/profiles.py [--only rlvr,ppo] [--budget 4096] [--json benchmarks/results/profiles.json]

Every agent that trains a table, a linear class or a network of ours trains for a short budget under `cProfile`, on the
tree, on PreferenceBandit or on GoodBadLabels, whichever gives its feedback; a first training that is not measured warms
up. Array code is what NumPy, SciPy and torch spend, in C or in Python, the optimiser among it. All else is outside:
functions of this package, of Gymnasium, and of Python. Two bounds are printed. From above: operators such as a * b are
no calls, what they take counts for the function that they stand in, and the profiler slows calls of Python most. From
below: seconds of array code under the profiler, which slows it too, are compared with a training without a profiler.
"""

import argparse
import cProfile
import pstats
import time
from pathlib import Path
from typing import Any

from _stored import hardware, store

import theorybench as tb
from theorybench.agents import make_agent, train
from theorybench.agents.policies.catalogue import PolicyOptions
from theorybench.envs.core.errors import TheoryBenchError

#: Where agents of each feedback are trained.
ENVIRONMENTS = {
    "reward": "TheoryBench/TreeMarkovChain-v0",
    "preference": "TheoryBench/PreferenceBandit-v0",
    "label": "TheoryBench/GoodBadLabels-v0",
}
#: Packages whose functions are array code.
ARRAYS = ("/numpy/", "/torch/", "/scipy/")
#: The names of built-in functions, and of methods of built-in types, that are array code or copies.
NATIVE = ("numpy", "torch", "Tensor", "_VariableFunctions", "ndarray", "Generator", "Adam", "Sgd")
#: The largest share.
GOAL = 1 / 3


def is_array_code(place: tuple[str, int, str]) -> bool:
    """Return whether a function of a profile, (file, line, name), is array code or a copy."""
    file, _, name = place
    if file == "~":
        return any(word in name for word in NATIVE)
    return any(part in file for part in ARRAYS)


def profiled(agent: str, env_id: str, budget: int) -> dict[str, Any]:
    """Train twice; return seconds without a profiler, both bounds of the share outside, and where most of that goes."""
    start = time.process_time()
    train(make_agent(agent), env_id, {}, [0], budget)
    plain, profile = time.process_time() - start, cProfile.Profile(time.process_time)
    profile.runcall(train, make_agent(agent), env_id, {}, [0], budget)
    entries = {place: row[2] for place, row in pstats.Stats(profile).stats.items()}  # type: ignore[attr-defined]
    whole = sum(entries.values())
    outside = {place: own for place, own in entries.items() if not is_array_code(place)}
    most = sorted(
        ((own / whole, f"{Path(file).name}:{name}") for (file, _, name), own in outside.items()), reverse=True
    )
    spent = sum(outside.values())
    least = max(0.0, 1.0 - (whole - spent) / plain)
    return {"seconds": plain, "outside_least": least, "outside_most": spent / whole, "largest": most[:3]}


def tabular() -> dict[str, str]:
    """Return agents that train a policy class, and the environments of their feedback."""
    found = {}
    for agent in tb.list_agents():
        made = make_agent(agent)
        if isinstance(made, PolicyOptions) and made.feedback in ENVIRONMENTS:
            found[agent] = ENVIRONMENTS[made.feedback]
            if "policy" in vars(made) and made.feedback == "reward":
                found[f"{agent}[policy=mlp]"] = ENVIRONMENTS[made.feedback]
    return found


def main() -> None:
    """Profile and print one row for each agent, the largest share first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of agents, comma-separated")
    parser.add_argument("--budget", type=int, default=4096)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for agent, env_id in tabular().items():
        if options.only and agent.partition("[")[0] not in options.only.split(","):
            continue
        try:
            train(make_agent(agent), env_id, {}, [0], min(256, options.budget))
            found = profiled(agent, env_id, options.budget)
        except TheoryBenchError as error:  # one that needs stages, a dialogue or the oracle
            print(f"{agent}: {str(error).splitlines()[0][:100]}")
            continue
        row = {"agent": agent, "environment": env_id, "budget": options.budget}
        rows.append({**row, **found})
    print(f"{hardware()}; budgets of {options.budget} episodes; share of time outside array code, from below and above")
    for row in sorted(rows, key=lambda row: -row["outside_least"]):
        most = ", ".join(f"{name} {share:.0%}" for share, name in row["largest"])
        bounds = f"{row['outside_least']:5.0%} to{row['outside_most']:5.0%}"
        print(f"{row['agent']:36}{bounds}{row['seconds']:8.2f} s  {most}")
    over = [row["agent"] for row in rows if row["outside_least"] > GOAL]
    print(f"goal, at most {GOAL:.0%}: {', '.join(over) + ' MISSED' if over else 'all reached'}")
    store(options.json, rows)


if __name__ == "__main__":
    main()
