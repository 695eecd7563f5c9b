"""Figures on relative budgets: the gain of learners, the gain of one step, and the samples that a step needs."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.curriculum.relative_budget.experiments import (
    RATE,
    TOGETHER,
    base_law,
    base_rewards,
    one_step,
    plain_sgd,
    sample_sizes,
)
from theorybench.envs.curriculum.relative_budget.law import TokenLaw
from theorybench.envs.curriculum.relative_budget.oracle import RelativeBudgetOracle

#: Relative budgets at which agents are trained, and those of theory's lines: multiples of .05, where K / p = 20 makes
#: whole horizons of them.
BUDGETS = (0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0)
LINE = tuple(sorted({*BUDGETS, 0.25, 0.35, 0.4, 0.45, 0.6, 0.8, 0.9, 1.2, 1.7, 2.5, 3.0, 3.5, 5.0, 6.0, 7.0}))
#: Episodes of a run, and of each of its updates.
EPISODES, BATCH = 3_200, 64
#: Learning rates of REINFORCE and of GRPO; temperature of A*-PO.
RATES, SCALED, BETA = (1.0, 4.0), (0.1, 0.4), 0.1
#: Episodes of one step.
STEP_EPISODES = 2048
#: Simulated rewards that the tail must hold for a point to be drawn.
COUNTED = 100
_XI = Axis("relative budget xi, deficient to ample", "log", ticks=(0.2, 0.5, 1, 2, 4, 8))


#: Name, registered name, learning rate and further hyper-parameters of a learner, and the policy that theory expects of
#: it after `EPISODES`.
Learner = tuple[str, str, float, dict[str, Any], Callable[[RelativeBudgetOracle], Any]]


def gradient_learner(title: str, agent: str, rate: float) -> Learner:
    """Return REINFORCE or GRPO at a learning rate."""
    updates, standardised = EPISODES // BATCH, agent == "grpo"
    return f"{title}, rate {rate:g}", agent, rate, {}, lambda o: o.ascent(rate, updates, standardised=standardised)


#: A*-PO comes last.
LEARNERS: tuple[Learner, ...] = (
    *(gradient_learner("RLVR", "rlvr", rate) for rate in RATES),
    *(gradient_learner("GRPO", "grpo", rate) for rate in SCALED),
    (
        f"A*-PO, beta {BETA:g}",
        "astar-po",
        1 / BETA,
        {"beta_1": BETA, "beta_2": BETA, "reference_samples": 512},
        lambda oracle: oracle.regularised_table(BETA),
    ),
)


@dataclasses.dataclass(frozen=True)
class Regimes:
    """Score of learners after the same number of episodes against the relative budget, and theory's line for each."""

    budgets: tuple[float, ...] = BUDGETS  # where agents are trained
    line: tuple[float, ...] = LINE  # where theory is drawn; includes those of agents

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Train."""
        runs, labs = run_seeds(seed, seeds), {xi: lab.at(xi=xi) for xi in self.line}
        series: dict[str, list[Series]] = {}
        rows: list[tuple[Cell, ...]] = []
        for name, agent, rate, more, end in LEARNERS:
            scores = []
            for own in (labs[xi] for xi in self.budgets):
                policies = own.train(agent, runs, EPISODES, **plain_sgd(own.setting, agent, rate, BATCH), **more)
                scores.append([own.oracle.score(policy) for policy in policies])
            line = [labs[xi].oracle.score(end(labs[xi].oracle)) for xi in self.line]
            series[name] = [
                measured(name, self.budgets, np.transpose(scores)),
                Series(name, "predicted", self.line, line),
            ]
            means = np.mean(scores, axis=1)
            best = int(np.argmax(means))
            places = (self.budgets[best], float(means[best]), self.line[int(np.argmax(line))], max(line))
            rows.append((name, *places, float(means[-1]), line[self.line.index(self.budgets[-1])]))
        same, axis = f"after {EPISODES:,} episodes, K = {lab.setting.K}", Axis("score", range=(-0.05, 1.05))
        *rates, regularised = series
        three = (rates[0], rates[len(RATES)], regularised)
        charts = (
            Chart(
                f"Three regimes: score {same}",
                _XI,
                axis,
                tuple(drawn for name in three for drawn in series[name]),
                note=(
                    "Lines: the expected gradient of a table on sub-steps, followed for as many updates, for RLVR and "
                    "GRPO (in groups so large that their deviation is sd(R)); the optimum of J - beta KL among such "
                    f"tables for A*-PO. GRPO's loss is summed over tokens. In deficient budgets its groups of {BATCH} "
                    "contain few solutions or none, and A*-PO has not converged."
                ),
            ),
            Chart(
                f"The learning rate: score {same}",
                _XI,
                axis,
                tuple(drawn for name in rates for drawn in series[name]),
                note="A higher rate reaches further into both ends; at neither rate does GRPO fall in ample budgets.",
            ),
        )
        found = (Column("learner"), Column("best xi", "g"), Column("score"))
        theory = (Column("theory's best xi", "g"), Column("theory's score"))
        last = (Column(f"score at {self.budgets[-1]:g}"), Column("theory's"))
        table = Table("Where learners do best", (*found, *theory, *last), tuple(rows))
        return StudyResult(charts=charts, tables=(table,), groups=(*three, *rates))


@dataclasses.dataclass(frozen=True)
class Steps:
    """What one gradient step gains: at a fixed KL divergence, and as a score for each unit of learning rate."""

    budgets: tuple[float, ...] = (0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.0, 8.0)  # where a step is taken

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Take the steps."""
        line = sorted({*self.budgets, *(xi for xi in LINE if xi >= min(self.budgets))})
        labs, names = {xi: lab.at(xi=xi) for xi in line}, {"rlvr": "RLVR", "grpo": "GRPO"}
        fixed: dict[str, list[np.ndarray]] = {agent: [] for agent in names}
        scores: dict[str, list[np.ndarray]] = {agent: [] for agent in names}
        for agent in names:
            for xi in self.budgets:
                oracle = labs[xi].oracle
                rate = RATE * (math.sqrt(oracle.law.variance) if agent == "grpo" else 1.0)
                gains, divergences = one_step(labs[xi], agent, seed, STEP_EPISODES, rate, seeds)
                fixed[agent].append(gains / np.sqrt(2 * divergences))
                scores[agent].append(gains / rate / (oracle.optimal_value - oracle.reference_value))
        oracles = [labs[xi].oracle for xi in line]
        deviations = [math.sqrt(oracle.law.variance) for oracle in oracles]
        gaps = [oracle.optimal_value - oracle.reference_value for oracle in oracles]
        norms = np.array([oracle.small_step.squared_norm for oracle in oracles])
        gain = Chart(
            "Gain of one step at the same small KL divergence kappa",
            _XI,
            Axis("gain / sqrt(2 kappa)"),
            (
                Series("any policy: sd(R)", "predicted", line, deviations),
                *(measured(names[agent], self.budgets, np.transpose(values)) for agent, values in fixed.items()),
                *(Series(name, "predicted", line, [o.small_step.gain for o in oracles]) for name in names.values()),
            ),
            note=(
                "The line of RLVR and GRPO is the same: dividing by a deviation changes how far a step goes, not "
                f"where. The noise of {STEP_EPISODES:,} episodes adds to the divergence, so that points lie a little "
                "below."
            ),
        )
        score = Chart(
            "Score that one step gains, for each unit of the learning rate",
            _XI,
            Axis("score / learning rate"),
            (
                *(measured(names[agent], self.budgets, np.transpose(values)) for agent, values in scores.items()),
                Series("RLVR", "predicted", line, norms / gaps),
                Series("GRPO", "predicted", line, norms / np.multiply(deviations, gaps)),
            ),
            note="RLVR falls as 1/xi in ample budgets; GRPO, which divides by the group's deviation, does not.",
        )
        return StudyResult(charts=(gain, score), groups=("RLVR", "GRPO"))


@dataclasses.dataclass(frozen=True)
class Samples:
    """How many samples a step needs against the relative budget, and where they are fewest."""

    lengths: tuple[int, ...] = (1, 2, 4, 8)  # numbers of sub-steps
    budgets: tuple[float, ...] = BUDGETS  # where samples are drawn
    parts: int = 2  # simulations of 4,096 episodes in a block

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Simulate the base model."""
        series: list[Series] = []
        rows: list[tuple[Cell, ...]] = []
        episodes, line = self.parts * TOGETHER, sorted({*LINE, *self.budgets})
        grid = np.round(np.arange(0.05, 8.0001, 0.05), 2)
        for number in self.lengths:
            name, own = f"K = {number}", lab.at(K=number)
            laws = {xi: base_law(own.setting, xi) for xi in line}
            known = [xi for xi in line if math.isfinite(laws[xi].sample_size)]
            series.append(Series(name, "predicted", known, [laws[xi].sample_size for xi in known]))
            counted = [xi for xi in self.budgets if laws[xi].tail * episodes >= COUNTED]
            found = [sample_sizes(base_rewards(own.at(xi=xi), seeds, self.parts, seed)) for xi in counted]
            series.append(measured(name, counted, np.transpose(found), style="simulated"))
            exact = [TokenLaw.negative_binomial(number, 0.02, max(number, round(xi * number / 0.02))) for xi in grid]
            sizes = np.array([law.sample_size for law in exact])
            peak, least = (float(grid[place]) for place in (np.argmax([x.variance for x in exact]), np.argmin(sizes)))
            ratios = [float(sizes[np.searchsorted(grid, xi)] / sizes.min()) for xi in (0.3, 6.0)]
            rows.append((number, peak, least, float(sizes.min()), *ratios))
        chart = Chart(
            f"Samples of one step, p = {lab.setting.p:g}",
            _XI,
            Axis("n(xi)", "log"),
            tuple(series),
            note=(
                "n = 1 / (sqrt(kappa) sd(R) P[R >= E R + sqrt(kappa) sd(R)]), kappa = 1/4. Points: by moments and "
                f"tails of {episodes:,} simulated responses each, where these hold {COUNTED} of the tail."
            ),
            points="mean of samples",
        )
        heads = (Column("K", "d"), Column("Var[R] peaks at", ".2f"), Column("n is least at", ".2f"))
        sizes_there = (Column("least n", ".1f"), Column("n(.3) / least", ",.1f"), Column("n(6) / least", ".1f"))
        table = Table("Exact, at p = .02, on a grid of .05", (*heads, *sizes_there), tuple(rows))
        return StudyResult(tables=(table,), charts=(chart,), groups=tuple(f"K = {number}" for number in self.lengths))


_SOURCE, _PARAMETERS = "arXiv 2602.01523", {"A": 5, "p": 0.2}
STUDIES: tuple[Study, ...] = (
    Study(
        id="regimes",
        source=f"{_SOURCE}, the three regimes",
        title="Three regimes of the relative budget",
        text=(
            "In deficient budgets no learner finds solutions, in balanced ones all learn, and in ample ones rewards "
            "vary less and less: RLVR slows down at the same learning rate, A*-PO changes less at the same "
            "temperature, and GRPO, which divides by the group's standard deviation, does neither. A higher learning "
            "rate shifts all of this to smaller budgets."
        ),
        run=Regimes(),
        seeds=6,
        parameters=_PARAMETERS,
    ),
    Study(
        id="steps",
        source=f"{_SOURCE}, gain of one step",
        title="The gain of one step",
        text=(
            "At the same KL divergence a step gains in proportion to sd(R), most in balanced budgets; a table on "
            "sub-steps sees less of it in deficient ones."
        ),
        run=Steps(),
        seeds=8,
        parameters=_PARAMETERS,
    ),
    Study(
        id="samples",
        source=f"{_SOURCE}, sample size",
        title="How many samples a step needs",
        text="The number grows steeply in deficient budgets, more so with many sub-steps; it is least at xi = 1.4-1.6.",
        run=Samples(),
        seeds=6,
        parameters=_PARAMETERS,
    ),
)
