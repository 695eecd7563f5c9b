"""Algorithms, cells and stages of `astar_po.py` and `language.py`: what is run by the workers, and what it cost."""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from theorybench.agents.policies.sizes import SIZES
from theorybench.envs.core.evidence.interval import mean_interval
from theorybench.leaderboard.records.record import Record
from theorybench.leaderboard.records.store import load_records
from theorybench.leaderboard.running.config import AgentEntry, EnvironmentEntry, Suite
from theorybench.leaderboard.running.matrix import Job, Plan, fulfil, plan

TARGET = 0.95
BATCH = 64
#: Runs that an interval needs.
FEWEST = 3
#: Grids of step sizes.
SMALL, MIDDLE, LARGE = (0.01, 0.03, 0.1), (0.03, 0.1, 0.3), (0.1, 0.3, 1.0)
FRACTIONS = tuple(2.0 ** (-k / 12) for k in range(12 * 9, -1, -1))
Options = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Contender:
    """An algorithm: the options that are the weight of the KL term, and the one that is tuned beside the step size."""

    name: str
    weights: tuple[str, ...]
    knob: str
    values: tuple[Any, ...]
    fixed: Options = dataclasses.field(default_factory=dict)

    def variants(self, cell: "Cell") -> list[Options]:
        """List the options of all variants in a cell."""
        weights = dict.fromkeys(self.weights, cell.weight)
        common = {**self.fixed, **weights, "policy": cell.policy, "episodes_per_update": BATCH}
        return [{**common, "learning_rate": s, self.knob: value} for value in self.values for s in cell.step_sizes]


@dataclasses.dataclass(frozen=True)
class External(Contender):
    """A trainer of TRL: it has no policy class, and its step sizes are those of weights."""

    def variants(self, cell: "Cell") -> list[Options]:
        """List the options of all variants in a cell."""
        width = SIZES["tiny"][0]  # our parameters are weights times this
        own = dataclasses.replace(cell, step_sizes=tuple(size / width for size in cell.step_sizes))
        variants = super().variants(own)
        return [{"shape" if name == "policy" else name: value for name, value in one.items()} for one in variants]


def astar_po(*samples: int) -> Contender:
    """Make A*-PO with numbers of samples in its first stage."""
    return Contender("astar-po", ("beta_1", "beta_2"), "reference_samples", samples, {"first_stage": 0.9})


RIVALS = (
    Contender("ppo", ("kl",), "epochs", (1, 4)),
    Contender("grpo", ("beta",), "scale_rewards", ("group", "none")),
    Contender("rloo", ("beta",), "group_size", (4, 8)),
    Contender("rebel", ("beta",), "eta", (1.0, 4.0)),
)
CONTENDERS = (astar_po(2, 8), *RIVALS)


@dataclasses.dataclass(frozen=True)
class Cell:
    """A setting without its instance, the weight of the KL term, a policy class, a budget and a grid of step sizes."""

    name: str
    env_id: str
    parameters: Options
    weight: float
    policy: str
    budget: int
    step_sizes: tuple[float, ...]

    def suite(self, instances: Iterable[int], variants: Sequence[tuple[str, Options]], **options: Any) -> Plan:
        """Plan runs of variants, (agent, options), on instances of the cell."""
        environments = [
            EnvironmentEntry(id=self.env_id, parameters={**self.parameters, "instance": i}) for i in instances
        ]
        agents = [AgentEntry(agent=agent, hyperparameters=values) for agent, values in variants]
        return plan(
            Suite(name="astar-po", environments=environments, agents=agents, **{"budget": self.budget, **options})
        )


def advantage(name: str, beta: float, policy: str = "prompt", budget: int = 2**14, **parameters: Any) -> Cell:
    """Make a cell of OptimalAdvantage; where beta is large, little is to be won, and noise calls for small steps."""
    steps = LARGE if beta < 0.15 else MIDDLE if beta < 0.3 else SMALL
    return Cell(name, "TheoryBench/OptimalAdvantage-v0", {"beta": beta, **parameters}, beta, policy, budget, steps)


def tree(weight: float, policy: str, size: int, branches: int) -> Cell:
    """Make a cell of the tree: its objective, pass@1, has no KL term, so that the weight is the algorithms' own."""
    shape = {"L": size, "M0": branches, "M": branches, "num_tasks": branches, "num_questions": 64}
    name, steps = f"tree of L = {size}, {policy}", MIDDLE if policy == "markov" else LARGE
    return Cell(name, "TheoryBench/TreeMarkovChain-v0", shape, weight, policy, 2**13, steps)


@dataclasses.dataclass(frozen=True)
class Scale:
    """How much is run."""

    headline: tuple[Cell, ...]
    variations: tuple[Cell, ...]
    samples: tuple[int, ...]
    memory: tuple[Cell, ...]
    network: Options
    tuning_seeds: int
    instances: tuple[int, ...]
    seeds: int
    memory_seeds: int


# Costs of one run.


@dataclasses.dataclass(frozen=True)
class Cost:
    """What a run had spent when its score first was the target: interpolated, and at the scored policy after."""

    episodes: float
    kl: float
    steps: float
    scored_at: int


def cost(record: Record) -> Cost | None:
    """Return the cost of the target; None where it was not reached."""
    before = None
    for point in record.curve:
        if point.metrics["score"] >= TARGET:
            share, last = 1.0, before or point
            if before is not None:
                share = (TARGET - before.metrics["score"]) / (point.metrics["score"] - before.metrics["score"])
            spent = math.exp((1 - share) * math.log(last.episodes) + share * math.log(point.episodes))
            kl = (1 - share) * last.metrics["kl"] + share * point.metrics["kl"]
            return Cost(spent, kl, gradient_steps(record, spent), point.episodes)
        before = point
    return None


def gradient_steps(record: Record, episodes: float) -> float:
    """Return the steps of the policy within some episodes."""
    options = record.hyperparameters
    prompts = record.parameters.get("num_questions") or record.parameters.get("num_prompts", 0)
    first_stage = prompts * options.get("reference_samples", 0)
    return (episodes - first_stage) / BATCH * options.get("epochs", options.get("num_iterations", 1))


def rank(records: Sequence[Record]) -> tuple[int, float]:
    """Order variants: who reaches the target in most runs, in the fewest episodes; of those who never do, the best."""
    reached = [math.log(found.episodes) for found in map(cost, records) if found]
    if reached:
        return -len(reached), float(np.mean(reached))
    return 0, -float(np.mean([max(point.metrics["score"] for point in record.curve) for record in records]))


def geometric(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean with its interval, whose ends are NaN for fewer values than `FEWEST`."""
    logs = np.log(values)
    if len(logs) < FEWEST:
        return (float(np.exp(logs.mean())), math.nan, math.nan) if len(logs) else (math.nan,) * 3
    middle, low, high = map(math.exp, mean_interval(logs))
    return middle, low, high


# Stages.


Winner = tuple[Cell, Contender, Options]


class Study:
    """Runs stages and reads their records from a folder."""

    def __init__(self, scale: Scale, folder: Path) -> None:
        self.scale, self.folder = scale, folder

    def run(self, stage: str, plans: Sequence[Plan], workers: int = 2, **changes: Any) -> list[list[Record]]:
        """Run what is missing; return the records of each plan."""
        jobs = [dataclasses.replace(job, **changes) for one in plans for job in one.jobs]
        if workers == 1:
            jobs.sort(key=lambda job: job.runs[0].seed)  # the algorithms take turns
        folder = self.folder / stage
        fulfil(Plan(_distinct(jobs), []), folder, workers)
        records = {record.key: record for record in load_records(folder)}
        return [[records[run.key] for job in one.jobs for run in job.runs] for one in plans]

    def tune(self, pairs: Sequence[tuple[Cell, Contender]]) -> list[Winner]:
        """Return the best variant of each contender in each cell, on tuning instance 0."""
        every = [(cell, contender, options) for cell, contender in pairs for options in contender.variants(cell)]
        seeds = list(range(self.scale.tuning_seeds))
        plans = [cell.suite([0], [(contender.name, options)], seeds=seeds) for cell, contender, options in every]
        found = self.run("search", plans, fractions=FRACTIONS)
        best: dict[int, Winner] = {}
        ranks: dict[int, tuple[int, float]] = {}
        numbers = {(id(cell), id(contender)): i for i, (cell, contender) in enumerate(pairs)}
        for one, records in zip(every, found, strict=True):
            number = numbers[id(one[0]), id(one[1])]
            if number not in best or rank(records) < ranks[number]:
                best[number], ranks[number] = one, rank(records)
        return [best[i] for i in range(len(pairs))]

    def score(self, winners: Sequence[Winner]) -> list[list[Record]]:
        """Train the winners on the scoring instances."""
        seeds = list(range(self.scale.seeds))
        plans = [
            cell.suite(self.scale.instances, [(contender.name, options)], seeds=seeds)
            for cell, contender, options in winners
        ]
        return self.run("search", plans, fractions=FRACTIONS)

    def time(self, winners: Sequence[Winner], scored: Sequence[Sequence[Record]]) -> list[dict[int, Record]]:
        """Train again until the target, on the first scoring instance: records by seed."""
        instance = self.scale.instances[0]
        plans, places = [], []
        for number, ((cell, contender, options), records) in enumerate(zip(winners, scored, strict=True)):
            for record in records:
                found = cost(record)
                if found and record.parameters["instance"] == instance:
                    variant = [(contender.name, options)]
                    plans.append(
                        cell.suite([instance], variant, seeds=[record.seed], budget=found.scored_at, batch_seeds=False)
                    )
                    places.append((number, record.seed))
        timed: list[dict[int, Record]] = [{} for _ in winners]
        for (number, seed), (record,) in zip(places, self.run("time", plans, 1, fractions=(1.0,)), strict=True):
            timed[number][seed] = record
        return timed

    def memory(self) -> list[tuple[Cell, dict[str, list[float]]]]:
        """Return the peaks in MB of each cell's algorithms, and of a process that trains hardly at all."""
        rows = []
        for cell in self.scale.memory:
            options = {"policy": cell.policy, **(self.scale.network if cell.policy == "mlp" else {})}
            variants: dict[str, tuple[str, Options, int]] = {
                "empty": ("rloo", {"policy": "prompt", "episodes_per_update": 2, "group_size": 2}, 2)
            }
            for one in CONTENDERS:
                variants[one.name] = (one.name, {**options, "episodes_per_update": BATCH, **one.fixed}, cell.budget)
            peaks: dict[str, list[float]] = {name: [] for name in variants}
            for seed in range(self.scale.memory_seeds):
                for name, (agent, values, budget) in variants.items():
                    peaks[name].append(self.peak(cell, agent, values, seed, budget))
            rows.append((cell, peaks))
        return rows

    def peak(self, cell: Cell, agent: str, options: Options, seed: int, budget: int) -> float:
        """Return the peak memory in MB of a process of its own that trains on scoring instance 10,000."""
        planned = cell.suite([10_000], [(agent, options)], seeds=[seed], budget=budget, batch_seeds=False)
        ((record,),) = self.run("memory", [planned], 1, fractions=(1.0,))
        return (record.peak_memory_bytes or math.nan) / 2**20


def _distinct(jobs: Iterable[Job]) -> list[Job]:
    return list({tuple(run.key for run in job.runs): job for job in jobs}.values())
