"""Renderings: `ansi` text and `rgb_array` pictures, from tokens unless a setting is registered with a renderer."""

import io
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from theorybench.envs.core.arrays import to_numpy
from theorybench.envs.core.dynamics import Dynamics
from theorybench.envs.core.environments.batch import Batch
from theorybench.envs.core.errors import ParameterError

#: Token boxes in a line of a picture, and actions whose reference probabilities are drawn.
_PER_LINE, _MOST_BARS = 12, 24
_INK, _QUIET, _EDGE, _EMPTY = "#1b2733", "#5b6b7b", "#c9d0d8", "#f4f5f7"
_PROMPT, _RESPONSE, _BAR = "#dbe4f0", "#f6dfc4", "#7f9cc0"


class Last(NamedTuple):
    """The last step of an environment: its action (one number, or a pair) and reward."""

    action: Any
    reward: float


class Scene(NamedTuple):
    """One environment, as it is drawn."""

    state: Any  # the State of this environment alone, a batch of one on NumPy
    observation: np.ndarray  # its tokens, int (tokens,)
    legal: np.ndarray  # bool (num_actions,)
    step: int  # actions taken in this episode
    ended: bool  # whether the episode has ended
    last: Last | None  # the last step; None after a reset


class Renderer:
    """How a setting is drawn: its tokens, where a subclass says nothing else. `register` takes one of these."""

    def text(self, setting: Any, scene: Scene) -> str:
        """Describe an environment in lines of at most 80 columns (`ansi`): its tokens, in five."""
        prompt, response = _tokens(setting, scene)
        legal = [setting.symbol_name(int(action)) for action in np.flatnonzero(scene.legal)]
        legal = legal if len(legal) <= 16 else [*legal[:8], "…", *legal[-4:]]
        rows = (("prompt", prompt), ("response", response), ("legal", legal), ("status", [status(setting, scene)]))
        return described(setting, scene, [(label, " ".join(values) or "(empty)") for label, values in rows])

    def picture(self, setting: Any, figure: Any, scene: Scene) -> None:
        """Draw an environment on an empty matplotlib Figure and set its size (`rgb_array`).

        Prompt and response are boxes of tokens; bars are what the reference would do next.
        """
        prompt, response = _tokens(setting, scene)
        lines = [
            (label if start == 0 else "", names[start : start + _PER_LINE], colour)
            for label, names, colour in (("prompt", prompt, _PROMPT), ("response", response, _RESPONSE))
            for start in range(0, max(len(names), 1), _PER_LINE)
        ]
        bars = setting.num_actions <= _MOST_BARS and not scene.ended
        height = len(lines) + (2.4 if bars else 0.6)
        figure.set_size_inches(7.2, 0.6 * (height + 1.0))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(-2.2, _PER_LINE + 0.3)
        axes.set_ylim(-height, 1.0)
        axes.axis("off")
        axes.text(-2.0, 0.45, headline(setting, scene), fontsize=11, weight="bold", va="center", color=_INK)
        for line, (label, names, colour) in enumerate(lines):
            axes.text(-2.0, -line - 0.5, label, fontsize=10, va="center", color=_QUIET)
            _boxes(axes, line, names, colour)
        if bars:
            _reference_bars(axes, -len(lines) - 1.5, setting, setting.reference_probs(scene.observation[None])[0])
        axes.text(-2.0, 0.25 - height, status(setting, scene), fontsize=10, va="center", color=_INK)

    def policies(self, setting: Any, policies: Mapping[str, Any]) -> Any:
        """Draw policies side by side: see `policy_picture`."""
        raise ParameterError("setting", type(setting).__name__, "one that draws policies, such as TreeMarkovChain")


#: The renderers of Setting classes; subclasses share them.
RENDERERS: dict[type, Renderer] = {}


def renderer_of(setting: Dynamics) -> Renderer:
    """Return the renderer that was registered for the class of a setting or the closest base class."""
    return next((RENDERERS[cls] for cls in type(setting).__mro__ if cls in RENDERERS), Renderer())


def policy_picture(setting: Dynamics, policies: Mapping[str, Any]) -> Any:
    """Draw policies side by side, where the setting has a picture of what a policy does.

    Args:
        setting: the setting.
        policies: any objects with `probs`, by name.

    Returns:
        A matplotlib Figure; `figure_svg` writes it as SVG.

    Raises:
        ParameterError: this setting has no such picture.
    """
    return renderer_of(setting).policies(setting, policies)


def _scene(batch: Batch, i: int, last: Last | None) -> Scene:
    """Copy what is drawn of environment i."""
    state = type(batch.state)(*(np.array(to_numpy(field[i : i + 1])) for field in batch.state))
    observation, legal = to_numpy(batch.observe())[i], to_numpy(batch.masks())[i]
    return Scene(state, observation, legal, int(batch.steps[i]), bool(batch.ended[i]), last)


def ansi(batch: Batch, i: int, last: Last | None) -> str:
    """Describe environment i in text."""
    return renderer_of(batch.setting).text(batch.setting, _scene(batch, i, last))


def rgb_array(batch: Batch, i: int, last: Last | None) -> np.ndarray:
    """Draw environment i.

    Returns:
        uint8 (height, width, 3).
    """
    from matplotlib.figure import Figure

    figure = Figure(dpi=100, facecolor="white")
    renderer_of(batch.setting).picture(batch.setting, figure, _scene(batch, i, last))
    return figure_pixels(figure)


def figure_pixels(figure: Any) -> np.ndarray:
    """Draw a matplotlib Figure: uint8 (height, width, 3)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    buffer = io.BytesIO()
    canvas.print_rgba(buffer)
    width, height = canvas.get_width_height()
    return np.frombuffer(buffer.getvalue(), np.uint8).reshape(height, width, 4)[:, :, :3].copy()


def figure_svg(figure: Any) -> str:
    """Write a matplotlib Figure as SVG text that is the same every time, and can stand inside a page."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": "theorybench"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def headline(setting: Dynamics, scene: Scene) -> str:
    """Say which episode a scene is of: setting, prompt and step."""
    return f"{setting.name}  prompt {int(scene.state.prompt[0])}  step {scene.step}/{setting.horizon}"


def status(setting: Dynamics, scene: Scene) -> str:
    """Say whether the episode runs, and what its last step was."""
    words = "ended" if scene.ended else "running"
    if scene.last is not None:
        chosen = " against ".join(setting.symbol_name(a) for a in np.ravel(scene.last.action).tolist())
        words += f", last action {chosen}, reward {scene.last.reward:g}"
    return words


def described(setting: Dynamics, scene: Scene, rows: Iterable[tuple[str, str]]) -> str:
    """Write a headline and a line for each row (label, words) that has words."""
    return "\n".join([headline(setting, scene)] + [f"  {label:<9}{words}" for label, words in rows if words])


def _tokens(setting: Dynamics, scene: Scene) -> tuple[list[str], list[str]]:
    """Name the tokens of the prompt and of the response."""
    names = ["·" if token == 0 else setting.symbol_name(token - 1) for token in scene.observation.tolist()]
    return names[: setting.prompt_length], names[setting.prompt_length :]


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
