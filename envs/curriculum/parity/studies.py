"""Figures on sparse parity: the cost of learning directly and by stages, and the staircase of a run by stages."""

import dataclasses

import numpy as np

from theorybench.envs.core.evidence.experiments import metric_of
from theorybench.envs.core.evidence.interval import mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.curriculum.learning import Learner, curves, learning_costs
from theorybench.envs.curriculum.parity.experiments import StageSearch, outcome_gradient

FULL, STAGES, SEARCH = "REINFORCE, full task", "REINFORCE, by stages", "search by stages"
LEAST = "least, full task"
#: Episodes of a run for each of its stages.
SHARE = 1_600


@dataclasses.dataclass(frozen=True)
class Cost:
    """Episodes to learn the task against k."""

    direct: tuple[int, ...] = (1, 2, 3, 4, 5)  # values of k of runs on the full task
    staged: tuple[int, ...] = (1, 2, 3, 4, 6, 8)  # values of k of runs by stages
    drawn: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)  # values of k at which theory is drawn
    limit: int = 60_000  # episodes of a run on the full task

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Train and search."""
        learners = (
            Learner(FULL, "rlvr", self.direct, lambda k: self.limit),
            Learner(STAGES, "curriculum-rlvr", self.staged, lambda k: SHARE * k),
        )
        series, table = learning_costs(lab, "k", learners, run_seeds(seed, seeds), self.limit)
        oracles = [lab.at(k=k).oracle for k in self.drawn]
        found = [StageSearch().measure(lab.at(k=k), seed) for k in self.staged]
        series += [
            Series(LEAST, "predicted", self.drawn, [oracle.direct_queries() for oracle in oracles]),
            Series(SEARCH, "simulated", self.staged, *zip(*found, strict=True)),
            Series(SEARCH, "predicted", self.drawn, [oracle.curriculum_queries() for oracle in oracles]),
        ]
        note = (
            f"Runs on the full task have {self.limit:,} episodes, those by stages {SHARE:,} per stage. If some run "
            "has not learnt the task, the budget is drawn. Least: 4.5 * 4^k, to detect the sign of a row at three "
            "standard errors."
        )
        x, y = Axis("secret bits k"), Axis("episodes", "log")
        chart = Chart("Episodes to 90 % of the score", x, y, tuple(series), note)
        return StudyResult(tables=(table,), charts=(chart,), groups=(FULL, STAGES, LEAST, SEARCH))


@dataclasses.dataclass(frozen=True)
class Staircase:
    """Success at every stage during a run by stages, and the gradient at the uniform policy."""

    points: int = 64  # number of points of the curves

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Train and simulate."""
        oracle, runs, stages = lab.oracle, run_seeds(seed, seeds), range(1, lab.setting.k + 1)
        budget, names = SHARE * lab.setting.k, [f"{j} bit{'s' * (j > 1)}" for j in stages]

        def successes(policy: object, run: int, point: int) -> list[float]:
            values = oracle.evaluate(policy)
            return [values[f"stage_{j}/success"] for j in stages]

        episodes, values = curves(lab, "curriculum-rlvr", runs, budget, self.points, successes)
        series = [measured(name, episodes, values[:, :, j], style="band") for j, name in enumerate(names)]
        chart = Chart("Success by stages", Axis("episodes"), Axis("success", range=(0.45, 1.02)), tuple(series))
        gradients = [outcome_gradient(j) for j in stages]
        rows: list[tuple[Cell, ...]] = [(g.stage, g.predicted(oracle), g.measure(lab, seed)) for g in gradients]
        columns = (Column("stage", "d"), Column("theory", ".4f"), Column("measured", ".6f"))
        note = (
            "At the uniform policy, from score-function estimates: two independent halves of a sample are multiplied."
        )
        norms = Table("Squared norm of the outcome's gradient", columns, tuple(rows), note)
        direct = [2 * metric_of(oracle, policy, "objective") - 1 for policy in lab.train("rlvr", runs, budget)]
        mean, low, high = mean_interval(np.array(direct))
        direct_note = f"On the full task alone the same budget gives a score of {mean:.3f} ({low:.3f} to {high:.3f})."
        return StudyResult(tables=(norms,), charts=(chart,), notes=(direct_note,), groups=tuple(names))


STUDIES: tuple[Study, ...] = (
    Study(
        id="parity-cost",
        source="learning parities from outcomes, directly and with intermediate claims",
        title="Episodes to learn the parity of k secret bits",
        text=(
            "On the full task there is no signal until by chance all positions are close to the right table: the cost "
            "grows about fourfold with each secret bit. By stages each bit adds the same cost."
        ),
        run=Cost(),
        seeds=8,
    ),
    Study(
        id="parity-staircase",
        source="learning parities from outcomes, directly and with intermediate claims",
        title="A run by stages",
        text="Each stage raises the success of one parity above 1/2; longer parities stay at 1/2 until their stage.",
        run=Staircase(),
        seeds=8,
        parameters={"k": 6},
    ),
)
