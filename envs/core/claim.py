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

    def simulate(self, policy: Any, episodes: int, seed: int, **options: Any) -> Any:
        """Roll out `episodes` episodes of a policy; options: group_size, prompts, stage, hint. Returns Episodes."""

    def at(self, **parameters: Any) -> "Lab":
        """Give the lab of the same id with other parameters: for claims that compare settings."""


Measure = Callable[[Any, Lab, int], tuple[float, float, float]]


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
class Claim:
    """One statement of a paper, with its prediction and how to measure it.

    Attributes:
        id: unique within the setting, such as "tree-squeezing".
        source: paper, theorem or table.
        statement: one sentence.
        predicted: the predicted value as a function of the setting.
        measure: (setting, lab, seed) -> (value, low, high), by training or simulation.
        tolerance: how far outside of the interval the prediction may lie, with its reason in `statement` or `source`.
        falsified_by: what would make it fail, in words; a test does it.
        parameters: parameters of the setting that the claim is about.
        setting: the id's setting, bound by `theorybench.claims`.
        make_lab: builds the lab, bound by `theorybench.claims`.
    """

    id: str
    source: str
    statement: str
    predicted: Callable[[Any], float]
    measure: Measure
    tolerance: float
    falsified_by: str
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    setting: Setting | None = None
    make_lab: Callable[[Setting], Lab] | None = None

    def check(self, seed: int = 0) -> ClaimResult:
        """Measure and compare.

        Raises:
            TheoryBenchError: the claim is not bound to a setting; get it from `theorybench.claims(env_id)`.
        """
        if self.setting is None or self.make_lab is None:
            raise TheoryBenchError(f"claim {self.id} is unbound: get it from theorybench.claims(env_id)")
        start = time.perf_counter()
        predicted = float(self.predicted(self.setting))
        value, low, high = (float(x) for x in self.measure(self.setting, self.make_lab(self.setting), seed))
        holds = low - self.tolerance <= predicted <= high + self.tolerance
        return ClaimResult(predicted, value, low, high, holds, time.perf_counter() - start)
