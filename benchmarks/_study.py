"""Stages of `astar_po.py`, run through the package's own workers: what has a record in the folder is not run again."""

import dataclasses
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from _contest import CONTENDERS, RLOO, Cell, Contender, Options, Point, Rank, close, cost, rank

from theorybench.leaderboard.matrix import Job, Plan, Watcher, fulfil
from theorybench.leaderboard.records import Record
from theorybench.leaderboard.store import FILE_NAME, load_records
from theorybench.leaderboard.workers import Event


def fractions(doubling: int) -> tuple[float, ...]:
    """Return the shares of the budget at which policies are scored, over nine doublings."""
    return tuple(2.0 ** (-k / doubling) for k in range(doubling * 9, -1, -1))


@dataclasses.dataclass(frozen=True)
class Scale:
    """How much is run.

    Attributes:
        headline: cells of all contenders.
        variations: cells of A*-PO and its closest rivals.
        closest: those rivals.
        samples: values of N that are tried beside the one that was chosen.
        memory: cells in which memory is measured.
        network: sizes of the networks there.
        tuning: instances for the search.
        tuning_seeds: seeds for the search.
        instances: for scoring.
        seeds: for scoring.
        timed: the first of the scoring instances are timed.
        memory_seeds: processes of each algorithm.
        rounds: of the search, at most.
    """

    headline: tuple[Cell, ...]
    variations: tuple[Cell, ...]
    closest: tuple[Contender, ...]
    samples: tuple[int, ...]
    memory: tuple[Cell, ...]
    network: Options
    tuning: tuple[int, ...]
    tuning_seeds: int
    instances: tuple[int, ...]
    seeds: int
    timed: int
    memory_seeds: int
    rounds: int


@dataclasses.dataclass(frozen=True)
class Entry:
    """A contender in a cell with its options.

    Attributes:
        cell: where it trains.
        contender: the algorithm.
        point: of its ladders, the one that was chosen.
        tried: how many were tried.
        settled: whether all neighbours were; not where the rounds of the search ran out before.
    """

    cell: Cell
    contender: Contender
    point: Point
    tried: int = 0
    settled: bool = False

    @property
    def name(self) -> str:
        """Name in the file of choices."""
        return f"{self.cell.name} / {self.contender.name}"

    @property
    def options(self) -> Options:
        """Every option of the algorithm."""
        return self.contender.options(self.cell, self.point)

    def suite(self, instances: Iterable[int], **suite: Any) -> Plan:
        """Plan its runs."""
        return self.cell.suite(instances, self.contender, self.options, **suite)

    def neighbours(self) -> list["Entry"]:
        """Return the entries that differ by one rung of one ladder."""
        return [
            dataclasses.replace(self, point={**self.point, name: value})
            for name, ladder in self.contender.ladders(self.cell).items()
            for value in ladder.neighbours(self.point[name])
        ]

    def at_ends(self) -> list[str]:
        """Return the ladders at whose end it stands."""
        ladders = self.contender.ladders(self.cell)
        return [name for name, value in self.point.items() if ladders[name].at_end(value)]


class Keeper(Watcher):
    """Keeps the records of a sweep, by key, so that no store is read twice."""

    def __init__(self, folder: Path) -> None:
        there = load_records(folder) if (folder / FILE_NAME).exists() else []
        self.records = {record.key: record for record in there}

    def see(self, event: Event, records: Sequence[Record]) -> None:
        """Keep what was saved."""
        self.records.update((record.key, record) for record in records)


class Study:
    """Runs stages and reads their records from a folder."""

    def __init__(self, scale: Scale, folder: Path) -> None:
        self.scale, self.folder = scale, folder
        self._kept: dict[str, Keeper] = {}

    @property
    def entries(self) -> list[Entry]:
        """Every contender in every cell, where the search starts: the headline's first."""
        scale = self.scale
        pairs = [(cell, contender) for cell in scale.headline for contender in CONTENDERS]
        pairs += [(cell, one) for cell in scale.variations for one in (CONTENDERS[0], *scale.closest)]
        return [Entry(cell, one, one.start(cell)) for cell, one in pairs]

    def run(self, stage: str, plans: Sequence[Plan], workers: int = 2, **changes: Any) -> list[list[Record]]:
        """Run what is missing; return the records of each plan."""
        jobs = [dataclasses.replace(job, **changes) for one in plans for job in one.jobs]
        if workers == 1:
            jobs.sort(key=lambda job: job.runs[0].seed)  # the algorithms take turns
        folder = self.folder / stage
        kept = self._kept[stage] = self._kept.get(stage) or Keeper(folder)
        missing = [job for job in _distinct(jobs) if any(run.key not in kept.records for run in job.runs)]
        if missing:
            fulfil(Plan(missing, []), folder, workers, watcher=kept)
        return [[kept.records[run.key] for job in one.jobs for run in job.runs] for one in plans]

    def search(self) -> list[Entry]:
        """Climb, all at once: try the neighbours of the best point so far until it beats them all.

        A point is screened on the first tuning instance with half of the budget; where it is not far behind the best
        one there, it is trained on all of them with the whole budget, and that decides.
        """
        entries = self.entries
        screens: list[dict[str, Rank]] = [{} for _ in entries]
        ranks: list[dict[str, tuple[Rank, Entry]]] = [{} for _ in entries]
        best = list(entries)
        for number in range(1, self.scale.rounds + 1):
            trials = [
                (i, one)
                for i, leader in enumerate(best)
                for one in (leader, *leader.neighbours())
                if _key(one) not in screens[i]
            ]
            if not trials:
                break
            print(f"round {number}: {len(trials)} variants", flush=True)
            for (i, one), found in zip(trials, self._ranks(number, [one for _, one in trials], 1, 2), strict=True):
                screens[i][_key(one)] = found
            kept = [(i, one) for i, one in trials if close(screens[i][_key(one)], screens[i][_key(best[i])])]
            for (i, one), found in zip(kept, self._ranks(number, [one for _, one in kept], None, 1), strict=True):
                ranks[i][_key(one)] = found, one
            best = [min(found.values(), key=lambda pair: pair[0])[1] for found in ranks]
        runs = [record for keeper in self._kept.values() for record in keeper.records.values()]
        print(f"{len(runs)} runs, {sum(run.seconds_cpu or 0.0 for run in runs):.0f} s of training without scoring")
        settled = [
            all(_key(near) in found for near in one.neighbours()) for one, found in zip(best, screens, strict=True)
        ]
        return [
            dataclasses.replace(one, tried=len(found), settled=done)
            for one, found, done in zip(best, screens, settled, strict=True)
        ]

    def _ranks(self, number: int, entries: Sequence[Entry], instances: int | None, part: int) -> list[Rank]:
        """Train on some tuning instances with a part of the budget, in a round of the search; return ranks."""
        chosen, seeds = self.scale.tuning[:instances], list(range(self.scale.tuning_seeds))
        plans = [one.suite(chosen, seeds=seeds, budget=one.cell.budget // part) for one in entries]
        found = self.run(f"search/{number}", plans, fractions=fractions(6))
        return [rank(records, one.cell.budget // part) for one, records in zip(entries, found, strict=True)]

    def score(self, entries: Sequence[Entry]) -> list[list[Record]]:
        """Train on the scoring instances."""
        seeds = list(range(self.scale.seeds))
        plans = [entry.suite(self.scale.instances, seeds=seeds) for entry in entries]
        return self.run("score", plans, fractions=fractions(12))

    def time(self, entries: Sequence[Entry], scored: Sequence[Sequence[Record]]) -> list[dict[Any, Record]]:
        """Train again until the target, on some scoring instances: records by (instance, seed)."""
        plans, places = [], []
        for number, (entry, records) in enumerate(zip(entries, scored, strict=True)):
            for record in records:
                found, instance = cost(record), record.parameters["instance"]
                if found and instance in self.scale.instances[: self.scale.timed]:
                    plans.append(entry.suite([instance], seeds=[record.seed], budget=found.scored_at, lift=False))
                    places.append((number, (instance, record.seed)))
        timed: list[dict[Any, Record]] = [{} for _ in entries]
        for (number, key), (record,) in zip(places, self.run("time", plans, 1, fractions=(1.0,)), strict=True):
            timed[number][key] = record
        return timed

    def memory(self) -> list[tuple[Cell, dict[str, list[float]]]]:
        """Return the peaks in MB of each cell's algorithms, and of a process that trains hardly at all."""
        rows = []
        for cell in self.scale.memory:
            size = self.scale.network if cell.policy == "mlp" else {}
            small = {"policy": "prompt", "episodes_per_update": 2, "group_size": 2}
            variants = {"empty": (RLOO, {**RLOO.options(cell, RLOO.start(cell)), **small}, 2)}
            for one in CONTENDERS:
                variants[one.name] = (one, {**one.options(cell, one.start(cell)), **size}, cell.budget)
            peaks: dict[str, list[float]] = {name: [] for name in variants}
            for seed in range(self.scale.memory_seeds):
                for name, (one, options, budget) in variants.items():
                    planned = cell.suite([10_000], one, options, seeds=[seed], budget=budget, lift=False)
                    ((record,),) = self.run("memory", [planned], 1, fractions=(1.0,))  # a worker of its own
                    peaks[name].append((record.peak_memory_bytes or math.nan) / 2**20)
            rows.append((cell, peaks))
        return rows


def save_choices(path: Path, entries: Sequence[Entry]) -> None:
    """Write what a search found."""
    lines = [
        f"  {json.dumps(one.name)}: {json.dumps({'tried': one.tried, 'settled': one.settled, **one.point})}"
        for one in entries
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def load_choices(path: Path, entries: Sequence[Entry]) -> list[Entry]:
    """Read what a search found.

    Raises:
        SystemExit: it has not seen some entry, or chose what is on no ladder any more.
    """
    known, found = json.loads(path.read_text()) if path.exists() else {}, []
    for entry in entries:
        point = dict(known.get(entry.name, {}))
        tried, settled = point.pop("tried", 0), point.pop("settled", False)
        ladders = entry.contender.ladders(entry.cell)
        if point.keys() != ladders.keys() or any(point[name] not in ladders[name].values for name in point):
            raise SystemExit(f"{path} holds no choice for {entry.name}: run this with --search")
        found.append(dataclasses.replace(entry, point=point, tried=tried, settled=settled))
    return found


def _key(entry: Entry) -> str:
    return json.dumps(entry.point, sort_keys=True)


def _distinct(jobs: Iterable[Job]) -> list[Job]:
    return list({tuple(run.key for run in job.runs): job for job in jobs}.values())
