"""Renderings derived from tokens: `ansi` text and `rgb_array` pictures."""

import io
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from theorybench.envs.core.arrays import to_numpy

if TYPE_CHECKING:
    from theorybench.envs.core.batch import Batch

#: Token boxes in a line of a picture, and actions whose reference probabilities are drawn.
_PER_LINE, _MOST_BARS = 12, 24
_INK, _QUIET, _EDGE, _EMPTY = "#1b2733", "#5b6b7b", "#c9d0d8", "#f4f5f7"
_PROMPT, _RESPONSE, _BAR = "#dbe4f0", "#f6dfc4", "#7f9cc0"


class Last(NamedTuple):
    """The last step of an environment: its action (one number, or a pair) and reward."""

    action: Any
    reward: float


class _Seen(NamedTuple):
    """What both renderings show."""

    title: str
    prompt: list[str]
    response: list[str]
    legal: np.ndarray
    status: str


def _see(batch: "Batch", i: int, last: Last | None) -> _Seen:
    """Collect what is shown of environment i."""
    setting = batch.setting
    names = ["·" if token == 0 else setting.symbol_name(token - 1) for token in to_numpy(batch.observe())[i].tolist()]
    status = "ended" if bool(batch.ended[i]) else "running"
    if last is not None:
        chosen = " against ".join(setting.symbol_name(a) for a in np.ravel(last.action).tolist())
        status += f", last action {chosen}, reward {last.reward:g}"
    return _Seen(
        f"{setting.name}  prompt {int(batch.state.prompt[i])}  step {int(batch.steps[i])}/{setting.horizon}",
        names[: setting.prompt_length],
        names[setting.prompt_length :],
        np.flatnonzero(to_numpy(batch.masks())[i]),
        status,
    )


def ansi(batch: "Batch", i: int, last: Last | None) -> str:
    """Describe environment i in five lines of text."""
    seen = _see(batch, i, last)
    legal = [batch.setting.symbol_name(int(action)) for action in seen.legal]
    legal = legal if len(legal) <= 16 else [*legal[:8], "…", *legal[-4:]]
    rows = (("prompt", seen.prompt), ("response", seen.response), ("legal", legal), ("status", [seen.status]))
    return "\n".join([seen.title] + [f"  {label:<9}{' '.join(values) or '(empty)'}" for label, values in rows])


def rgb_array(batch: "Batch", i: int, last: Last | None) -> np.ndarray:
    """Draw environment i: prompt and response as token boxes, and what the reference would do next.

    Returns:
        uint8 (height, width, 3).
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    seen, num_actions = _see(batch, i, last), batch.setting.num_actions
    lines = [
        (label if start == 0 else "", names[start : start + _PER_LINE], colour)
        for label, names, colour in (("prompt", seen.prompt, _PROMPT), ("response", seen.response, _RESPONSE))
        for start in range(0, max(len(names), 1), _PER_LINE)
    ]
    bars = num_actions <= _MOST_BARS and not bool(batch.ended[i])
    height = len(lines) + (2.4 if bars else 0.6)
    figure = Figure(figsize=(7.2, 0.6 * (height + 1.0)), dpi=100, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(-2.2, _PER_LINE + 0.3)
    axes.set_ylim(-height, 1.0)
    axes.axis("off")
    axes.text(-2.0, 0.45, seen.title, fontsize=11, weight="bold", va="center", color=_INK)
    for line, (label, names, colour) in enumerate(lines):
        axes.text(-2.0, -line - 0.5, label, fontsize=10, va="center", color=_QUIET)
        _boxes(axes, line, names, colour)
    if bars:
        observation = to_numpy(batch.observe())[i : i + 1]
        _reference_bars(axes, -len(lines) - 1.5, batch.setting, batch.setting.reference_probs(observation)[0])
    axes.text(-2.0, 0.25 - height, seen.status, fontsize=10, va="center", color=_INK)
    buffer = io.BytesIO()
    canvas.print_rgba(buffer)
    width, pixels = canvas.get_width_height()
    return np.frombuffer(buffer.getvalue(), np.uint8).reshape(pixels, width, 4)[:, :, :3].copy()


def _boxes(axes: Any, line: int, names: list[str], colour: str) -> None:
    """Draw one line of tokens."""
    from matplotlib.patches import FancyBboxPatch

    for column, name in enumerate(names):
        corner, style = (column + 0.06, -line - 0.88), "round,pad=0,rounding_size=0.12"
        face = _EMPTY if name == "·" else colour
        axes.add_patch(FancyBboxPatch(corner, 0.88, 0.76, boxstyle=style, facecolor=face, edgecolor=_EDGE))
        size = 10 if len(name) <= 4 else 7
        axes.text(column + 0.5, -line - 0.5, name, fontsize=size, ha="center", va="center", color=_INK)


def _reference_bars(axes: Any, floor: float, setting: Any, probs: np.ndarray) -> None:
    """Draw the reference's probabilities of the next action, 0.9 high for certainty."""
    wide = min(1.0, _PER_LINE / len(probs))
    places = wide * (np.arange(len(probs)) + 0.5)
    axes.text(-2.0, floor + 0.45, "reference", fontsize=10, va="center", color=_QUIET)
    axes.bar(places, 0.9 * probs, 0.7 * wide, bottom=floor, color=_BAR)
    axes.plot([0, wide * len(probs)], [floor, floor], color=_EDGE, linewidth=1)
    for action, place in enumerate(places):
        axes.text(place, floor - 0.22, setting.symbol_name(action), fontsize=8, ha="center", va="center", color=_QUIET)
