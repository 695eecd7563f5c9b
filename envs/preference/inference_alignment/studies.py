"""Figures about InferenceAlignment: laws of aligned policies, prox steps under their bound, learners against N.

Lines are theory: closed forms, bounds and certified optima. Points are trained policies, whose values are exact, and
estimates from rollouts.
"""

import dataclasses
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import metric_of
from theorybench.envs.core.evidence.interval import mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.evidence.study import Axis, Cell, Chart, Column, Series, Study, StudyResult, Table, measured
from theorybench.envs.preference.inference_alignment.experiments import prox_curve, squared_spans
from theorybench.envs.preference.inference_alignment.law import balanced_cdf, balanced_probs, midpoints
from theorybench.envs.preference.inference_alignment.oracle import InferenceAlignmentOracle

#: Points are shown at each so many places, and prox steps.
EACH, SHOWN = 4, 5
#: Draws from the limit law of errors.
DRAWS = 20_000
LEARNERS: dict[str, dict[str, Any]] = {"nonlinear-grpo": {"learning_rate": 0.03}, "rloo": {}, "grpo": {}}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Density:
    """The optimal policy for best-of-N, beside the one that non-linear GRPO learns."""

    samples: tuple[int, ...] = (1, 2, 4, 8)  # the N
    budget: int = 2**19  # of a run
    batch: int = 1024  # responses of an update, in one group

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Train; show the policies and their objectives."""
        setting = lab.setting
        laws: list[Series] = []
        sums: list[Series] = []
        rows: list[tuple[Cell, ...]] = []
        steps = setting.num_points - 1
        options = {"episodes_per_update": self.batch, "group_size": self.batch, "learning_rate": 0.1}
        for samples in self.samples:
            there, name = lab.at(samples=samples), f"N = {samples}"
            oracle: InferenceAlignmentOracle = there.oracle
            policies = there.train("nonlinear-grpo", run_seeds(seed, seeds), self.budget, **options)
            tables = np.array([oracle.table(policy) for policy in policies])
            places, inner = midpoints(setting), setting.points[1:-1]
            exact = balanced_probs(there.setting) if samples > 1 else oracle.table(oracle.optimal_policy)
            sums.append(Series(name, "predicted", places, balanced_cdf(places, samples)))
            sums.append(measured(name, places[::EACH], np.cumsum(tables, axis=1)[:, :-1:EACH]))
            if samples > 1:  # one point has no density
                laws.append(Series(name, "predicted", inner, steps * exact[1:-1]))
                laws.append(measured(name, inner[1::EACH], steps * tables[:, 2:-1:EACH]))
            values = np.array([metric_of(oracle, policy, "objective") for policy in policies])
            own = metric_of(oracle, oracle.policy(exact), "objective")
            naive = metric_of(oracle, oracle.plain_optimum, "objective")
            uniform = metric_of(oracle, oracle.policy(np.full(steps + 1, 1 / (steps + 1))), "objective")
            power = 1 / (samples - 1) if samples > 1 else None
            rows.append((samples, power, oracle.optimal_value, own, uniform, naive, mean_interval(values)))
        y = Axis("response y", range=(0, 1))
        charts = (
            Chart(
                "Density of the aligned policy, two opposed criteria",
                y,
                Axis("density", range=(0, 3)),
                tuple(laws),
                "For N = 1 all mass is at y = 1/2. J is flat around its optimum: mass moves to the very ends last.",
            ),
            Chart("The same as distribution functions", y, Axis("P(response <= y)", range=(0, 1)), tuple(sums)),
        )
        heads = ("certified J*", "closed form", "uniform", "point 1/2", "nonlinear-grpo")
        columns = (Column("N", "d"), Column("a = 1 / (N - 1)"), *(Column(head, ".4f") for head in heads))
        note = "J, without KL term: the mean over two criteria of the best of N by each."
        table = Table("What policies are worth at inference time", columns, tuple(rows), note)
        return StudyResult(tables=(table,), charts=charts, groups=tuple(f"N = {samples}" for samples in self.samples))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prox:
    """Exact prox steps under their bound, steps with estimates, and the error of the estimates."""

    steps: int = 60  # T
    sizes: tuple[int, ...] = (64, 512, 4096)  # responses of each estimate, for prox steps
    #: responses of each estimate, for its error alone
    errors: tuple[int, ...] = (32, 64, 128, 256, 512, 1024, 2048, 4096)
    episodes: int = 2**18  # rollouts of each size of the error

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Take prox steps, exact and with estimates."""
        setting = lab.setting
        exact: list[Series] = []
        for samples in (2, 4, 8):
            left, bound = prox_curve(lab.at(samples=samples).oracle, self.steps)
            steps, name = np.arange(1, self.steps + 1), f"N = {samples}"
            exact.append(Series(name, "predicted", steps, bound))
            exact.append(Series(name, "measured", steps[::SHOWN], np.maximum(left, 1e-16)[::SHOWN]))
        own, _ = prox_curve(lab.oracle, self.steps)
        steps = np.arange(SHOWN, self.steps + 1, SHOWN)
        rough = [Series("exact", "predicted", steps, own[steps - 1])]
        for number, size in enumerate(self.sizes):
            runs = [self._estimated_curve(lab, size, 1000 * run + 100 * number) for run in run_seeds(seed, seeds)]
            means = np.exp([mean_interval(column) for column in np.log(np.array(runs)[:, steps - 1]).T])
            rough.append(Series(f"M = {size}", "band", steps, *means.T))
        errors = [
            squared_spans(lab, size, self.episodes, 64 * seed + number) for number, size in enumerate(self.errors)
        ]
        parts = np.array([spans[: len(spans) // seeds * seeds].reshape(seeds, -1).mean(axis=1) for spans in errors]).T
        limit = _limit(lab, seed)
        squares = (
            Series("first variation", "predicted", self.errors, limit / np.array(self.errors)),
            measured("first variation", self.errors, parts, style="simulated"),
        )
        step = Axis("prox steps")
        charts = (
            Chart(
                "Exact prox steps, and their bound",
                step,
                Axis("J* - J", "log", range=(1e-8, 10)),
                tuple(exact),
                "Lines are the bound beta KL(pi* || pi_0) / ((1 + beta/L)^T - 1); points are steps with step size 1/L.",
                points="exact steps",
                bars="none",
            ),
            Chart(
                f"Prox steps with the first variation from M responses, N = {setting.samples}",
                step,
                Axis("J* - J", "log"),
                tuple(rough),
                points="geometric mean of runs",
            ),
            Chart(
                f"Squared error of the first variation at the reference, N = {setting.samples}",
                Axis("responses M", "log", ticks=self.errors[::2]),
                Axis("mean squared error in the span", "log"),
                squares,
                "The line is the limit for large M, 1/M times what the central limit theorem gives.",
                points="mean over estimates",
            ),
        )
        return StudyResult(charts=charts)

    def _estimated_curve(self, lab: Lab, size: int, key: int) -> list[float]:
        """Return J* - J after each of T prox steps, the first variation from M rollouts of the policy each time."""
        setting, oracle = lab.setting, lab.oracle
        probs, weight, left = setting.reference, oracle.smoothness, []
        for step in range(self.steps):
            drawn = np.asarray(lab.simulate(oracle.policy(probs), size, key + step).actions)[:, 0]
            slope = setting.aligned.variation(np.bincount(drawn, minlength=setting.num_points) / size)
            probs = oracle.prox_step(probs, slope, weight)
            left.append(oracle.optimal_value - metric_of(oracle, oracle.policy(probs), "objective"))
        return left


def _limit(lab: Lab, seed: int) -> float:
    """Return the limit of M times the mean squared error in the span, by draws of the limit law."""
    setting, rng = lab.setting, np.random.default_rng([seed, DRAWS])
    probs, aligned = setting.reference, setting.aligned
    normal = rng.normal(size=(DRAWS, len(probs))) * np.sqrt(probs)
    apart = normal - probs * normal.sum(axis=1, keepdims=True)
    bend = aligned.curvature(probs, setting.inference.weights)
    return float((np.ptp(apart @ bend, axis=1) ** 2).mean())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Learners:
    """The objectives that learners reach, against N."""

    samples: tuple[int, ...] = (1, 2, 4, 8, 16)  # the N
    budget: int = 20_000  # responses of a run

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Train the learners; show objectives and scores."""
        found: dict[str, list[np.ndarray]] = {name: [] for name in LEARNERS}
        optimum, naive, start = [], [], []
        rows: list[tuple[Cell, ...]] = []
        for samples in self.samples:
            there = lab.at(samples=samples)
            oracle: InferenceAlignmentOracle = there.oracle
            optimum.append(oracle.optimal_value)
            naive.append(metric_of(oracle, oracle.plain_optimum, "objective"))
            start.append(oracle.reference_value)
            cells: list[Cell] = []
            for name, options in LEARNERS.items():
                runs = there.train(name, run_seeds(seed, seeds), self.budget, **options)
                found[name].append(np.array([metric_of(oracle, policy, "objective") for policy in runs]))
                cells.append(mean_interval((found[name][-1] - start[-1]) / (optimum[-1] - start[-1])))
            rows.append((samples, optimum[-1], naive[-1], start[-1], *cells))
        series = [
            Series("nonlinear-grpo", "predicted", self.samples, optimum),
            Series("rloo", "predicted", self.samples, naive),
            Series("reference", "predicted", self.samples, start),
            *(measured(name, self.samples, np.array(values).T) for name, values in found.items()),
        ]
        note = (
            "Lines: the certified optimum, the exact end of learners that are unaware of inference, "
            "pi_ref e^(r / beta) / Z, and the reference."
        )
        x = Axis("N of best-of-N at inference time", "log", ticks=self.samples)
        chart = Chart("What learners are worth at inference time", x, Axis("J"), tuple(series), note)
        heads = ("J*", "J unaware", "J reference", *(f"score of {name}" for name in LEARNERS))
        columns = (Column("N", "d"), *(Column(head) for head in heads))
        about = (
            f"{self.budget:,} responses, which leave runs a hundredth short of their lines; they differ by less than "
            "that. GRPO divides advantages by their deviation, so that its KL term weighs less."
        )
        return StudyResult(tables=(Table("Scores", columns, tuple(rows), about),), charts=(chart,))


def _study(id: str, part: str, title: str, text: str, run: Any, **parameters: Any) -> Study:
    return Study(
        id=f"inference-{id}",
        source=f"arXiv 2602.01603, {part}",
        title=title,
        text=text,
        run=run,
        seeds=8,
        parameters=parameters,
    )


STUDIES: tuple[Study, ...] = (
    _study(
        "density",
        "two opposed criteria",
        "The law of the policy that best-of-N asks for",
        "A single response should be a compromise. For best-of-2 responses should be spread evenly, and for larger N "
        "concentrate at the extremes: sampling similar responses gains little.",
        Density(),
        beta=0.0,
        tilt=-1.0,
    ),
    _study(
        "prox",
        "convergence of non-linear GRPO",
        "Prox steps: under the bound when exact, down to a floor when estimated",
        "Exact steps stay below the theorem's bound and are faster in the end. With the first variation from M "
        "responses they stop where noise begins; the squared error falls as 1/M.",
        Prox(),
    ),
    _study(
        "learners",
        "non-linear GRPO against GRPO",
        "Inference-aware learners and learners that ignore inference, against N",
        "A learner that ignores inference converges to one compromise, which leaves best-of-N nothing to choose from: "
        "from N = 2 on it is worth less than the reference at which it began.",
        Learners(),
    ),
)
