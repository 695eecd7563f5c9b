"""Ladders in words: what tables say of the growth of each agent's cost."""

from typing import NamedTuple

from theorybench.leaderboard.ladders import Climb, LadderBoard
from theorybench.leaderboard.ranking import Estimate


class Cells(NamedTuple):
    """What a row says of an agent; a dash where it is not known.

    Attributes:
        agent: its label.
        way: "direct" or "curriculum".
        top: the largest size at which the median run arrived.
        episodes: of the median run there.
        growth: the likelier law with its rate, or both where that is undecided.
        theory: the rate of theory's law on the rungs that the agent climbed.
    """

    agent: str
    way: str
    top: str
    episodes: str
    growth: str
    theory: str


#: Heads of the columns, in the order of `Cells`, and whether they are numbers.
HEADS = (
    ("agent", False),
    ("way", False),
    ("top", True),
    ("episodes", True),
    ("growth of cost", False),
    ("theory", False),
)


def rows(ladder: LadderBoard) -> list[Cells]:
    """Return what a table says of the agents of a ladder."""
    grows = {law.way: law.growth for law in ladder.laws}
    return [_cells(climb, grows.get(climb.way)) for climb in ladder.climbs]


def _cells(climb: Climb, law: str | None) -> Cells:
    median = next((p.median for p in climb.points if p.size == climb.top and p.median is not None), None)
    theory = "-"
    if climb.theory is not None:
        theory = f"x {climb.theory[0]:.3g} a unit" if law == "exponential" else f"size^{climb.theory[1]:.3g}"
    return Cells(
        climb.label,
        climb.way,
        f"{climb.top:g}" if climb.top else "-",
        "-" if median is None else f"{median:,.0f}",
        _growth(climb),
        theory,
    )


def _growth(climb: Climb) -> str:
    """Return the law of an agent's cost, such as "x 5.0 [4.6, 5.4] a unit" or "size^1.0 [0.9, 1.2]"."""
    growth = climb.growth
    if growth.factor is None or growth.exponent is None:
        return growth.verdict
    exponential, polynomial = f"x {_rate(growth.factor)} a unit", f"size^{_rate(growth.exponent)}"
    laws = {"exponential": exponential, "polynomial": polynomial}
    return laws.get(growth.verdict, f"{exponential}, or {polynomial}")


def _rate(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3g}"
    return f"{estimate.value:.3g} [{estimate.low:.3g}, {estimate.high:.3g}]"
