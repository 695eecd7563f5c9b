"""What was found, drawn: singular values and cuts, prompt tokens as aligned strips, p-values."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from theorybench.leaderboard.diagnosing.finding import Finding
from theorybench.leaderboard.showing.still import bare
from theorybench.leaderboard.showing.styles import COLOURS, INK, LINE_COLOUR, QUIET

#: Inches below which panels stand below each other; of a panel, of a row of a strip; between names of tokens.
NARROW, PANEL, ROW, NAME = 7.0, 2.5, 0.17, 0.125
#: Points of text; singular values that are drawn, and how far below the largest.
FONT, SINGULAR, DEPTH = 8.5, 40, 1e-5
#: Colours of the policy, of the optimum, and of what the setting says.
OWN, BEST, GIVEN = COLOURS[0], LINE_COLOUR, COLOURS[1]


class Drawing(NamedTuple):
    """How findings are drawn: how high that is in inches, given the width, and what draws them on a sub-figure."""

    height: Callable[[Sequence[Finding], float], float]
    draw: Callable[[Any, Sequence[Finding], float], None]


def draw_parts(parts: Sequence[tuple[Drawing, Sequence[Finding]]], title: str, width: float) -> Any:
    """Draw parts below each other as one matplotlib Figure, `width` inches wide."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    heights = [drawing.height(findings, width) for drawing, findings in parts]
    with rc_context({"text.parse_math": False, "font.size": FONT}):
        figure = Figure(figsize=(width, sum(heights) + 0.35), layout="constrained", dpi=150)
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold", color=INK)
        places = np.atleast_1d(figure.subfigures(len(parts), 1, height_ratios=heights))
        for place, (drawing, findings) in zip(places, parts, strict=True):
            drawing.draw(place, findings, width)
    return figure


def _panels(place: Any, width: float) -> tuple[Any, Any]:
    """Return the axes of two panels, side by side where there is room."""
    first, second = place.subplots(2, 1) if width < NARROW else place.subplots(1, 2)
    return first, second


def _double(findings: Sequence[Finding], width: float) -> float:
    return 2 * PANEL if width < NARROW else PANEL


def _titled(axes: Any, title: str, x: str, y: str = "") -> None:
    axes.set_title(title, loc="left", color=INK, fontsize="medium")
    axes.set_xlabel(x, color=QUIET)
    axes.set_ylabel(y, color=QUIET)
    bare(axes)


def _key(axes: Any) -> None:
    axes.legend(frameon=False, labelcolor=INK, fontsize="small", handlelength=1.6, borderaxespad=0.2)


def _memory(place: Any, findings: Sequence[Finding], width: float) -> None:
    """Draw singular values on a log axis with a line at the minimal rank, and ranks by cut."""
    (curves,) = (one.curves for one in findings)
    values, cuts = _panels(place, width)
    least, largest = curves["minimal_rank"], 1e-9
    for name, colour, mark in (("optimum_singular_values", BEST, "s"), ("singular_values", OWN, "o")):
        shown = np.array(curves[name][:SINGULAR])
        largest = max(largest, float(shown.max(initial=0.0)))
        shown = np.where(shown > DEPTH * largest, shown, np.nan)
        label = "the optimum" if name.startswith("optimum") else "the policy"
        label += "" if np.isfinite(shown).any() else ": all 0"
        values.semilogy(np.arange(1, len(shown) + 1), shown, mark, color=colour, markersize=3.5, label=label)
    if least is not None:
        values.axvline(least + 0.5, color=GIVEN, linewidth=1, linestyle="--", label=f"the least that serves: {least}")
    values.set_xlim(0.4, max(6.0, min(SINGULAR, len(curves["singular_values"])) + 0.6))
    values.set_ylim(DEPTH * largest, 3 * largest)
    _titled(values, "memory: what goes over the cut", "number of the singular value", "singular value")
    _key(values)
    cuts.plot(curves["cuts"], curves["optimum_ranks"], color=BEST, marker="s", markersize=3.5, label="the optimum")
    cuts.plot(curves["cuts"], curves["ranks"], color=OWN, marker="o", markersize=3.5, label="the policy")
    cuts.set_ylim(0, 1.1 * max(1, *curves["ranks"], *curves["optimum_ranks"]))
    _titled(cuts, "memory by cut", "tokens of the prompt before the cut", "rank at .1")
    _key(cuts)


def _rows(findings: Sequence[Finding]) -> list[tuple[str, np.ndarray, str]]:
    """Return the strips over one prompt: name, values, colours."""
    rows = []
    for one in findings:
        if one.diagnostic == "influence":
            rows.append(("influence", np.asarray(one.curves["strip"]["influence"], float), "Blues"))
        else:
            rows.append((_head(one), np.asarray(one.curves["strip"], float), "Oranges"))
    strip = next((one.curves["strip"] for one in findings if one.diagnostic == "influence"), {})
    if "parents" in strip:
        rows.append(("parents", np.asarray(strip["parents"], float), "Greys"))
    return rows


def _head(one: Finding) -> str:
    return ", ".join([one.asked["layer"], *(f"head {number}" for number in [one.asked.get("head")] if number)])


def _tokens_height(findings: Sequence[Finding], width: float) -> float:
    several = any(one.diagnostic == "attention" for one in findings)
    return (PANEL if not several else _double(findings, width)) + ROW * len(_rows(findings)) + 0.75


def _tokens(place: Any, findings: Sequence[Finding], width: float) -> None:
    """Draw influence, attention and parents as strips over one prompt, and their means by distance."""
    rows, below = _rows(findings), _tokens_height(findings, width) - ROW * len(_rows(findings)) - 0.75
    upper, lower = place.subfigures(2, 1, height_ratios=(ROW * len(rows) + 0.75, below))
    axes = upper.subplots(len(rows), 1, sharex=True, squeeze=False, gridspec_kw={"hspace": 0})[:, 0]
    for own, (name, values, colours) in zip(axes, rows, strict=True):
        own.imshow(values[None], cmap=colours, vmin=0, vmax=max(values.max(initial=0.0), 1e-9), aspect="auto")
        own.set_yticks([0], [name], color=INK, fontsize="small")
        own.tick_params(length=0, labelbottom=own is axes[-1])
        for side in own.spines.values():
            side.set_visible(False)
    axes[0].set_title("one prompt: darker is more", loc="left", color=INK, fontsize="medium")
    names = next((one.curves["strip"]["tokens"] for one in findings if one.diagnostic == "influence"), ())
    wide = NAME * max((len(name) for name in names), default=1) / 2 + NAME / 2
    every = max(1, int(np.ceil(len(names) * wide / max(width - 1.6, 1.0))))
    at = np.arange(len(names))[::-1][::every][::-1]
    axes[-1].set_xticks(at, [names[i] for i in at], fontsize="x-small", color=QUIET)
    heads = [one for one in findings if one.diagnostic == "attention"]
    panels = _panels(lower, width) if heads and len(heads) < len(findings) else (lower.subplots(),) * 2
    for one in findings:
        if one.diagnostic == "influence":
            _by_distance(panels[0], one)
    for number, one in enumerate(heads):
        shown = np.asarray(one.curves["attention"], float)
        layer = [other.asked["layer"] for other in heads].index(one.asked["layer"])
        look = {"color": COLOURS[number % len(COLOURS)], "linewidth": 1.2, "linestyle": "-" if not layer else "--"}
        panels[1].plot(np.arange(len(shown)), shown, label=_head(one), **look)
    if heads:
        _titled(panels[1], "attention by distance", "tokens between it and the prompt's end", "mean weight")
        _key(panels[1])


def _by_distance(axes: Any, one: Finding) -> None:
    curves = one.curves
    shown = {"the optimum": ("optimum_influence", BEST, "-"), "the policy": ("influence", OWN, "-")}
    if "parents" in curves:
        shown["share of parents"] = ("parents", GIVEN, ":")
    for label, (name, colour, dash) in shown.items():
        axes.plot(curves["distances"], curves[name], color=colour, linestyle=dash, linewidth=1.4, label=label)
    axes.set_ylim(bottom=0)
    _titled(axes, "influence by distance", "tokens between it and the prompt's end", "mean total variation")
    _key(axes)


def _flow(place: Any, findings: Sequence[Finding], width: float) -> None:
    """Draw p-values on a log axis."""
    axes = place.subplots()
    names = [", ".join(one.asked.values()) for one in findings]
    found = [one.values["p_value"] for one in findings]
    axes.axvline(0.05, color=GIVEN, linewidth=1, linestyle="--")
    axes.semilogx(found, np.arange(len(found)), "o", color=OWN)
    axes.set_yticks(np.arange(len(found)), names, color=INK)
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_xlim(min(5e-4, *found, 1.0), 1.3)
    _titled(axes, "zero-flow: does the summary remember enough? Left of the line: refuted", "p-value")


def _flow_height(findings: Sequence[Finding], width: float) -> float:
    return 1.0 + 0.25 * len(findings)


def _path(place: Any, findings: Sequence[Finding], width: float) -> None:
    """Draw bound, drop and gap against time, and the kernel with its samples ordered by label."""
    (curves,) = (one.curves for one in findings)
    lines, cells = _panels(place, width)
    for name, label, colour in (("bounds", "the bound", GIVEN), ("drops", "training drop", BEST), ("gaps", "gap", OWN)):
        if len(curves[name]):
            lines.plot(curves["times"], curves[name], color=colour, linewidth=1.4, label=label)
    _titled(lines, "path: what the run makes", "time of the flow", "loss")
    _key(lines)
    kernel = np.asarray(curves["kernel"])
    largest = max(float(np.abs(kernel).max()), 1e-300)
    cells.imshow(kernel, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto")
    _titled(cells, "the kernel: red samples help each other", "samples, by label", "samples, by label")


MEMORY = Drawing(_double, _memory)
TOKENS = Drawing(_tokens_height, _tokens)
PATH = Drawing(_double, _path)
FLOW = Drawing(_flow_height, _flow)
