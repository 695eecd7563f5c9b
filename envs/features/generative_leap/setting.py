"""Which moment of the data to look at next, on how many samples, if finding one direction makes the next one cheaper."""

import dataclasses
import functools
import itertools
from typing import ClassVar

import numpy as np

from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.validation import instance, integer, integers, real
from theorybench.envs.features.generative_leap.law import DIRECTIONS, Circuit, Stage, circuits, look
from theorybench.envs.features.run import STOP, HiddenRun, Run, plan

#: The degree of each action, and whether it takes many samples; action 0 stops.
LOOKS = ((1, False), (1, True), (2, False), (2, True), (3, True))
FIRST_SMALL, FIRST_LARGE, SECOND_SMALL, SECOND_LARGE, THIRD_LARGE = range(1, len(LOOKS) + 1)
#: Readings: nothing outside of the bulk, weak eigenvalues alone, and 1 + s where s directions are accepted.
NOTHING, WEAK, MOST = 0, 1, 1 + DIRECTIONS
#: Steps after an acceptance, while nothing is accepted; the last one is repeated.
LADDERS = {
    "moment-ladder": (FIRST_SMALL, SECOND_SMALL, SECOND_LARGE, THIRD_LARGE, STOP),
    "persistent-ladder": (FIRST_SMALL, SECOND_SMALL, SECOND_LARGE, THIRD_LARGE),
    "steep-ladder": (FIRST_SMALL, SECOND_LARGE, THIRD_LARGE, STOP),
}
#: Plans that look at no reading.
PLANS = {
    "each-degree-once": (FIRST_LARGE, SECOND_LARGE, THIRD_LARGE, STOP),
    "first-moment-only": (FIRST_SMALL,),
    "full-moment": (THIRD_LARGE,),
    "stop": (STOP,),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class GenerativeLeap(HiddenRun):
    """X"""

    question: ClassVar[str] = "which moment of the data to look at next, if finding one direction makes others cheaper?"
    rule_names: ClassVar[tuple[str, ...]] = (*LADDERS, *PLANS)

    dims: tuple[int, ...] = integers((50, 200), 20, 5000, "dimensions d of the data, one a context", none=False, most=3)
    small: int = integer(20, 1, 1000, "samples of a small look, in units of d")
    large: int = integer(200, 1, 10_000, "samples of a large look, in units of d; at least `small`")
    budget: int = integer(640, 1, 100_000, "samples that there are in all, in units of d")
    cost: float = real(0.3, 0.0, 1.0, "of the whole budget")
    horizon: int = integer(5, 2, 6, "the largest number of decisions")
    instance: int = instance(0, "weights and directions of the circuits")

    def validate(self) -> None:
        """Refuse a large look that is smaller than the small one.

        Raises:
            ParameterError: it is.
        """
        if self.large < self.small:
            raise ParameterError("large", self.large, f"an integer >= small = {self.small}")
        super().validate()

    def most_rows(self) -> int:
        """Return how many dialogues there are, were all readings possible after each look."""
        return len(self.dims) * sum((len(LOOKS) * (MOST + 1)) ** done for done in range(self.horizon))

    # What is hidden.

    @functools.cached_property
    def circuits(self) -> tuple[Circuit, ...]:
        """What labels may be made of, one circuit for each world."""
        return circuits(self.instance)

    @functools.cached_property
    def stages(self) -> tuple[list[tuple[int, int, Stage]], np.ndarray]:
        """What an episode can reach: context, world and stage of each hidden state, and where looks take it.

        Returns:
            The states by the number of looks that they take, beginnings first; and int64 (looks, X), where no state
            leaves the last ones.
        """
        level = [(context, world, Stage()) for context in range(len(self.dims)) for world in range(len(self.circuits))]
        number = {state: place for place, state in enumerate(level)}
        jumps = []
        for _ in range(self.horizon):
            before = level
            level = []
            for state in before:
                for degree, large in LOOKS:
                    after = self._after(*state, degree, self.large if large else self.small)
                    if after not in number:
                        number[after] = len(number)
                        level.append(after)
                    jumps.append(number[after])
        stay = np.repeat(np.arange(len(number) - len(level), len(number)), len(LOOKS))
        return list(number), np.concatenate([jumps, stay]).reshape(-1, len(LOOKS)).T

    def _after(self, context: int, world: int, stage: Stage, degree: int, size: int) -> tuple[int, int, Stage]:
        """Return what a look leads to: nothing is read of it where the budget does not suffice."""
        if stage.spent + size > self.budget:
            return context, world, stage._replace(reading=NOTHING)
        return context, world, look(self.circuits[world], stage, degree, size, self.dims[context])

    @functools.cached_property
    def run(self) -> Run:
        """The tables: one draw moves each state, since nothing is left to chance but the world."""
        order, jumps = self.stages
        stages = [stage for *_, stage in order]
        spent = np.array([stage.spent for stage in stages])
        found = np.array([stage.found for stage in stages])
        return Run(
            horizon=self.horizon,
            begin=np.arange(len(self.dims) * len(self.circuits)).reshape(len(self.dims), -1),
            jump=np.concatenate([np.arange(len(order))[None], jumps])[:, :, None],
            measured=np.array([float(stage.reading) for stage in stages]),
            top=MOST,
            pay=found - self.cost * spent / self.budget,
            habit=np.full(self.horizon, THIRD_LARGE),
            ends=np.arange(len(LOOKS) + 1) == STOP,
            outcomes={
                "accepted": np.array([float(len(stage.known)) for stage in stages]),
                "overlap": found,
                "samples": spent,
                "useful": np.array([stage.useful for stage in stages]) / np.maximum(spent, 1),
            },
        )

    # Rules.

    def choose(self, name: str, context: np.ndarray, actions: np.ndarray, readings: np.ndarray) -> np.ndarray:
        """Return what one of `LADDERS` or `PLANS` does after dialogues."""
        if name in PLANS:
            return np.full(len(actions), plan(actions, *PLANS[name]))
        steps = np.array(LADDERS[name])
        since = np.cumsum(readings[:, ::-1] > WEAK, axis=1) == 0  # trailing looks that found nothing
        return steps[np.minimum(since.sum(axis=1), len(steps) - 1)]

    # Names.

    def action_name(self, action: int) -> str:
        """Name an action in renderings."""
        if action == STOP:
            return "STOP"
        degree, large = LOOKS[action - 1]
        return f"degree {degree}, {'large' if large else 'small'}"

    def shown_name(self, context: int) -> str:
        """Say the dimension."""
        return f"d = {self.dims[context]}"

    def hidden(self, state: int) -> dict[str, str]:
        """Describe a hidden state: the circuit, what of it is known, and what that cost."""
        _, world, stage = self.stages[0][state]
        circuit = self.circuits[world]
        parts = [f"{weight:.3f} on {{{','.join(map(str, sorted(own)))}}}" for weight, own in circuit]
        known = [f"{direction} ({overlap:.3f})" for direction, overlap in stage.known]
        return {
            "labels": " + ".join(parts) or "pure noise",
            "accepted": ", ".join(known) or "none yet",
            "samples": f"{stage.spent} d of {self.budget} d",
        }
