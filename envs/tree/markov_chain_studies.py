"""Figures of arXiv 2511.07368 on TreeMarkovChain: training on the first task, sampled runs over their exact limits.

All learners are plain stochastic gradient ascent from the base chain's logits, learning rate .05, 1000 updates of one
CoT, as in the paper; reject-easy takes five more CoTs a question. Theory is the population flow of each
(`theorybench.envs.tree.flow`), evaluated exactly like the runs. Tasks are numbered from 1, as in the paper.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.claim import Lab, mean_interval
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.study import Axis, Chart, Column, Exhibit, Quantity, Series, Study, Table, measured
from theorybench.envs.tree.flow import flow_policies
from theorybench.envs.tree.markov_chain import TreeMarkovChain

LEARNING_RATE, UPDATES = 0.05, 1000
#: Points of a curve of training.
POINTS = 40
#: The K of the curves of pass@K, those at which points stand on them, and those that the table counts in roll-outs.
CURVE_KS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
POINT_KS = (1, 2, 4, 8, 16, 32, 64, 128)
TABLE_KS = (1, 8, 128)
#: Questions on which pass@K is counted, over all runs of an algorithm.
QUESTIONS = 6000
#: What the paper prints for REINFORCE, of task 1 and of task 2.
PUBLISHED = ({"easy": 0.943, "hard": 0.034}, {"easy": 0.015, "hard": 0.009})
#: Groups in the order of their colours, the same in all studies.
GROUPS = ("REINFORCE", "KL 0.1", "KL 0.5", "reject-easy", "pass@6 optimum", "reference", "squeezed")


@dataclasses.dataclass(frozen=True)
class Learner:
    """One way to train on the first task.

    Attributes:
        name: its group.
        kl: weight of KL(pi || pi_ref).
        reject_easy: samples that must all fail for a question to count.
        batch: questions of one update.
    """

    name: str
    kl: float = 0.0
    reject_easy: int = 0
    batch: int = 1

    @property
    def episodes(self) -> int:
        """CoTs of one update."""
        return self.batch * (1 + self.reject_easy)

    def runs(self, lab: Lab, seeds: Sequence[int], points: int) -> list[list[tuple[int, Any]]]:
        """Train; give (episodes, policy) along each run."""
        return lab.trace(
            "rlvr",
            seeds,
            UPDATES * self.episodes,
            points=points,
            policy="markov",
            learning_rate=LEARNING_RATE,
            episodes_per_update=self.episodes,
            optimizer="sgd",
            baseline="none",
            start="reference",
            kl=self.kl,
            reject_easy=self.reject_easy,
        )

    def flow(self, setting: TreeMarkovChain, updates: Sequence[int]) -> list[TablePolicy]:
        """Give the policies of the population flow after so many updates."""
        return flow_policies(setting, LEARNING_RATE, updates, kl=self.kl, reject_easy=self.reject_easy)


REINFORCE, REJECT_EASY = Learner("REINFORCE"), Learner("reject-easy", reject_easy=5)
MANY_QUESTIONS = dataclasses.replace(REJECT_EASY, name="reject-easy, 16 questions an update", batch=16)
LEARNERS = (REINFORCE, Learner("KL 0.1", kl=0.1), Learner("KL 0.5", kl=0.5), REJECT_EASY)


def training(setting: TreeMarkovChain, lab: Lab, seed: int, seeds: int) -> Exhibit:
    """Show P(easy), P(hard) and P(invalid) of both tasks while REINFORCE trains on the first."""
    kinds, tasks = ("easy", "hard", "invalid"), range(len(PUBLISHED))
    names = [f"task_{task}/{kind}" for task in tasks for kind in kinds]
    updates, values, theory = _courses(REINFORCE, setting, lab, seed, seeds, names)
    charts, rows = [], []
    for task in tasks:
        series = []
        for kind in kinds:
            place = names.index(f"task_{task}/{kind}")
            series.append(measured(kind, updates, values[:, :, place], style="band"))
            series.append(Series(kind, "predicted", updates, theory[:, place]))
            paper = PUBLISHED[task].get(kind)
            series += [] if paper is None else [Series(kind, "published", [UPDATES], [paper])]
            end = _quantity(100 * values[:, -1, place])
            before = 100 * theory[0, place]
            rows.append((f"task {task + 1}", kind, before, 100 * theory[-1, place], end, paper and 100 * paper))
        title = f"Task {task + 1}: {'trained on' if task == 0 else 'not trained on'}"
        charts.append(Chart(title, Axis("updates"), Axis("probability", range=(-0.03, 1.03)), tuple(series)))
    columns = ("", "CoT, %", "before", "theory", "mean of runs", "paper")
    table = Table(
        f"After {UPDATES} updates",
        tuple(Column(name, ".2f") for name in columns),
        tuple(rows),
        "Percent of CoTs from the task's own start. The paper prints one run.",
    )
    easy = values[:, -1, names.index("task_0/easy")]
    away = abs(PUBLISHED[0]["easy"] - easy.mean()) / easy.std(ddof=1)
    note = (
        f"P(easy) on task 1 scatters by {100 * easy.std(ddof=1):.2f} percentage points from run to run. The paper's is "
        f"{away:.1f} such deviations from the mean. Its training starts from a pre-trained base model by default, ours "
        "from the exact chain."
    )
    return Exhibit(tables=(table,), charts=tuple(charts), notes=(note,))


def pass_at_k(setting: TreeMarkovChain, lab: Lab, seed: int, seeds: int) -> Exhibit:
    """Show pass@K of the first task against K: trained runs over their flows, fixed policies counted in roll-outs."""
    curve, points = ([f"task_0/pass@{k}" for k in ks] for ks in (CURVE_KS, POINT_KS))
    reference = lab.oracle.reference_policy
    fixed = {
        "pass@6 optimum": lab.at(pass_k=6).oracle.optimal_policy,
        "reference": reference,
        "squeezed": lab.oracle.squeezed_policy(),
    }
    limits = {learner.name: learner.flow(setting, [UPDATES])[0] for learner in LEARNERS} | fixed
    series, rows, notes = [], [], []
    for number, learner in enumerate(LEARNERS):
        policies = [run[-1][1] for run in learner.runs(lab, _seeds(seed, seeds), 1)]
        series.append(measured(learner.name, POINT_KS, [_evaluate(lab, policy, points) for policy in policies]))
        counted = _count(lab, policies, seed * len(limits) + number)
        rows += _passes(lab, learner.name, limits[learner.name], counted, policies)
    for number, (name, policy) in enumerate(fixed.items(), len(LEARNERS)):
        counted = _count(lab, [policy], seed * len(limits) + number)
        series.append(measured(name, POINT_KS, counted, style="simulated"))
        rows += _passes(lab, name, policy, counted, [])
    base = _evaluate(lab, reference, curve)
    for name, policy in limits.items():
        line = _evaluate(lab, policy, curve)
        series.append(Series(name, "predicted", CURVE_KS, line))
        below = [k for k, mine, theirs in zip(CURVE_KS, line, base, strict=True) if mine < theirs]
        if below and line[0] > base[0]:
            notes.append(f"{name} is ahead of the reference at K = 1 and behind it from K = {_first(lab, policy)} on.")
    axis = Axis("tries K", "log", ticks=POINT_KS)
    chart = Chart(f"Task 1 after {UPDATES} updates", axis, Axis("pass@K"), tuple(series))
    columns = (Column("policy"), Column("K", "d"), *map(Column, ("theory", "mean of runs", "counted in roll-outs")))
    table = Table(
        "pass@K three ways",
        columns,
        tuple(rows),
        f"Theory: exact, of the flow or the fixed policy. Runs: exact, mean of {seeds} trained policies. Counted: on "
        f"about {QUESTIONS:,} fresh questions, in groups of {max(POINT_KS)} CoTs.",
    )
    notes.append(
        "Runs of reject-easy are off their flow by the next order in the step size; the study of diversity shows that "
        "more questions an update remove it."
    )
    return Exhibit(tables=(table,), charts=(chart,), notes=tuple(notes), groups=GROUPS)


def diversity(setting: TreeMarkovChain, lab: Lab, seed: int, seeds: int) -> Exhibit:
    """Show entropy and retention of the first task over training, at equal updates and at equal queries."""
    names = ["task_0/entropy", "task_0/retention", "task_0/easy", "task_0/pass@1", "task_0/pass@128"]
    titles = {"entropy, nats": "Entropy of the valid CoTs", "hard CoTs over the reference's": "Retention of hard CoTs"}
    series: list[list[Series]] = [[] for _ in titles]
    rows = []
    for learner in LEARNERS:
        updates, values, theory = _courses(learner, setting, lab, seed, seeds, names)
        for place, held in enumerate(series):
            held.append(measured(learner.name, updates, values[:, :, place], style="band"))
            held.append(Series(learner.name, "predicted", updates, theory[:, place]))
        rows.append(_diversity_row(learner, UPDATES, values[:, -1], theory[-1]))
    policies = [run[-1][1] for run in MANY_QUESTIONS.runs(lab, _seeds(seed, seeds), 1)]
    many = np.array([_evaluate(lab, policy, names) for policy in policies])
    rows.append(_diversity_row(MANY_QUESTIONS, UPDATES, many, theory[-1]))
    fewer = UPDATES // REJECT_EASY.episodes
    exact = _evaluate(lab, REJECT_EASY.flow(setting, [fewer])[0], names)
    rows.append(
        _diversity_row(dataclasses.replace(REJECT_EASY, name=f"reject-easy, {fewer} updates"), fewer, None, exact)
    )
    charts = [
        Chart(title, Axis("updates"), Axis(unit), tuple(held))
        for (unit, title), held in zip(titles.items(), series, strict=True)
    ]
    table = Table(
        "At equal updates, and at equal queries",
        (
            Column("task 1"),
            Column("queries", ",d"),
            *map(Column, ("entropy", "of runs", "retention", "of runs ", "P(easy)", "pass@1", "pass@128")),
        ),
        tuple(rows),
        "Columns without a name of runs are theory's. Rejected questions cost queries too, so reject-easy also stands "
        "here with as many queries as the others. At one question an update its runs lie below the flow, by the next "
        "order in the step size; with 16 they do not.",
    )
    return Exhibit(tables=(table,), charts=tuple(charts), groups=GROUPS)


def _diversity_row(learner: Learner, updates: int, runs: np.ndarray | None, theory: np.ndarray) -> tuple[Any, ...]:
    """Give a row: queries, entropy and retention of theory and of the runs (seeds, metrics), theory's other metrics."""
    ends = [None, None] if runs is None else [_quantity(runs[:, place]) for place in range(2)]
    exact = theory.tolist()
    return (learner.name, updates * learner.episodes, exact[0], ends[0], exact[1], ends[1], *exact[2:])


def _seeds(seed: int, seeds: int) -> range:
    return range(seed * seeds, (seed + 1) * seeds)


def _evaluate(lab: Lab, policy: Any, names: Sequence[str]) -> np.ndarray:
    values = lab.oracle.evaluate(policy, names)
    return np.array([values[name] for name in names])


def _courses(
    learner: Learner, setting: TreeMarkovChain, lab: Lab, seed: int, seeds: int, names: Sequence[str]
) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Give metrics over training, the start included.

    Returns:
        Updates (points,), metrics of the runs float64 (seeds, points, names) and of the flow float64 (points, names).
    """
    runs = learner.runs(lab, _seeds(seed, seeds), POINTS)
    start = _evaluate(lab, lab.oracle.reference_policy, names)
    values = np.array([[start, *(_evaluate(lab, policy, names) for _, policy in run)] for run in runs])
    updates = [0, *(episodes // learner.episodes for episodes, _ in runs[0])]
    theory = np.array([_evaluate(lab, policy, names) for policy in learner.flow(setting, updates)])
    return updates, values, theory


def _quantity(samples: np.ndarray) -> Quantity:
    return Quantity(*mean_interval(samples))


def _count(lab: Lab, policies: Sequence[Any], seed: int) -> np.ndarray:
    """Count pass@K in groups of 128 roll-outs that share a question, spread over policies: float64 (groups, POINT_KS).

    Of n tries of which c are rewarded, 1 - C(n - c, K) / C(n, K) is the chance that K drawn of them hold a reward: its
    mean over questions is pass@K without bias.
    """
    size, groups = max(POINT_KS), math.ceil(QUESTIONS / len(policies))
    found = []
    for number, policy in enumerate(policies):
        key = int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
        played = lab.simulate(policy, groups * size, key, group_size=size)
        found.append((played.rewards.reshape(groups, size) > 0).sum(axis=1))
    failed = size - np.concatenate(found)
    tries = np.arange(size)[:, None]
    ratios = np.clip(failed - tries, 0, None) / (size - tries)  # of drawing another failure, (tries, groups)
    return 1.0 - np.cumprod(ratios, axis=0)[np.array(POINT_KS) - 1].T


def _passes(lab: Lab, name: str, limit: Any, counted: np.ndarray, policies: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Give rows of the table: theory, the mean of runs, and what was counted, one for each K."""
    names = [f"task_0/pass@{k}" for k in TABLE_KS]
    exact = _evaluate(lab, limit, names)
    runs = np.array([_evaluate(lab, policy, names) for policy in policies])
    rows = []
    for place, k in enumerate(TABLE_KS):
        mean = _quantity(runs[:, place]) if len(runs) else None
        rows.append(
            (name if place == 0 else "", k, float(exact[place]), mean, _quantity(counted[:, POINT_KS.index(k)]))
        )
    return rows


def _first(lab: Lab, policy: Any) -> int:
    """Give the least K at which pass@K is below the reference's."""
    names = [f"task_0/pass@{k}" for k in range(1, max(CURVE_KS) + 1)]
    gap = _evaluate(lab, policy, names) - _evaluate(lab, lab.oracle.reference_policy, names)
    return int(np.flatnonzero(gap < 0)[0]) + 1


def _study(id: str, part: str, title: str, text: str, run: Any) -> Study:
    return Study(f"tree-{id}", f"arXiv 2511.07368, {part}", title, text, run, parameters={"train_tasks": [0]})


STUDIES: tuple[Study, ...] = (
    _study(
        "training",
        "squeezing and forgetting",
        "Squeezing and forgetting while REINFORCE trains on one task",
        "On the task that is trained, mass moves to the one easy CoT and leaves the hard ones, although they are right "
        "as well. On the other task the same shared rows forget what the base model knew.",
        training,
    ),
    _study(
        "pass-at-k",
        "consistency is not accuracy",
        "pass@K against K: what is gained at one try is lost at many",
        "A squeezed policy begins above the reference and ends below it. Rejecting easy questions ascends pass@6 and "
        "keeps the CoTs that many tries need.",
        pass_at_k,
    ),
    _study(
        "diversity",
        "exploration preserves rare CoTs",
        "Diversity over training: REINFORCE, a KL penalty, rejecting easy questions",
        "Entropy and the mass of hard CoTs fall under REINFORCE, more slowly with a penalty to the reference, and stay "
        "where questions that the model already solves are skipped.",
        diversity,
    ),
)
