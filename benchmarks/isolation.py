"""What it costs to score agents apart from their training: processor time beside the same runs in one process.

    python benchmarks/isolation.py [--agents rlvr astar-po dpo-offline dpo-on-policy] [--repeats 3] [--budget N]

The environments of the suite `starter` on which an agent learns, five seeds together, as its copy in a file: in a
process of its own, and in the process that scores. Pairs are interleaved; user and system time, processes that have
ended included.
"""

import argparse
import resource
import statistics
import tempfile
from pathlib import Path

from theorybench.leaderboard.running.config import make_suite, named_suite
from theorybench.leaderboard.running.matrix import plan
from theorybench.leaderboard.running.provenance import warm_up
from theorybench.leaderboard.running.runner import train_and_score, train_apart_and_score

#: The most that scoring apart may cost, on all runs together.
GOAL = 1.10
COPY = """from theorybench.agents.api.loading import agent_class
class {name}(agent_class("{agent}")):
    pass
"""


def used() -> float:
    """Return the processor seconds of this process and of those that it has started and that have ended."""
    both = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(one.ru_utime + one.ru_stime for one in both)


def main() -> None:
    """Measure and print a row for each job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", nargs="+", default=["rlvr", "astar-po", "dpo-offline", "dpo-on-policy"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budget", type=int)
    options = parser.parse_args()
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        copies = Path(folder) / "copies.py"
        names = {agent: agent.title().replace("-", "") for agent in options.agents}
        copies.write_text("\n\n".join(COPY.format(name=name, agent=agent) for agent, name in names.items()))
        places = [place.model_dump(exclude_none=True) for place in named_suite("starter").environments]
        if options.budget:
            places = [{**place, "budget": options.budget} for place in places]
        values = {"name": "copies", "agents": [f"{copies}:{name}" for name in names.values()], "seeds": 5}
        jobs = plan(make_suite({**values, "environments": places})).jobs
        print(f"{'agent on environment':60}{'together':>10}{'apart':>10}{'ratio':>8}")
        sums = [0.0, 0.0]
        for job in jobs:
            found: tuple[list[float], list[float]] = [], []
            for repeat in range(options.repeats + 1):
                for seconds, apart in zip(found, (False, True), strict=True):
                    begin = used()
                    if apart:
                        train_apart_and_score(job.agent, job.runs, job.environment, job.memory, job.fractions)
                    else:
                        train_and_score(job.agent, job.runs, True, job.fractions)
                    if repeat:  # the first one warms up
                        seconds.append(used() - begin)
            medians = [statistics.median(seconds) for seconds in found]
            sums = [total + median for total, median in zip(sums, medians, strict=True)]
            print(f"{job.name:60}{medians[0]:8.2f} s{medians[1]:8.2f} s{medians[1] / medians[0]:8.2f}", flush=True)
    reached = "reached" if sums[1] <= GOAL * sums[0] else "missed"
    print(f"{'all':60}{sums[0]:8.2f} s{sums[1]:8.2f} s{sums[1] / sums[0]:8.2f}   goal {GOAL:.2f}: {reached}")


if __name__ == "__main__":
    main()
