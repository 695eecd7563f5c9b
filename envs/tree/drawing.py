"""Helpers shared by the drawings of the tree family: colours, a page in inches, and text that fits into it."""

from typing import Any

#: Colours of easy, hard and invalid steps.
COLOURS = ("#2f6fb0", "#e0701b", "#c5ccd4")
#: Colours of words of the same meaning: darker where the surface would be too pale to read.
WORDS = ("#2f6fb0", "#c75a0b", "#7d8794")
INK, QUIET, EASY_STEP, HARD_STEP = "#1b2733", "#5b6b7b", "#8f9cab", "#d3d9df"
#: Lengths of the dashes and gaps of a dashed line, in line widths.
DASHES = (3, 1.6)
#: Average width of a bold character, in inches per point of font size, and the smallest font size.
_EACH, _SMALLEST = 0.0094, 7.0


def page(figure: Any, width: float, height: float) -> Any:
    """Make one axes over a figure, with coordinates in inches from its lower left corner."""
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.axis("off")
    return axes


def fitting_size(words: str, width: float, size: float) -> float:
    """Return the font size, from 7 points up to `size`, at which bold words fit a width in inches."""
    return min(size, max(_SMALLEST, width / (_EACH * max(1, len(words)))))


def fitted(axes: Any, x: float, y: float, words: str, width: float, size: float) -> None:
    """Write bold words, truncated if they do not fit a width in inches even at the smallest font size."""
    size = fitting_size(words, width, size)
    most = round(width / (_EACH * size))
    words = words if len(words) <= most else words[: most - 1] + "…"
    axes.text(x, y, words, fontsize=size, color=INK, va="center", weight="bold", parse_math=False)
