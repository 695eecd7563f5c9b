"""Colours and marks: one map for pages, pictures and the terminal."""

import dataclasses
from collections.abc import Iterable

from theorybench.leaderboard.comparing.board import Board
from theorybench.leaderboard.comparing.ranking import REFERENCE_AGENT

#: Distinguishable for all kinds of colour vision, on white and on near-black (after Okabe and Ito 2008).
COLOURS = (
    "#0a7cc1",
    "#d55e00",
    "#009e73",
    "#cc6ba3",
    "#b8860b",
    "#8b6fd1",
    "#3aa6dd",
    "#a0522d",
    "#7a8a2a",
    "#d9436b",
)
#: Of what is no learner: the optimum, the reference.
LINE_COLOUR = "#868b94"
#: Text, quiet text and rules of still pictures. Pages draw what is in ink in the colour of their text.
INK, QUIET, RULE = "#16181d", "#6b7280", "#d5d9e0"
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")


@dataclasses.dataclass(frozen=True)
class Style:
    """How an agent or a group is drawn everywhere."""

    colour: str  # "#rrggbb"
    symbol: str  # of its markers, as plotly names it
    dash: str  # of its lines
    width: float = 1.0  # of its lines and markers, as a multiple of the usual one


def style(place: int) -> Style:
    """Return the style of the agent or group that has this place among those drawn together."""
    symbol = _SYMBOLS[(place + place // len(COLOURS)) % len(_SYMBOLS)]
    return Style(COLOURS[place % len(COLOURS)], symbol, "solid" if place < len(COLOURS) else "dot")


def group_styles(groups: Iterable[str]) -> dict[str, Style]:
    """Return each group a style, in their order."""
    return {group: style(place) for place, group in enumerate(groups)}


def agent_styles(board: Board) -> dict[str, Style]:
    """Return each agent of a board, by label, a style; privileged agents and the reference are grey lines."""
    lines = line_agents(board)
    styles = {a.label: Style(LINE_COLOUR, "line-ew", "dash" if a.privileged else "dot") for a in board.agents}
    return styles | group_styles(agent.label for agent in board.agents if agent.label not in lines)


def line_agents(board: Board) -> set[str]:
    """Return the labels of agents that lines stand for: those with the answer key, and the reference."""
    return {agent.label for agent in board.agents if agent.privileged or agent.agent == REFERENCE_AGENT}


def translucent(colour: str, opacity: float) -> str:
    """Return "rgba(...)" of a colour "#rrggbb"."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"
