"""Renderings derived from tokens: `ansi` text and `rgb_array` pictures."""

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from theorybench.envs.core.arrays import to_numpy

if TYPE_CHECKING:
    from theorybench.envs.core.batch import Batch


def token_name(setting: Any, token: int) -> str:
    """Name a token: the setting's own word (`symbol_name`), or the symbol's number."""
    if token == 0:
        return "·"
    name = getattr(setting, "symbol_name", None)
    return str(token - 1) if name is None else name(token - 1)


def _view(batch: "Batch", i: int, reward: float | None) -> dict[str, Any]:
    """Collect what both renderings show of environment i."""
    setting = batch.setting
    tokens = to_numpy(batch.observe())[i].tolist()
    mask = to_numpy(batch.masks())[i]
    ended = bool(batch.ended[i])
    names = [token_name(setting, token) for token in tokens]
    return {
        "title": f"{setting.name}  prompt {int(batch.state.prompt[i])}  step {int(batch.steps[i])}/{setting.horizon}",
        "prompt": names[: setting.prompt_length],
        "response": names[setting.prompt_length :],
        "legal": [token_name(setting, int(a) + 1) for a in np.flatnonzero(mask)],
        "status": ("ended" if ended else "running") + ("" if reward is None else f", reward {reward:g}"),
    }


def ansi(batch: "Batch", i: int, reward: float | None) -> str:
    """Describe environment i in five lines of text."""
    seen = _view(batch, i, reward)
    legal = seen["legal"] if len(seen["legal"]) <= 16 else [*seen["legal"][:8], "…", *seen["legal"][-4:]]
    rows = (("prompt", seen["prompt"]), ("response", seen["response"]), ("legal", legal))
    lines = [seen["title"]] + [f"  {label:<9}{' '.join(values) or '(empty)'}" for label, values in rows]
    return "\n".join([*lines, f"  {'status':<9}{seen['status']}"])


def rgb_array(batch: "Batch", i: int, reward: float | None) -> np.ndarray:
    """Draw environment i: prompt and response as rows of token boxes; uint8 (height, width, 3)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

    seen = _view(batch, i, reward)
    rows = [("prompt", seen["prompt"], "#dbe4f0"), ("response", seen["response"], "#f6dfc4")]
    per_line = 12
    lines = [
        (label if start == 0 else "", names[start : start + per_line], colour)
        for label, names, colour in rows
        for start in range(0, max(len(names), 1), per_line)
    ]
    figure = Figure(figsize=(7.2, 1.0 + 0.62 * len(lines)), dpi=100, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(-2.2, per_line + 0.3)
    axes.set_ylim(-len(lines) - 0.7, 1.0)
    axes.axis("off")
    axes.text(-2.0, 0.45, seen["title"], fontsize=11, weight="bold", va="center", color="#1b2733")
    for line, (label, names, colour) in enumerate(lines):
        axes.text(-2.0, -line - 0.5, label, fontsize=10, va="center", color="#5b6b7b")
        for column, name in enumerate(names):
            empty = name == "·"
            box = FancyBboxPatch(
                (column + 0.06, -line - 0.88),
                0.88,
                0.76,
                boxstyle="round,pad=0,rounding_size=0.12",
                facecolor="#f4f5f7" if empty else colour,
                edgecolor="#c9d0d8",
            )
            axes.add_patch(box)
            size = 10 if len(name) <= 4 else 7
            axes.text(column + 0.5, -line - 0.5, name, fontsize=size, ha="center", va="center", color="#1b2733")
    axes.text(-2.0, -len(lines) - 0.35, seen["status"], fontsize=10, va="center", color="#1b2733")
    buffer = io.BytesIO()
    canvas.print_rgba(buffer)
    width, height = canvas.get_width_height()
    return np.frombuffer(buffer.getvalue(), np.uint8).reshape(height, width, 4)[:, :, :3].copy()
