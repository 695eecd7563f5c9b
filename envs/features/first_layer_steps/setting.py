"""How long to train the first layer, if too short leaves noise in the features and too long leaves one feature only."""

import dataclasses
import functools
from typing import ClassVar

import numpy as np

from theorybench.envs.core.validation import instance, integer, integers, real
from theorybench.envs.features.first_layer_steps.law import Curves, curves
from theorybench.envs.features.run import STOP, HiddenRun, Run, plan
from theorybench.envs.features.tables import rounded

#: Steps of the first layer that each action takes, and the largest reading.
STEPS, TOP = (0, 1, 3, 8), 12
ONE, THREE, EIGHT = 1, 2, 3
#: Most features of a world.
FEATURES = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class FirstLayerSteps(HiddenRun):
    """PLACEHOLDER.

    ## Arguments
    """

    question: ClassVar[str] = "how long should the first layer be trained before the head is fitted?"
    rule_names: ClassVar[tuple[str, ...]] = (
        "one-step",
        "three-steps",
        "to-convergence",
        "stop-at-3",
        "stop-at-1",
        "stop-at-0",
    )

    dimension: int = integer(400, 50, 5000, "of the inputs, d")
    ratios: tuple[int, ...] = integers(
        (16, 40), 4, 200, "samples of the first layer over the dimension; one is shown", none=False, most=3
    )
    head_ratio: int = integer(40, 2, 200, "samples of the head over the dimension")
    ridge: float = real(3.0, 0.001, 100.0, "penalty of the head")
    types: int = integer(6, 2, 12, "hidden problems, equally likely")
    horizon: int = integer(6, 3, 8, "decisions")  # type: ignore[misc]
    instance: int = instance(0, "what the hidden problems are")

    def most_rows(self) -> int:
        """Return a bound: in each problem an action that does not end the run is followed by one of two readings."""
        return len(self.ratios) * self.types * sum((2 * (len(STEPS) - 1)) ** t for t in range(self.horizon))

    # The instance and its mathematics.

    @functools.cached_property
    def worlds(self) -> tuple[tuple[float, ...], ...]:
        """For each hidden problem the probability with which the label is of each of its features, falling."""
        rng, found = np.random.default_rng([251115120, self.instance]), []
        for number in range(self.types):
            total = 0.75 + 0.2 * rng.random()
            cut = np.sort(rng.random(1 + number % FEATURES))[::-1] + 0.35
            found.append(tuple((total * cut / cut.sum()).tolist()))
        return tuple(found)

    @property
    def longest(self) -> int:
        """The largest number of steps."""
        return max(STEPS) * self.horizon

    def curves(self, context: int, world: int) -> Curves:
        """Return what a run is like after each number of steps, in one context and world."""
        ratio = self.ratios[context]
        return curves(self.worlds[world], ratio, self.dimension, self.head_ratio, self.ridge, self.longest)

    @functools.cached_property
    def run(self) -> Run:
        """The tables: hidden state (context * types + world) * (longest + 1) + steps."""
        each = [self.curves(context, world) for context in range(len(self.ratios)) for world in range(self.types)]
        dimension, outliers, error = (np.concatenate(parts) for parts in zip(*each, strict=True))
        runs, count = len(each), self.longest + 1
        steps = np.tile(np.arange(count), runs)
        state = np.arange(runs * count)
        after = [np.minimum(steps + more, self.longest) - steps + state for more in STEPS]
        return Run(
            horizon=self.horizon,
            begin=(np.arange(runs) * count).reshape(len(self.ratios), self.types),
            jump=np.array(after)[:, :, None],
            measured=np.log2(dimension),
            top=TOP,
            pay=np.maximum(0, 1 - error),
            habit=np.full(self.horizon, EIGHT),
            ends=np.arange(len(STEPS)) == STOP,
            outcomes={
                "steps": steps,
                "effective_dimension": rounded(dimension),
                "on_outliers": rounded(outliers),
                "relative_error": rounded(error),
            },
        )

    def choose(self, name: str, context: np.ndarray, actions: np.ndarray, readings: np.ndarray) -> np.ndarray | int:
        """Return what a rule does: a fixed number of steps, or one that readings end."""
        if name in ("one-step", "three-steps"):
            return plan(actions, ONE if name == "one-step" else THREE, STOP)
        if name == "to-convergence":
            if actions.shape[1] < 2:
                return EIGHT
            return np.where(readings[:, -1] == readings[:, -2], STOP, EIGHT)
        if not actions.shape[1]:
            return THREE
        stop, last = int(name.rpartition("-")[2]), readings[:, -1]
        return np.where(last <= stop, STOP, np.where(last <= stop + 1, ONE, THREE))

    # Names.

    def action_name(self, action: int) -> str:
        """Name an action."""
        return "STOP" if action == STOP else f"+{STEPS[action]}"

    def shown_name(self, context: int) -> str:
        """Say what the prompt shows."""
        return f"n/d = {self.ratios[context]}"

    def hidden(self, state: int) -> dict[str, str]:
        """Describe the problem and how far training has come."""
        run, steps = divmod(state, self.longest + 1)
        context, world = divmod(run, self.types)
        curves = self.curves(context, world)
        shares = ", ".join(f"{share:.2f}" for share in self.worlds[world])
        return {
            "features": f"label by them with probability {shares}",
            "trained": f"{steps} steps, effective dimension {curves.effective_dimension[steps]:.2f}",
        }
