"""A*-PO's headline (arXiv 2505.20686) beside PPO, GRPO, RLOO and REBEL: what 95 % of the optimum costs.

    python benchmarks/astar_po.py [--quick] [--results results/astar-po]

1. *Search.* In each cell (setting, weight of the KL term, policy class) every algorithm trains six variants, three step
   sizes times two values of one option of its own, with two seeds on tuning instance 0. The variant that reaches .95 in
   the fewest episodes is kept, and trained on two scoring instances. Its weight of the KL term is the setting's beta;
   for A*-PO that is beta_1 and beta_2. Episodes of A*-PO's first stage are charged. Policies are scored twelve times
   a doubling of the episodes; between two of them the score is linear in ln episodes.
2. *Time.* Every algorithm then trains again until its first scored policy above .95, one run at a time in one process,
   never batched, the algorithms taking turns. Seconds are without scoring. Ratios are of pairs with the same seed.
3. *Memory.* Peak of the whole process, a fresh one for each run, and above that of a run of two episodes.

Step sizes: .1, .3, 1 at beta <= .1 and in networks; .03, .1, .3 at beta = .2 and in the table of the tree; .01, .03, .1
at beta >= .5. The KL term's weight on the tree: .05 in the table, .02 in the network. Runs go through the package's own
workers and are kept as records: what is there is not run again. Means are geometric (but of KL) over the runs that
reach the target, with three standard errors of their logarithm to each side. "expected" charges the others as well: all
episodes, whole budgets where the target was missed, over the runs that reach it.
"""

import argparse
import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _contest import (
    BATCH,
    CONTENDERS,
    FEWEST,
    RIVALS,
    TARGET,
    Cell,
    Scale,
    Study,
    Winner,
    advantage,
    astar_po,
    cost,
    geometric,
    tree,
)

from theorybench.leaderboard.records.record import Record

ROOT = Path(__file__).resolve().parents[1]

FULL = Scale(
    headline=(
        *(advantage(f"table beta {beta:g}", beta) for beta in (0.05, 0.1, 0.2, 0.5, 1.0)),
        advantage("mlp beta 0.1", 0.1, "mlp", 2**13, num_prompts=8, num_responses=16),
        tree(0.05, "markov", 7, 5),
        tree(0.02, "mlp", 5, 4),
    ),
    variations=(
        advantage("X = 8", 0.1, num_prompts=8, budget=2**13),
        advantage("X = 32", 0.1),
        advantage("X = 96", 0.1, num_prompts=96, budget=2**15),
        advantage("p = .05", 0.1, accuracy=0.05, concentration=1e6, zero_share=0.0),
        advantage("p = .5", 0.1, accuracy=0.5, concentration=1e6, zero_share=0.0),
        advantage("beta = .5", 0.5),
    ),
    samples=(1, 2, 8, 32),
    memory=(advantage("table", 0.1, budget=1536), advantage("mlp 512 x 2", 0.1, "mlp", 1536)),
    network={"hidden_units": 512, "hidden_layers": 2},
    tuning_seeds=2,
    instances=(10_000, 10_001),
    seeds=5,
    memory_seeds=2,
)
_SMALL = advantage("table beta 0.1", 0.1, budget=2048, num_prompts=4)
QUICK = Scale(
    headline=(dataclasses.replace(_SMALL, step_sizes=(0.3,)),),
    variations=(),
    samples=(8,),
    memory=(dataclasses.replace(_SMALL, name="table", budget=256),),
    network={},
    tuning_seeds=1,
    instances=(10_000,),
    seeds=2,
    memory_seeds=1,
)
#: Rivals where the setting varies: those that take the fewest generations elsewhere.
CLOSEST = tuple(rival for rival in RIVALS if rival.name in ("rloo", "rebel"))


def shown(values: Sequence[float], digits: str = ".0f") -> str:
    """Print a geometric mean with its interval."""
    if not values:
        return "-"
    middle, low, high = geometric(values)
    return f"{middle:{digits}} " + (f"[{low:{digits}}, {high:{digits}}]" if len(values) >= FEWEST else "[few]")


def paired(ours: dict[int, Record], theirs: dict[int, Record], read: Callable[[Record], float]) -> list[float]:
    """Return their value over ours for the seeds that both have."""
    return [read(theirs[seed]) / read(ours[seed]) for seed in sorted(ours.keys() & theirs.keys())]


def wall(record: Record) -> float:
    """Seconds of wall time."""
    return record.seconds_wall


def cpu(record: Record) -> float:
    """Seconds of the processor."""
    return record.seconds_cpu or math.nan


def print_headline(
    winners: Sequence[Winner], scored: Sequence[Sequence[Record]], timed: Sequence[dict[int, Record]]
) -> None:
    """Print what the target costs every algorithm in every cell."""
    head = f"{'':10}{'variant':>31}{'reach':>7}{'episodes':>24}{'expected':>10}{'steps':>7}{'KL':>7}{'ms':>7}"
    head += f"{'wall / ours':>21}{'CPU / ours':>21}"
    ours: dict[int, Record] = {}
    for number, ((cell, contender, options), records, times) in enumerate(zip(winners, scored, timed, strict=True)):
        if number % len(CONTENDERS) == 0:
            ours = times
            print(f"\n{cell.name}\n{head}")
        costs = [found for found in map(cost, records) if found]
        variant = f"step {options['learning_rate']:g}, {contender.knob} {options[contender.knob]}"
        line = f"{contender.name:10}{variant.replace('reference_samples', 'N'):>31}{reached(records):>7}"
        if costs:
            episodes, steps, kl = ([getattr(one, name) for one in costs] for name in ("episodes", "steps", "kl"))
            line += f"{shown(episodes):>24}{expected(records, cell.budget):10.0f}"
            line += f"{geometric(steps)[0]:7.0f}{np.mean(kl):7.3f}"
            line += f"{1e3 * geometric([wall(one) for one in times.values()])[0]:7.0f}"
            if times is not ours:
                line += "".join(f"{shown(paired(ours, times, read), '.2f'):>21}" for read in (wall, cpu))
        print(line)


def print_memory(rows: Sequence[tuple[Cell, dict[str, list[float]]]]) -> None:
    """Print peaks and what A*-PO saves."""
    for cell, peaks in rows:
        print(f"\npeak memory, {cell.name}, MB of the process (and above an empty one)")
        empty, ours = np.mean(peaks["empty"]), np.array(peaks["astar-po"])
        for name, values in peaks.items():
            line = f"{name:10}{np.mean(values):9.1f} ({np.mean(values) - empty:+.1f})"
            if name not in ("empty", "astar-po"):
                saved = 1 - ours / np.array(values)
                line += f"   A*-PO's is {saved.mean():+.1%} below, from {saved.min():+.1%} to {saved.max():+.1%}"
            print(line)


def print_variations(study: Study) -> None:
    """Print the expected episodes to the target where the setting varies, of A*-PO by N, and of its rivals."""
    cells, split = study.scale.variations, len(study.scale.samples)
    contenders = (*(astar_po(n) for n in study.scale.samples), *CLOSEST)
    scored = study.score(study.tune([(cell, contender) for cell in cells for contender in contenders]))
    print("\nexpected episodes where the setting varies (beta = .1, X = 32, p mixed unless named), and who reaches")
    names = [*(f"A*-PO N={n}" for n in study.scale.samples), *(rival.name for rival in CLOSEST)]
    print(f"{'':12}" + "".join(f"{name:>16}" for name in names) + "   best rival / best A*-PO")
    for number, cell in enumerate(cells):
        found = scored[number * len(contenders) : (number + 1) * len(contenders)]
        means = [expected(records, cell.budget) for records in found]
        entries = [f"{mean:.0f} {reached(records)}" for mean, records in zip(means, found, strict=True)]
        line = f"{cell.name:12}" + "".join(f"{entry:>16}" for entry in entries)
        print(line + f"   {min(means[split:]) / min(means[:split]):.2f}")


def reached(records: Sequence[Record]) -> str:
    """Print how many runs reach the target."""
    return f"{sum(cost(record) is not None for record in records)}/{len(records)}"


def expected(records: Sequence[Record], budget: int) -> float:
    """Return all episodes, whole budgets where the target was missed, over the runs that reach it."""
    costs = [found.episodes for found in map(cost, records) if found]
    missed = budget * (len(records) - len(costs))
    return (sum(costs) + missed) / len(costs) if costs else math.inf


def judge(name: str, ratios: Sequence[Sequence[float]], least: float) -> None:
    """Print in how many cells a ratio, rival / A*-PO, is surely above a threshold, and surely below 1."""
    known = [geometric(values) for values in ratios if len(values) >= FEWEST]
    middle = [value for value, _, _ in known]
    span = f"{min(middle):.2f} to {max(middle):.2f}" if middle else "unknown"
    above, below = sum(low > least for _, low, _ in known), sum(high < 1 for _, _, high in known)
    print(f"{name:36}{span:>16}{f'{above} (> {least:g})':>14}{below:>10}{len(ratios) - len(known):>10}")


def print_verdicts(
    scored: Sequence[Sequence[Record]],
    timed: Sequence[dict[int, Record]],
    memory: Sequence[tuple[Cell, dict[str, list[float]]]],
) -> None:
    """Print what holds of each statement of the paper, rival by rival."""
    width = len(CONTENDERS)

    def spent(place: int, read: str) -> dict[tuple[Any, int], float]:
        pairs = ((record, cost(record)) for record in scored[place])
        return {(r.parameters["instance"], r.seed): getattr(found, read) for r, found in pairs if found}

    def against(number: int, read: str) -> list[list[float]]:
        pairs = [(spent(i, read), spent(i + number, read)) for i in range(0, len(scored), width)]
        return [[theirs[key] / ours[key] for key in ours.keys() & theirs.keys()] for ours, theirs in pairs]

    def clocks(number: int, read: Callable[[Record], float]) -> list[list[float]]:
        return [paired(timed[i], timed[i + number], read) for i in range(0, len(timed), width)]

    print(f"\nverdicts, in {len(scored) // width} cells; surely: with its interval; neither: too few runs reach both")
    print(f"{'rival / A*-PO, pairs that reach':36}{'means':>16}{'surely above':>14}{'below 1':>10}{'neither':>10}")
    for number in range(1, width):
        name = CONTENDERS[number].name
        judge(f"{name}: wall seconds", clocks(number, wall), 1.3)
        judge(f"{name}: CPU seconds", clocks(number, cpu), 1.3)
        judge(f"{name}: generations", against(number, "episodes"), 1.0)
        judge(f"{name}: gradient steps", against(number, "steps"), 1.0)
        judge(f"{name}: KL at the target", against(number, "kl"), 1.0)
    for name, low, high in (("rebel", 0.22, 0.34), ("ppo", 0.02, 0.18), ("grpo", 0.01, 0.02)):
        for cell, peaks in memory:
            saved = 1 - np.mean(peaks["astar-po"]) / np.mean(peaks[name])
            verdict = "more than that" if saved > high else "holds" if saved >= low else "does not hold"
            print(f"memory {low:.0%} to {high:.0%} below {name}, {cell.name}: {saved:+.1%}, {verdict}")


def main() -> None:
    """Run what is missing, and print tables and verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one small cell, to see that it works")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "astar-po")
    options = parser.parse_args()
    study = Study(QUICK if options.quick else FULL, options.results)
    scale = study.scale
    print(
        f"target {TARGET:g} of the objective; steps of {BATCH} episodes; {len(scale.instances)} scoring instances x "
        f"{scale.seeds} seeds, {scale.tuning_seeds} seeds for tuning"
    )
    winners = study.tune([(cell, contender) for cell in scale.headline for contender in CONTENDERS])
    scored = study.score(winners)
    timed = study.time(winners, scored)
    print_headline(winners, scored, timed)
    if scale.variations:
        print_variations(study)
    memory = study.memory()
    print_memory(memory)
    print_verdicts(scored, timed, memory)


if __name__ == "__main__":
    main()
