"""How widely the loss should be smoothed, and when one should stop paying for that."""

import dataclasses
import functools
from typing import ClassVar

import numpy as np

from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.validation import integer, integers, real
from theorybench.envs.features.run import HiddenRun, Run, plan
from theorybench.envs.features.smoothing.law import AT_ONCE, OVERLAPS, after_block
from theorybench.envs.features.tables import quantiles

#: Radii of the smoothing in units of d^(1/4), and how many steps one may choose from for each.
RADII, STEPS = (0, 1, 2), 2
#: Places from which runs start, for each exponent, and equally likely places after each block.
STARTS, QUANTILES = 32, 64
#: The largest reading.
TOP = 3
#: Overlap below which the direction counts as never found.
FOUND = 0.3
#: Actions: no smoothing with the large and with the small step, likewise radius d^(1/4), and twice that.
PLAIN, PLAIN_SMALL, SMOOTHED, SMOOTHED_SMALL, WIDE, WIDE_SMALL = range(len(RADII) * STEPS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Smoothing(HiddenRun):
    """docstring.

    ## Arguments
    """

    question: ClassVar[str] = "how widely should a loss be smoothed, and when should one stop paying for that?"
    rule_names: ClassVar[tuple[str, ...]] = (
        "plain-small",
        "smoothed",
        "smoothed-small",
        "two-phase",
        "until-correlated",
        "anneal",
    )

    dimension: int = integer(64, 16, 256, "d, numbers of an input")
    block: int = integer(0, 0, 65_536, "steps of a block without smoothing; 0 for 2 d^(3/2), a multiple of 64")
    price: int = integer(4, 1, 16, "how many plain gradients a smoothed one costs")
    large_step: float = real(0.8, 0.0, 4.0, "length of a step at the start, in units of d^(-1/2)", open_low=True)
    small_step: float = real(0.16, 0.0, 4.0, "the other length that one may choose", open_low=True)
    exponents: tuple[int, ...] = integers((2, 3), 2, 3, "information exponents that labels may have", none=False)
    horizon: int = integer(5, 2, 5, "blocks")  # type: ignore[misc]

    def validate(self) -> None:
        """Check that a block holds enough smoothed steps.

        Raises:
            ParameterError: names `block`.
        """
        least = max(128, AT_ONCE * self.price)
        if self.plain_steps < least:
            raise ParameterError("block", self.plain_steps, f"at least 128, and {AT_ONCE} times the price: {least}")
        super().validate()

    def most_rows(self) -> int:
        """Return the number of dialogues, if every reading may follow every action."""
        return sum((len(RADII) * STEPS * (TOP + 1)) ** t for t in range(self.horizon))

    # The run.

    @property
    def plain_steps(self) -> int:
        """Steps of a block without smoothing."""
        return self.block or 64 * int(self.dimension**1.5 / 32)

    @property
    def radii(self) -> tuple[float, ...]:
        """Radii of the smoothing."""
        return tuple(radius * self.dimension**0.25 for radius in RADII)

    @functools.cached_property
    def run(self) -> Run:
        """Hidden states are an exponent and an overlap on the grid: number 161 i + j."""
        places, steps = len(OVERLAPS), (self.large_step, self.small_step)
        # How likely overlaps of uniform directions are.
        density = (1 - OVERLAPS**2) ** ((self.dimension - 3) / 2)
        start = quantiles(density / density.sum(), STARTS)
        offset = places * np.arange(len(self.exponents))
        jump = np.concatenate(
            [
                [
                    quantiles(self.chain(exponent, action), QUANTILES) + first
                    for action in range(len(RADII) * STEPS)
                ]
                for exponent, first in zip(self.exponents, offset.tolist(), strict=True)
            ],
            axis=1,
        )
        exponent = np.repeat(self.exponents, places)
        # The square of the overlap does not tell a direction from its opposite.
        overlap = np.where(exponent == 2, np.tile(abs(OVERLAPS), len(offset)), np.tile(OVERLAPS, len(offset)))
        pay = np.maximum(overlap, 0.0) ** exponent
        shares = {f"correlation_{k}": np.where(exponent == k, len(offset) * pay, 0.0) for k in self.exponents}
        return Run(
            horizon=self.horizon,
            begin=(start + offset[:, None]).reshape(1, -1),
            jump=jump,
            measured=TOP * pay,
            top=TOP,
            pay=pay,
            habit=np.full(self.horizon, PLAIN),
            ends=np.zeros(len(jump), bool),
            outcomes={"overlap": overlap, "lost": (overlap < FOUND).astype(np.float64), **shares},
        )

    def chain(self, exponent: int, action: int) -> np.ndarray:
        """Return how a block of an action moves the overlap: float64 (161, 161), from row to column."""
        radius, step = self.radii[action // STEPS], (self.large_step, self.small_step)[action % STEPS]
        steps = self.plain_steps // self.price if radius else self.plain_steps
        return after_block(exponent, radius, step, self.dimension, steps)

    def choose(self, name: str, context: np.ndarray, actions: np.ndarray, readings: np.ndarray) -> np.ndarray:
        """Follow a plan, or smooth until a correlation is read."""
        if name == "until-correlated":
            return np.where(readings[:, -1:].any(axis=1), PLAIN_SMALL, SMOOTHED)
        plans = {
            "plain-small": (PLAIN_SMALL,),
            "smoothed": (SMOOTHED,),
            "smoothed-small": (SMOOTHED_SMALL,),
            "two-phase": (SMOOTHED, SMOOTHED, PLAIN_SMALL),
            "anneal": (WIDE, SMOOTHED, PLAIN_SMALL),
        }
        return np.full(len(actions), plan(actions, *plans[name]))

    # Names.

    def action_name(self, action: int) -> str:
        """Name a radius and a step."""
        return ("plain", "smoothed", "wide")[action // STEPS] + (" large", " small")[action % STEPS]

    def shown_name(self, context: int) -> str:
        """Say what is known: the dimension."""
        return f"d = {self.dimension}"

    def hidden(self, state: int) -> dict[str, str]:
        """Tell the exponent and the overlap."""
        world, place = divmod(state, len(OVERLAPS))
        return {"labels": f"k = {self.exponents[world]}", "overlap": f"{OVERLAPS[place]:.4f}"}
