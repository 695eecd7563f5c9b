"""Figures on mixture recall: leaks, what readings are worth with and without recall, and what policies earn."""

import dataclasses

import numpy as np

from theorybench.envs.context.mixture_recall.experiments import LearnedRecall, read
from theorybench.envs.context.mixture_recall.mixture import SIGNS, SOURCES, leak, reading_laws, types_of
from theorybench.envs.core.evidence.lab import Lab
from theorybench.envs.core.evidence.study import (
    Axis,
    Cell,
    Chart,
    Column,
    Level,
    Series,
    Study,
    StudyResult,
    Table,
    measured,
)

#: Inverse temperatures at which leaks are drawn.
BETAS = np.linspace(0.0, 6.0, 61)
#: Numbers of readings, and contexts of a run.
READINGS, CONTEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512), 2_000


@dataclasses.dataclass(frozen=True)
class Leaks:
    """The leak against the inverse temperature, with key-query matrices on their way from zero."""

    #: Steps of gradient descent at which there is a point.
    shown: tuple[int, ...] = (0, 1, 2, 4, 8, 16, 32, 64, 128, 200)

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Draw the formula, and learn one matrix for each number of sources."""
        setting, series = lab.setting, []
        for sources in SOURCES:
            name = f"{sources} sources"
            series.append(Series(name, "predicted", BETAS, leak(sources, BETAS)))
            learner = LearnedRecall(sources=sources, steps=self.shown[-1], prediction=lambda oracle: 1.0)
            _, leaks, betas = learner.run(setting, np.random.default_rng([seed, sources]))
            series.append(Series(name, "simulated", np.array(betas)[[*self.shown]], np.array(leaks)[[*self.shown]]))
        chart = Chart(
            "How much of the attention goes astray",
            Axis("inverse temperature beta", range=(0.0, 6.0)),
            Axis("leak", range=(0.0, 1.0)),
            tuple(series),
            levels=(Level(float(setting.amplitudes[1]) / 2, "a_2 / 2"),),
            points="a matrix on its way from zero",
            note=f"Sharpness 0, 1, 2 of the setting is beta = 0, {setting.step:g}, {2 * setting.step:g}.",
        )
        return StudyResult(charts=(chart,))


def best_guess(lab: Lab, sources: int, sharpness: int, readings: int, seed: int) -> float:
    """Return the share of drawn contexts that are guessed right from all their readings, by the posterior."""
    setting, rng = lab.setting, np.random.default_rng([seed, sources, sharpness, readings])
    spread, counts = read(setting, rng, sources, sharpness, readings, CONTEXTS)
    types, leaks = types_of(sources, setting.plus), setting.leaks(sources)[[sharpness]]
    by_sign = []
    for sign in SIGNS:
        logs = counts @ np.log(reading_laws(types, sign, setting.amplitudes, leaks)[0]).T + np.log(types.weight)
        by_sign.append(np.logaddexp.reduce(logs, axis=1))
    return float(((by_sign[1] >= by_sign[0]) == spread).mean())


@dataclasses.dataclass(frozen=True)
class Recall:
    """Right answers against the number of readings, for each sharpness and number of sources."""

    readings: tuple[int, ...] = READINGS  # how many

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Read contexts that are drawn, and answer by the posterior."""
        charts = []
        for sources in SOURCES:
            series = []
            for sharpness in range(lab.setting.levels + 1):
                runs = [
                    [best_guess(lab, sources, sharpness, number, seed * seeds + run) for number in self.readings]
                    for run in range(seeds)
                ]
                series.append(measured(f"sharpness {sharpness}", self.readings, np.array(runs), style="band"))
            charts.append(
                Chart(
                    f"{sources} sources",
                    Axis("readings", "log"),
                    Axis("share of right answers", range=(0.45, 1.02)),
                    tuple(series),
                    levels=(Level(lab.oracle.without_recall(sources), "all that mean pooling can reach"),),
                    note=f"Answers by the posterior; {CONTEXTS:,} contexts a run.",
                )
            )
        return StudyResult(charts=tuple(charts))


@dataclasses.dataclass(frozen=True)
class Policies:
    """What policies earn, exactly."""

    def __call__(self, lab: Lab, seed: int, seeds: int) -> StudyResult:
        """Evaluate them."""
        oracle, rows = lab.oracle, list[tuple[Cell, ...]]()
        names = ("objective", "success", "readings", "sharpness", *(f"sources_{one}/objective" for one in SOURCES))
        for name in ("reference", "mean-pool", "planner-greedy", "recall-then-read", "optimal"):
            (policy,) = lab.train(name, [seed], 1)
            values = oracle.evaluate(policy)
            rows.append((name, *(values[one] for one in names)))
        heads = ("objective", "right", "readings", "sharpness", *(f"{one} sources" for one in SOURCES))
        columns = (Column("policy"), *(Column(head, ".3f") for head in heads))
        return StudyResult(tables=(Table("Exact values", columns, tuple(rows)),))


_SOURCE = "arXiv 2602.01863"
STUDIES: tuple[Study, ...] = (
    Study(
        id="leaks",
        source=f"{_SOURCE}, recall by softmax attention; the formula is ours",
        title="Leaks of softmax attention",
        text="Attention that is learnt follows the formula for its own inverse temperature; more sources need more.",
        run=Leaks(),
        seeds=2,
    ),
    Study(
        id="recall",
        source=f"{_SOURCE}, recall before prediction; ours",
        title="More readings do not replace recall",
        text=(
            "Without sharpening the answers stop getting better at a level that theory gives, however much is read; "
            "one level of sharpness is enough for two sources, and two are better for more."
        ),
        run=Recall(),
        seeds=5,
    ),
    Study(
        id="recall-policies",
        source="ours",
        title="What policies earn",
        text="Practice, a look one action ahead, the paper's order of recall and reading, and the optimum.",
        run=Policies(),
        seeds=2,
        exact=True,
    ),
)
