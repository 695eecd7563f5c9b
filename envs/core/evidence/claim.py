"""A claim: one statement of a paper as a test that runs."""

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from theorybench.envs.core.errors import TheoryBenchError
from theorybench.envs.core.setting import Setting

#: Half-width of the intervals of claims, in standard errors.
WIDTH = 3.0


def interval(value: float, standard_error: float) -> tuple[float, float, float]:
    """Return (value, low, high), three standard errors to each side: what `measure` returns."""
    return float(value), float(value - WIDTH * standard_error), float(value + WIDTH * standard_error)


def mean_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Return the mean of independent values (n,) with its interval."""
    return interval(values.mean(), values.std(ddof=1) / math.sqrt(len(values)))


def share_interval(hits: np.ndarray) -> tuple[float, float, float]:
    """Return the share of hits, bool (n,), with its Wilson interval, as wide as those of means."""
    share, z = float(np.mean(hits)), WIDTH / math.sqrt(len(hits))
    centre, spread = share + z**2 / 2, z * math.sqrt(share * (1 - share) + z**2 / 4)
    return share, (centre - spread) / (1 + z**2), (centre + spread) / (1 + z**2)


def ratio_of_means(first: np.ndarray, second: np.ndarray) -> tuple[float, float, float]:
    """Return the ratio of the means of independent positive samples, its interval from standard errors of logarithms.

    All three are infinite where a sample is not finite.
    """
    if not np.isfinite([*first, *second]).all():
        return (math.inf,) * 3
    variance = sum(values.var(ddof=1) / values.mean() ** 2 / len(values) for values in (first, second))
    ratio, factor = float(first.mean() / second.mean()), math.exp(WIDTH * math.sqrt(variance))
    return ratio, ratio / factor, ratio * factor


class Lab(Protocol):
    """What a claim may do: train registered agents and simulate policies on the claim's setting."""

    @property
    def setting(self) -> Any:
        """The claim's setting."""

    @property
    def oracle(self) -> Any:
        """The oracle of the claim's setting."""

    def train(self, agent_name: str, seeds: Sequence[int], budget: int, **hyperparameters: Any) -> list[Any]:
        """Train an agent once for each seed with `budget` episodes; return its policies."""

    def trace(
        self, agent_name: str, seeds: Sequence[int], budget: int, *, points: int, **hyperparameters: Any
    ) -> list[list[tuple[int, Any]]]:
        """Train likewise; return for each seed (episodes, policy) after each of `points` equal parts of the budget."""

    def simulate(self, policy: Any, episodes: int, seed: int, **options: Any) -> Any:
        """Roll out `episodes` episodes of a policy; options: group_size, prompts, stage, hint. Returns Episodes."""

    def at(self, **parameters: Any) -> "Lab":
        """Give the lab of the same id with other parameters: for claims that compare settings."""


Measure = Callable[[Any, Lab, int], tuple[float, float, float]]


class Measurable(Protocol):
    """What a claim predicts and how it measures it."""

    @property
    def predicted(self) -> Callable[[Any], float]:
        """The predicted value as a function of the setting."""

    @property
    def measure(self) -> Measure:
        """(setting, lab, seed) -> (value, low, high)."""


@dataclasses.dataclass(frozen=True)
class ClaimResult:
    """The outcome of one check.

    Attributes:
        predicted: what theory says.
        measured: what came out.
        low: lower end of the measured interval.
        high: upper end.
        holds: whether the interval, widened by the claim's tolerance, contains the prediction.
        seconds: wall time of the check.
    """

    predicted: float
    measured: float
    low: float
    high: float
    holds: bool
    seconds: float


@dataclasses.dataclass(frozen=True)
class Experiment:
    """What is measured on one setting of an id, in a lab.

    Attributes:
        id: unique, such as "tree-squeezing".
        parameters: parameters of the setting that it is about.
        env_id: the id, bound by the function that returns the id's claims or studies.
        setting: the id's setting with these parameters, bound likewise.
        make_lab: builds the lab, bound likewise.
    """

    id: str
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict, kw_only=True)
    env_id: str = dataclasses.field(default="", kw_only=True)
    setting: Setting | None = dataclasses.field(default=None, kw_only=True)
    make_lab: Callable[[Setting], Lab] | None = dataclasses.field(default=None, kw_only=True)

    def bound(self) -> tuple[Any, Lab]:
        """Return the setting and its lab.

        Raises:
            TheoryBenchError: not bound to a setting; get it from `theorybench.claims` or `theorybench.studies`.
        """
        if self.setting is None or self.make_lab is None:
            kind = f"{type(self).__name__.lower()} {self.id}"
            raise TheoryBenchError(f"{kind} is unbound: get it from theorybench.claims(id) or theorybench.studies(id)")
        return self.setting, self.make_lab(self.setting)


@dataclasses.dataclass(frozen=True)
class Claim(Experiment):
    """One statement of a paper, with its prediction and how to measure it.

    Attributes:
        source: paper, theorem or table.
        statement: one sentence.
        predicted: the predicted value as a function of the setting.
        measure: (setting, lab, seed) -> (value, low, high), by training or simulation.
        tolerance: how far outside of the interval the prediction may lie, with its reason in `statement` or `source`.
        falsified_by: what would make it fail, in words; a test does it.
        formula: the predicted value as a formula that people read.
    """

    source: str
    statement: str
    predicted: Callable[[Any], float]
    measure: Measure
    tolerance: float
    falsified_by: str
    formula: str = dataclasses.field(default="", kw_only=True)

    def check(self, seed: int = 0) -> ClaimResult:
        """Measure and compare.

        Raises:
            TheoryBenchError: the claim is not bound to a setting; get it from `theorybench.claims(env_id)`.
        """
        setting, lab = self.bound()
        start = time.perf_counter()
        predicted = float(self.predicted(setting))
        value, low, high = (float(x) for x in self.measure(setting, lab, seed))
        holds = low - self.tolerance <= predicted <= high + self.tolerance
        return ClaimResult(predicted, value, low, high, holds, time.perf_counter() - start)


@dataclasses.dataclass(frozen=True)
class ClaimMaker:
    """Makes the claims of a setting: what an experiment predicts and measures, with the words around it.

    Attributes:
        prefix: of all ids.
        paper: what every source begins with, or "".
    """

    prefix: str
    paper: str = ""

    def __call__(
        self,
        id: str,
        source: str,
        statement: str,
        falsified_by: str,
        experiment: Measurable,
        tolerance: float,
        formula: str,
        given: Mapping[str, Any] | None = None,
        /,
        **parameters: Any,
    ) -> Claim:
        """Make a claim; `given` and `parameters` are of the setting, the rest is as in `Claim`."""
        return Claim(
            id=f"{self.prefix}-{id}",
            source=f"{self.paper}, {source}" if self.paper else source,
            statement=statement,
            predicted=experiment.predicted,
            measure=experiment.measure,
            tolerance=tolerance,
            falsified_by=falsified_by,
            formula=formula,
            parameters={**(given or {}), **parameters},
        )
