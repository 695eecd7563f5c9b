"""Tables that `astar_po.py` prints: verdicts, when A*-PO takes fewer generations, costs, noise, memory."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from _contest import CONTENDERS, Cell, cost, episodes_of, expected
from _study import Entry, Scale
from _theory import noise_to_signal, score_of_grpo

from theorybench.envs.core.claim import mean_interval
from theorybench.envs.preference.optimal_advantage import OptimalAdvantage
from theorybench.leaderboard.records import Record

#: Pairs that an interval needs.
FEWEST = 5
#: Resamples of runs, and the share that lies outside of the interval on each side.
RESAMPLES, OUTSIDE = 4000, 0.5
#: A ratio, rival / A*-PO, with the ends of its interval.
Ratio = tuple[float, float, float]
Scored = Sequence[Sequence[Record]]
Timed = Sequence[dict[Any, Record]]
Memory = Sequence[tuple[Cell, dict[str, list[float]]]]
SHORT = {
    "learning_rate": "step",
    "reference_samples": "N",
    "beta_1": "beta_1 x",
    "critic_learning_rate": "critic",
    "num_iterations": "steps",
    "scale_rewards": "scale",
    "group_size": "K",
    "weight": "KL x",
}


def geometric(values: Sequence[float]) -> Ratio:
    """Return the geometric mean and its interval, whose ends are NaN for fewer values than `FEWEST`."""
    logs = np.log(values)
    if len(logs) < FEWEST:
        return (float(np.exp(logs.mean())) if len(logs) else math.nan), math.nan, math.nan
    middle, low, high = map(math.exp, mean_interval(logs))
    return middle, low, high


def shown(ratio: Ratio, digits: str) -> str:
    """Print a number with its interval."""
    middle, low, high = ratio
    ends = "[few]" if math.isnan(low) else f"[{low:{digits}}, {high:{digits}}]"
    return "-" if math.isnan(middle) else f"{middle:{digits}} {ends}"


def generations(ours: Sequence[Record], theirs: Sequence[Record], budget: int) -> Ratio:
    """Return the ratio of expected episodes, theirs over ours, with a bootstrap of 99 % over (instance, seed)."""
    pick = np.random.default_rng(0).integers(0, len(ours), (RESAMPLES, len(ours)))

    def means(records: Sequence[Record]) -> np.ndarray:
        costs = np.array([math.nan if value is None else value for value in episodes_of(records)])[pick]
        with np.errstate(divide="ignore"):
            return np.where(np.isnan(costs), budget, costs).sum(axis=1) / (~np.isnan(costs)).sum(axis=1)

    with np.errstate(invalid="ignore"):
        drawn = np.log(means(theirs)) - np.log(means(ours))
        own, other = expected(episodes_of(ours), budget), expected(episodes_of(theirs), budget)
        ends = np.quantile(drawn, [OUTSIDE / 100, 1 - OUTSIDE / 100], method="nearest")
    middle = other / own if math.isfinite(own) else math.nan if math.isinf(other) else 0.0
    return middle, *(np.exp(ends) if len(ours) >= FEWEST else (math.nan, math.nan))


def pairs(ours: dict[Any, float], theirs: dict[Any, float]) -> Ratio:
    """Return the mean ratio, theirs over ours, of the runs that both have."""
    return geometric([theirs[key] / ours[key] for key in sorted(ours.keys() & theirs.keys())])


def spent(records: Sequence[Record], read: str) -> dict[Any, float]:
    """Return what runs had spent at the target, by (instance, seed)."""
    found = {(record.parameters["instance"], record.seed): cost(record) for record in records}
    return {key: getattr(value, read) for key, value in found.items() if value}


def seconds(records: dict[Any, Record], read: str) -> dict[Any, float]:
    """Return the seconds of runs."""
    return {key: getattr(record, read) or math.nan for key, record in records.items()}


def judge(name: str, ratios: Sequence[Ratio], least: float) -> None:
    """Print in how many cells a ratio is surely above a threshold, surely below it, or neither."""
    middle = [value for value, _, _ in ratios if not math.isnan(value)]
    span = f"{min(middle):.2f} to {max(middle):.2f}" if middle else "unknown"
    above, below = sum(low > least for _, low, _ in ratios), sum(high < least for _, _, high in ratios)
    print(f"{name:36}{span:>16}{f'> {least:g}':>8}{above:>8}{below:>8}{len(ratios) - above - below:>8}")


def print_verdicts(entries: Sequence[Entry], scored: Scored, timed: Timed, memory: Memory) -> None:
    """Print what holds of each statement of the paper, rival by rival."""
    width = len(CONTENDERS)
    places = range(0, len(entries), width)
    print(f"\nverdicts in {len(places)} cells: surely, that is with the interval of 99 %")
    print(f"{'rival / A*-PO':36}{'ratios':>16}{'claim':>8}{'holds':>8}{'fails':>8}{'open':>8}")
    for number in range(1, width):
        name = CONTENDERS[number].name
        both = [(i, i + number) for i in places]
        judge(
            f"{name}: generations",
            [generations(scored[i], scored[j], entries[i].cell.budget) for i, j in both],
            1.0,
        )
        for read, words, least in (("seconds_wall", "wall seconds", 1.3), ("seconds_cpu", "CPU seconds", 1.3)):
            judge(f"{name}: {words}", [pairs(seconds(timed[i], read), seconds(timed[j], read)) for i, j in both], least)
        for read, words in (("steps", "gradient steps"), ("kl", "KL at the target")):
            judge(f"{name}: {words}", [pairs(spent(scored[i], read), spent(scored[j], read)) for i, j in both], 1.0)
    for name, low, high in (("rebel", 0.22, 0.34), ("ppo", 0.02, 0.18), ("grpo", 0.01, 0.02)):
        for cell, peaks in memory:
            saved = 1 - np.mean(peaks["astar-po"]) / np.mean(peaks[name])
            verdict = "more than that" if saved > high else "holds" if saved >= low else "does not hold"
            print(f"memory {low:.0%} to {high:.0%} below {name}, {cell.name}: {saved:+.1%}, {verdict}")


def print_when(entries: Sequence[Entry], scored: Scored) -> None:
    """Print, cell by cell, what A*-PO expects to spend, how much of it in stage 1, and its closest rival."""
    print("\nexpected episodes, and where A*-PO takes fewer generations than the closest rival of those tried")
    print(f"{'':24}{'A*-PO':>8}{'stage 1':>9}{'closest rival':>15}{'':>9}   rival / A*-PO")
    for place, entry in enumerate(entries):
        if entry.contender is not CONTENDERS[0]:
            continue
        budget, rivals = entry.cell.budget, []
        for i in range(place + 1, len(entries)):
            if entries[i].cell is not entry.cell:
                break
            rivals.append((expected(episodes_of(scored[i]), budget), i))
        least, closest = min(rivals)
        ratio = generations(scored[place], scored[closest], budget)
        verdict = "fewer" if ratio[1] > 1 else "more" if ratio[2] < 1 else "open"
        line = f"{entry.cell.name:24}{expected(episodes_of(scored[place]), budget):8.0f}"
        line += f"{entry.cell.prompts * entry.point['reference_samples']:9d}"
        line += f"{entries[closest].contender.name:>15}{least:9.0f}   {shown(ratio, '.2f'):22}{verdict}"
        print(line)


def print_costs(entries: Sequence[Entry], scored: Scored, timed: Timed) -> None:
    """Print what the target costs every algorithm in every cell, and which variant it is."""
    head = f"{'':10}{'reach':>7}{'episodes':>22}{'expected':>10}{'steps':>7}{'KL':>7}{'ms':>6}{'wall / ours':>20}"
    for number, (entry, records, times) in enumerate(zip(entries, scored, timed, strict=True)):
        if number % len(CONTENDERS) == 0:
            print(f"\n{entry.cell.name}\n{head}  variant, of how many")
        ours = timed[number - number % len(CONTENDERS)]
        costs = [found for found in map(cost, records) if found]
        line = f"{entry.contender.name:10}{f'{len(costs)}/{len(records)}':>7}"
        if costs:
            episodes = geometric([found.episodes for found in costs])
            line += f"{shown(episodes, '.0f'):>22}{expected(episodes_of(records), entry.cell.budget):10.0f}"
            line += f"{geometric([found.steps for found in costs])[0]:7.0f}{np.mean([one.kl for one in costs]):7.3f}"
            line += f"{1e3 * geometric(list(seconds(times, 'seconds_wall').values()))[0]:6.0f}"
            own, other = (seconds(found, "seconds_wall") for found in (ours, times))
            line += f"{'' if times is ours else shown(pairs(own, other), '.2f'):>20}"
        print(f"{line:89}  {variant(entry)}, of {entry.tried}{'' if entry.settled else ', not settled'}")


def variant(entry: Entry) -> str:
    """Print the values that the search chose, a star at those on the end of their ladder."""
    ends = entry.at_ends()
    ladders = entry.contender.ladders(entry.cell)
    return " ".join(
        f"{SHORT.get(name, name)} {value}{'*' if name in ends else ''}"
        for name, value in entry.point.items()
        if len(ladders[name].values) > 1
    )


def print_samples(rows: Sequence[tuple[Cell, Sequence[Sequence[Record]]]], samples: Sequence[int]) -> None:
    """Print the expected episodes of A*-PO by N, all else as chosen."""
    print("\nexpected episodes of A*-PO by N, responses for each prompt in stage 1, and who reaches")
    print(f"{'':20}" + "".join(f"{f'N = {n}':>14}" for n in samples))
    for cell, found in rows:
        line = f"{cell.name:20}"
        for records in found:
            costs = episodes_of(records)
            reached = sum(value is not None for value in costs)
            line += f"{f'{expected(costs, cell.budget):.0f} {reached}/{len(costs)}':>14}"
        print(line)


def print_noise(cells: Sequence[Cell], scale: Scale) -> None:
    """Print the noise of a batch, exactly, where a table of logits is trained: the mean over the scoring instances."""
    kinds: list[tuple[str, Callable[[OptimalAdvantage, float], float]]] = [
        ("V*", lambda setting, score: noise_to_signal(setting, score)),
        *((f"N = {n}", lambda s, score, n=n: noise_to_signal(s, score, samples=n)) for n in (64, 32, 8)),
        *((f"K = {k}", lambda s, score, k=k: noise_to_signal(s, score, group=k)) for k in (2, 4, 8)),
    ]
    print("\nvariance of a batch's gradient over its squared mean, exact, on the path from pi_ref to the optimum:")
    print("single responses against V* or V-hat (A*-PO), groups of K against themselves (RLOO; REBEL: 2)")
    print(f"{'':20}{'score':>6}" + "".join(f"{name:>9}" for name, _ in kinds))
    for cell in cells:
        settings = [OptimalAdvantage(**cell.parameters, instance=i) for i in scale.instances]
        for score in (0.0, 0.5, 0.95):
            values = [np.mean([read(setting, score) for setting in settings]) for _, read in kinds]
            print(f"{cell.name:20}{score:6.2f}" + "".join(f"{value:9.2f}" for value in values))


def print_grpo(cells: Sequence[Cell], scale: Scale) -> None:
    """Print how far from the optimum GRPO's own KL term leads: the mean over the scoring instances."""
    weights = (0.1, 0.3, 1.0, 1.5, 2.0)
    print("\nscore of GRPO's fixed point, advantages undivided, by the weight of its KL term in units of beta")
    print(f"{'':20}" + "".join(f"{f'KL x {weight:g}':>9}" for weight in weights))
    for cell in cells:
        settings = [OptimalAdvantage(**cell.parameters, instance=i) for i in scale.instances]
        values = [np.mean([score_of_grpo(one, weight * cell.weight) for one in settings]) for weight in weights]
        print(f"{cell.name:20}" + "".join(f"{value:9.3f}" for value in values))


def print_memory(rows: Memory) -> None:
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
