"""Ladders in words: what tables and pictures say of the growth of each agent's cost."""

from typing import NamedTuple

from theorybench.leaderboard.comparing.growth import Growth
from theorybench.leaderboard.comparing.ladders import Climb, LadderBoard
from theorybench.leaderboard.comparing.ranking import Estimate


class Cells(NamedTuple):
    """What a row says of an agent; a dash where it is not known.

    Attributes:
        agent: its label.
        way: "direct" or "curriculum".
        top: the largest size at which the median run arrived.
        episodes: of the median run there.
        growth: the likelier law with its rate, or both where that is undecided.
        likelier: the law that is likelier in most bootstrap draws, and their share.
        theory: the rate of theory's law on the rungs that the agent climbed.
    """

    agent: str
    way: str
    top: str
    episodes: str
    growth: str
    likelier: str
    theory: str


#: Heads of the columns, in the order of `Cells`, and whether they are numbers.
HEADS = (
    ("agent", False),
    ("way", False),
    ("top", True),
    ("episodes", True),
    ("growth of cost", False),
    ("likelier", False),
    ("theory", False),
)
#: What is too small to be an exponent.
NOTHING = 5e-4


def rows(ladder: LadderBoard) -> list[Cells]:
    """Return what a table says of the agents of a ladder."""
    grows = {law.way: law.growth for law in ladder.laws}
    return [_cells(climb, grows.get(climb.way)) for climb in ladder.climbs]


def _cells(climb: Climb, law: str | None) -> Cells:
    median = next((p.median for p in climb.points if p.size == climb.top and p.median is not None), None)
    return Cells(
        climb.label,
        climb.way,
        f"{climb.top:.3g}" if climb.top else "-",
        "-" if median is None else f"{median:,.0f}",
        growth_words(climb),
        likelier(climb.growth),
        "-" if climb.theory is None or law is None else rate(law, *climb.theory),
    )


def rate(law: str, factor: float, exponent: float) -> str:
    """Say how fast a cost grows, such as "×5 a unit", "size^1.2" or "constant"."""
    if law == "exponential":
        return f"×{factor:.3g} a unit"
    return f"size^{exponent:.3g}" if abs(exponent) > NOTHING else "constant"


def growth_words(climb: Climb) -> str:
    """Return the law of an agent's cost, such as "×5.0 [4.6, 5.4] a unit" or "size^1.0 [0.9, 1.2]"."""
    growth = climb.growth
    if growth.factor is None or growth.exponent is None:
        return growth.verdict
    exponential, polynomial = f"×{interval(growth.factor)} a unit", f"size^{interval(growth.exponent)}"
    laws = {"exponential": exponential, "polynomial": polynomial, "no growth": polynomial}
    return laws.get(growth.verdict, f"{exponential}, or {polynomial}")


def likelier(growth: Growth) -> str:
    """Say which law is likelier and in how many draws, such as "exp. 98 %"; without runs to draw from no share."""
    share = growth.exponential_share
    if share is None or round(100 * share) == 50:
        return "-" if share is None else "even"
    name, most = ("exp.", share) if share > 0.5 else ("poly.", 1 - share)
    return name if growth.exponent is None or growth.exponent.low is None else f"{name} {100 * most:.0f} %"


def interval(estimate: Estimate) -> str:
    """Return a number with its interval, where it has one, such as "5.0 [4.6, 5.4]"."""
    numbers = [value for value in (estimate.value, estimate.low, estimate.high) if value is not None]
    value, *ends = (f"{number if abs(number) > NOTHING else 0:.3g}" for number in numbers)
    return f"{value} [{', '.join(ends)}]" if ends else value
