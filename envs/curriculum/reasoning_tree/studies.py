"""Figures of arXiv 2511.07372 on ReasoningTree: exponential or linear cost, the two verifiers, and curricula."""

import dataclasses
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import metric_of
from theorybench.envs.core.evidence.interval import WIDTH, mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds, seed_of
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.curriculum.learning import Learner, curves, learning_costs
from theorybench.envs.curriculum.reasoning_tree.experiments import (
    ACCURACY,
    ParityTests,
    QueryGrowth,
    Search,
    depth_curriculum,
    hint_curriculum,
    log_statistic,
)
from theorybench.envs.curriculum.reasoning_tree.setting import ReasoningTree

#: Searches, and the picks that are new at each of their stages (0: all).
SEARCHES = {"search, full task": 0, "search, stage by stage": 1}
FULL, STAGED = "REINFORCE, full task", "REINFORCE, stage by stage"
#: Agents of learning curves by name, and what makes their tasks easier.
AGENTS = {"stages": ("curriculum-rlvr", "depth"), "hints": ("curriculum-rlvr", "hint"), "full task": ("rlvr", "")}
_X = Axis("length L of the hidden path", ticks=(1, 2, 4, 6, 8, 10, 12))


@dataclasses.dataclass(frozen=True)
class Lengths:
    """Reward queries of searches and of learners against L, in training and at test time."""

    direct: tuple[int, ...] = (1, 2, 3, 4)  # L that are searched on the full task
    learnt: tuple[int, ...] = (1, 3, 5, 6)  # L that are trained on it
    staged: tuple[int, ...] = (1, 2, 4, 6, 8, 12)  # L that are searched, and trained, stage by stage
    drawn: tuple[int, ...] = tuple(range(1, 13))  # L of theory's lines
    trials: int = 400  # searches at each point
    limit: int = 60_000  # episodes of a run on the full task
    share: int = 2_000  # episodes of a run for each of its stages

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Search and train."""
        learners = (
            Learner(FULL, "rlvr", self.learnt, lambda L: self.limit),
            Learner(STAGED, "adaptive-curriculum", self.staged, lambda L: self.share * (L + 1)),
        )
        note = f"Runs on the full task have {self.limit:,} episodes, others {self.share:,} for each stage."
        costs, table = learning_costs(lab, "L", learners, run_seeds(seed, seeds), self.limit, note)
        y, d = Axis("reward queries", "log", (1, 1e10)), lab.setting.d
        training = Chart(
            "Training: queries until S is known",
            _X,
            y,
            (*self._searches(lab, None, seed), *costs),
            note=f"Search: mean of {self.trials} rejection samplers; theory (d+1)^(L+1) and (L+1)(d+1), d = {d}. "
            f"REINFORCE: episodes to a score of {ACCURACY:g}, if all runs reach it.",
        )
        testing = Chart(
            f"Test time: queries that solve {100 * ACCURACY:g} % of attempts",
            _X,
            y,
            tuple(self._searches(lab, ACCURACY, seed)),
            note="On one prompt, from the base model. Theory: quantiles of one geometric variable, or of L + 1.",
            points="quantile of searches",
        )
        return StudyResult(tables=(table,), charts=(training, testing), groups=(*SEARCHES, FULL, STAGED))

    def _searches(self, lab: Lab, quantile: float | None, seed: int) -> list[Series]:
        """Return means of the queries of searches, or a quantile, against L, with theory's lines."""
        series, law = [], QueryGrowth("length", quantile).law
        for number, (name, new) in enumerate(SEARCHES.items()):
            found, places = [], self.staged if new else self.direct
            for L in places:
                there = lab.at(L=L)
                search = Search(there, self.trials, None if quantile is None else L)
                tasks = depth_curriculum(there.setting, new or L + 1)
                spent = search.queries(tasks, seed_of(seed, number, L, quantile is None))
                found.append(log_statistic(spent, quantile))
            log, error, _ = np.array(found).T
            ends = (np.exp(log + side * WIDTH * error) for side in (-1, 1))
            series.append(Series(name, "simulated", places, np.exp(log), *ends))
            line = [law(lab.setting.d, L, new or L + 1) for L in self.drawn]
            series.append(Series(name, "predicted", self.drawn, line))
        return series


@dataclasses.dataclass(frozen=True)
class Verifiers:
    """Chains that the parity verifier accepts, and what agents learn from it and from the exact one."""

    confirmations: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 10)  # values of m for the parity verifier
    size: int = 3  # d and L of the small tree all of whose chains are tested
    blocks: int = 400  # how often each chain is tested
    budget: int = 12_000  # episodes of a run
    points: int = 24  # number of points of its curve
    responses: int = 4_096  # number of responses from which a policy is examined
    delta: float = 0.1  # probability that a search with the parity verifier ends at a wrong chain
    costed: tuple[int, ...] = (1, 2, 3, 4, 6, 8)  # values of L in its table

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Test chains and train."""
        charts, rows = self._tests(lab, seed), []
        for verifier in ("exact", "parity"):
            chart, own = self._learning(lab.at(verifier=verifier), seed, seeds)
            charts.append(chart)
            rows += own
        heads = ("expected reward", "chains of L picks", "right ones among them")
        learnt = Table(
            "What the reward certifies",
            (Column("verifier"), Column("learner"), *map(Column, heads)),
            tuple(rows),
            f"Shares of {self.responses:,} responses of each run, after {self.budget:,} episodes. Right: S with the "
            "exact verifier, some order of S with parity. Under parity the reward is the share of chains of L picks "
            "times 1/2, and as much again where they are right. Where no run has such chains the last column is 0.",
        )
        return StudyResult(
            tables=(learnt, self._search_costs(lab)),
            charts=tuple(charts),
            groups=("wrong chain", "right chain", "stages", "full task", "any chain of L picks"),
        )

    def _tests(self, lab: Lab, seed: int) -> list[Chart]:
        """Draw the results of testing chains on fresh prompts."""
        wrong, m = "wrong chain", self.confirmations
        small = lab.at(d=self.size, L=self.size, verifier="parity")
        series: list[list[Series]] = []
        for survival in (True, False):
            found = [ParityTests(n, survival, self.blocks).measure(small, seed_of(seed, n, survival)) for n in m]
            theory = [ParityTests(n, survival).predicted(lab.oracle) for n in m]
            series.append(
                [Series(wrong, "simulated", m, *zip(*found, strict=True)), Series(wrong, "predicted", m, theory)]
            )
        series[1].append(Series("right chain", "predicted", m, m))
        x = Axis("prompts m that a chain has to pass", ticks=m)
        points = f"mean over all wrong chains of d = L = {self.size}, {self.blocks} times each"
        y, note = Axis("share", "log"), "Theory: 2^-m. The exact verifier passes none."
        passing = Chart("Share of wrong chains that pass", x, y, tuple(series[0]), note, points)
        y, note = Axis("queries", range=(0, 10.5)), "Theory: 2 - 2^(1-m) for a wrong chain, and m for a right one."
        return [passing, Chart("Queries to test a chain until it fails", x, y, tuple(series[1]), note, points)]

    def _learning(self, lab: Lab, seed: int, seeds: int) -> tuple[Chart, list[tuple[Cell, ...]]]:
        """Draw the expected rewards of agents with a verifier, and return what they have learnt."""
        runs, series, verifier = run_seeds(seed, seeds), [], lab.setting.verifier
        rows: list[tuple[Cell, ...]] = []
        for name in ("stages", "full task"):
            last: dict[int, Any] = {}

            def reward(policy: Any, run: int, point: int, last: dict[int, Any] = last) -> float:
                last[run] = policy
                return metric_of(lab.oracle, policy, "objective")

            spent, rewards = curves(lab, AGENTS[name][0], runs, self.budget, self.points, reward)
            series.append(measured(name, spent, rewards, style="band"))
            looks = [_look(lab, last[i], self.responses, seed_of(seed, run)) for i, run in enumerate(runs)]
            rows.append((verifier, name, *map(mean_interval, (rewards[:, -1], *np.array(looks).T))))
        if verifier == "parity":
            series.append(Series("any chain of L picks", "predicted", (spent[0], spent[-1]), (0.5, 0.5)))
        x, y = Axis("episodes"), Axis("expected reward", range=(-0.02, 1.05))
        return Chart(f"REINFORCE under the {verifier} verifier, L = {lab.setting.L}", x, y, tuple(series)), rows

    def _search_costs(self, lab: Lab) -> Table:
        """Return theory's costs of searches with either verifier."""
        rows: list[tuple[Cell, ...]] = []
        for L in self.costed:
            exact, parity = (lab.at(L=L, verifier=verifier).oracle for verifier in ("exact", "parity"))
            confirmed = parity.confirmations(self.delta), parity.parity_queries(self.delta)
            rows.append((L, exact.direct_queries(), *confirmed, exact.curriculum_queries()))
        heads = ("exact, full task", "parity: m", "parity, full task", "exact, stage by stage")
        note = (
            f"Means, d = {lab.setting.d}. With parity random chains of L picks are tested on m fresh prompts, so that "
            f"no wrong one passes with probability {1 - self.delta:g}; any of the L! orders of S will do."
        )
        columns = (Column("L", "d"), *(Column(head, ",.0f") for head in heads))
        return Table("Queries of searches for S", columns, tuple(rows), note)


def _look(lab: Lab, policy: object, responses: int, key: int) -> tuple[float, float]:
    """Return the share of a policy's responses that have L picks and EOS, and the share of S among those."""
    setting: ReasoningTree = lab.setting
    path = setting.tables.path
    played = lab.simulate(policy, responses, key)
    whole = (played.lengths == setting.num_stages) & (played.actions[:, -1] == setting.d)
    picks = played.actions[whole, :-1]
    if setting.verifier == "exact":
        right = (picks == path[:-1]).all(axis=1)
    else:
        parities = np.eye(setting.d, dtype=np.int64)[picks].sum(axis=1) % 2
        right = (parities == np.bincount(path[:-1], minlength=setting.d) % 2).all(axis=1)
    return float(whole.mean()), float(right.mean()) if len(right) else 0.0


@dataclasses.dataclass(frozen=True)
class Curricula:
    """What stages and hints cost, what larger steps do, and how REINFORCE learns from both."""

    searched: tuple[int, ...] = (1, 2, 4, 6, 8, 12)  # L of searches
    drawn: tuple[int, ...] = tuple(range(1, 13))  # L of theory's lines
    trials: int = 400  # searches at each point
    budget: int = 12_000  # episodes of a run
    points: int = 24  # of its curve

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Search and train."""
        groups = tuple(AGENTS)
        return StudyResult(charts=(*self._searches(lab, seed), self._learning(lab, seed, seeds)), groups=groups)

    def _searches(self, lab: Lab, seed: int) -> tuple[Chart, Chart]:
        setting, points = lab.setting, f"mean of {self.trials} searches"
        by_length, steps = [], tuple(range(1, setting.num_stages + 1))
        theory = [lab.at(L=L).oracle.curriculum_queries() for L in self.drawn]
        for number, (name, tasks) in enumerate((("stages", depth_curriculum), ("hints", hint_curriculum))):
            labs = {L: lab.at(L=L) for L in self.searched}
            found = [
                Search(there, self.trials).queries(tasks(there.setting, 1), seed_of(seed, number, L))
                for L, there in labs.items()
            ]
            by_length.append(measured(name, self.searched, np.transpose(found), style="simulated"))
            by_length.append(Series(name, "predicted", self.drawn, theory))
        search, counted = Search(lab, self.trials), steps[:-1]
        found = [search.queries(depth_curriculum(setting, p), seed_of(seed, 2, p)) for p in counted]
        by_step = (
            measured("stages", counted, np.transpose(found), style="simulated"),
            Series("stages", "predicted", steps, [lab.oracle.curriculum_queries(p) for p in steps]),
        )
        title, y = "Search: ever longer stages, ever shorter hints", Axis("reward queries", range=(0, 85))
        note = f"Theory: (L+1)(d+1) for both, d = {setting.d}: one line lies on the other."
        first = Chart(title, _X, y, tuple(by_length), note, points)
        title, x = f"Search: new picks at each stage, L = {setting.L}", Axis("picks p", ticks=steps)
        note = f"Theory: (d+1)^p for each stage of p picks. p = {setting.num_stages} is the full task at once."
        return first, Chart(title, x, Axis("reward queries", "log"), by_step, note, points)

    def _learning(self, lab: Lab, seed: int, seeds: int) -> Chart:
        lines = []
        for name, (agent, curriculum) in AGENTS.items():
            options = {"curriculum": curriculum} if curriculum else {}
            runs = run_seeds(seed, seeds)
            spent, scores = curves(
                lab, agent, runs, self.budget, self.points, lambda policy, *_: lab.oracle.score(policy), options
            )
            lines.append(measured(name, spent, scores, style="band"))
        x, y = Axis("episodes"), Axis("score on the full task", range=(-0.05, 1.05))
        note = (
            "Each stage has an equal share of the episodes: the score jumps on the last. Stages and hints lie on each "
            "other; on the full task few runs ever meet a reward."
        )
        return Chart(f"REINFORCE with stages and with hints, L = {lab.setting.L}", x, y, tuple(lines), note)


_SOURCE = "arXiv 2511.07372"
STUDIES: tuple[Study, ...] = (
    Study(
        id="reasoning-tree-length",
        source=f"{_SOURCE}, with and without a curriculum, in training and at test time",
        title="Exponential or linear in the length of the chain",
        text=(
            "On the full task every further pick multiplies the reward queries by d + 1; stage by stage it adds d + 1. "
            "The same holds for a search at test time, which trains nothing. REINFORCE needs more at each stage, but "
            "no more for the later ones; on the full task it waits for its first rewards as long as the search."
        ),
        run=Lengths(),
        seeds=5,
        parameters={"d": 4, "L": 4},
    ),
    Study(
        id="reasoning-tree-verifiers",
        source=f"{_SOURCE}, parity",
        title="A verifier that sees one bit",
        text=(
            "Parity pays half of what is wrong, so that it takes m prompts to be sure of a chain, though hardly more "
            "than two to be rid of one. Agents learn quickly to give chains of the right length, which pays 1/2, and "
            "on the full task no more: their reward says nothing about S."
        ),
        run=Verifiers(),
        seeds=8,
    ),
    Study(
        id="reasoning-tree-ladders",
        source=f"{_SOURCE}, depth-increasing and hint-decreasing curricula, and the size of their steps",
        title="Which curriculum, and in how large steps",
        text=(
            "Stages that grow and hints that shrink cost the same. What counts is how much is new at a stage: each "
            "pick more multiplies its cost, and one pick at a time is cheapest."
        ),
        run=Curricula(),
        seeds=8,
        parameters={"d": 4, "L": 5},
    ),
)
