"""A still picture of ladders: episodes to learn a task by its size, one panel for each ladder, theory in black."""

from collections.abc import Sequence
from typing import Any

from theorybench.leaderboard.comparing.board import Board
from theorybench.leaderboard.comparing.ladders import Climb, LadderBoard, LawLine
from theorybench.leaderboard.showing.curves import agent_styles
from theorybench.leaderboard.showing.ladder_charts import WAYS, law_place, law_words, shown_range
from theorybench.leaderboard.showing.ladder_table import interval
from theorybench.leaderboard.showing.styles import INK, QUIET, RULE, Style

#: Inches of a panel; most panels in a row; inches of the key.
WIDTH, LEAST_WIDTH, HEIGHT, COLUMNS, KEY = 4.1, 8.2, 3.5, 3, 0.85
#: How the law of each way of learning is drawn.
LINES: dict[str, Any] = {"direct": (0, (1.2, 1.6)), "curriculum": (0, (5, 2.5))}
_MARKS = {"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "cross": "P", "x": "X"}


def ladder_figure(board: Board) -> Any:
    """Draw the ladders of a board; sizes are linear where theory's direct law is exponential, else logarithmic.

    Returns:
        A matplotlib Figure.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    styles = agent_styles(board)
    columns = min(COLUMNS, len(board.ladders))
    lines = -(-len(board.ladders) // columns)
    size = max(LEAST_WIDTH, WIDTH * columns), HEIGHT * lines + KEY
    # The key stands below the panels.
    engine = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.09, rect=(0, KEY / size[1], 1, 1 - KEY / size[1]))
    figure = Figure(figsize=size, layout=engine, dpi=130)
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    for place, (axes, ladder) in enumerate(zip(grid, board.ladders, strict=False)):
        _draw(axes, ladder, styles)
        if place % columns == 0:
            axes.set_ylabel(f"episodes to a score of {ladder.target:g}", fontsize=8, color=QUIET)
    for axes in grid[len(board.ladders) :]:
        axes.set_visible(False)
    _key(figure, board.ladders, styles)
    return figure


def _draw(axes: Any, ladder: LadderBoard, styles: dict[str, Style]) -> None:
    low, high = shown_range(ladder)
    axes.set_xscale("linear" if ladder.exponential else "log")
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.axhspan(ladder.budget, high, color=RULE, alpha=0.7, linewidth=0)
    axes.axhline(ladder.budget, color=QUIET, linewidth=0.7)
    place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "fontsize": 6.8}
    axes.annotate(f"not learnt within {ladder.budget:,}", (0, ladder.budget), (3, 3), va="bottom", color=QUIET, **place)
    for law in ladder.laws:
        axes.plot(law.sizes, law.queries, color=INK, linewidth=1.4, linestyle=LINES[law.way], zorder=4)
        _name_law(axes, law, ladder)
    _say_rates(axes, _direct_rates(ladder, styles))
    levels = ladder.missed_levels
    for climb in ladder.climbs:
        _climb(axes, climb, styles[climb.agent], ladder.budget, levels.get(climb.agent, 0.0))
    axes.set_xticks(ladder.sizes, [f"{size:.2g}" for size in ladder.sizes])
    axes.set_xticks([], minor=True)
    axes.set_yticks([], minor=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_title(ladder.label, loc="left", fontsize=10.5, fontweight="bold", color=INK, pad=18)
    axes.set_xlabel(ladder.size, fontsize=8, color=QUIET)
    axes.tick_params(length=0, labelsize=7.5, labelcolor=QUIET)
    axes.grid(color=RULE, linewidth=0.4)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(RULE)


def _name_law(axes: Any, law: LawLine, ladder: LadderBoard) -> None:
    from matplotlib.patheffects import withStroke

    size, episodes, side = law_place(law, ladder, linear=ladder.exponential)
    axes.annotate(
        law_words(law, ladder),
        (size, episodes),
        {"right": (6, 0), "left": (-6, 0), "below": (0, -5)}[side],
        textcoords="offset points",
        ha="left" if side == "right" else "right",
        va="top" if side == "below" else "center",
        fontsize=7.4,
        color=INK,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],
        zorder=5,
    )


def _direct_rates(ladder: LadderBoard, styles: dict[str, Style]) -> list[tuple[str, str]]:
    """Return how fast the cost of the agents grows that train on the full task alone, with their colours."""
    law = next((law for law in ladder.laws if law.way == "direct"), None)
    if law is None:
        return []
    words = []
    for climb in ladder.climbs:
        if climb.way == "direct":
            found = climb.growth.factor if law.growth == "exponential" else climb.growth.exponent
            said = f"stops at {climb.top:.2g}" if climb.top else "learns nothing"
            if found is not None:
                said = f"×{interval(found)} a unit" if law.growth == "exponential" else f"size^{interval(found)}"
            words.append((f"{climb.label} {said}", styles[climb.agent].colour))
    return words


def _say_rates(axes: Any, rates: Sequence[tuple[str, str]]) -> None:
    """Write them side by side between the title and the panel, each in its colour."""
    from matplotlib.offsetbox import AnnotationBbox, HPacker, TextArea

    said: list[Any] = [TextArea(words, textprops={"color": colour, "size": 7.4}) for words, colour in rates]
    row = HPacker(children=said, pad=0, sep=11)
    box = AnnotationBbox(
        row, (0, 1), (0, 4), "axes fraction", "offset points", box_alignment=(0, 0), frameon=False, pad=0
    )
    box.set_in_layout(False)
    axes.add_artist(box)


def _climb(axes: Any, climb: Climb, own: Style, budget: int, level: float) -> None:
    """Draw medians with the range of the runs, and hollow triangles where the median run did not arrive."""
    reached = [(p.size, p.median, p.fastest, p.slowest) for p in climb.points if p.median is not None]
    missed = [p.size for p in climb.points if p.median is None]
    direct = climb.way == "direct"
    for size, median, fastest, slowest in reached:
        axes.plot([size, size], [fastest or median, slowest or budget], color=own.colour, linewidth=1.1, alpha=0.5)
    axes.plot(
        [p[0] for p in reached],
        [p[1] for p in reached],
        color=own.colour,
        linewidth=2.4 if direct else 1.3,
        marker=_MARKS.get(own.symbol, "o"),
        markersize=5.2 if direct else 3.6,
        zorder=3 if direct else 2,
    )
    axes.plot(missed, [level] * len(missed), "^", color=own.colour, markerfacecolor="white", markersize=4.6)


def _key(figure: Any, ladders: Sequence[LadderBoard], styles: dict[str, Style]) -> None:
    """Name agents and lines below the panels, those of each way of learning together."""
    from matplotlib.lines import Line2D

    height = KEY / figure.get_figheight()
    named = {climb.agent: climb for ladder in ladders for climb in ladder.climbs}
    left = 0.012
    for way, title in WAYS.items():
        handles: list[Any] = [
            Line2D(
                [],
                [],
                color=styles[id].colour,
                marker=_MARKS.get(styles[id].symbol, "o"),
                markersize=5.2 if way == "direct" else 3.6,
                linewidth=2.4 if way == "direct" else 1.3,
                label=climb.label,
            )
            for id, climb in sorted(named.items(), key=lambda item: item[1].label)
            if climb.way == way
        ]
        if any(law.way == way for ladder in ladders for law in ladder.laws):
            handles.append(Line2D([], [], color=INK, linestyle=LINES[way], linewidth=1.4, label="theory"))
        if not handles:
            continue
        columns = -(-len(handles) // 3)
        _legend(figure, handles, title, (left, height), columns)
        left += (1.75 * columns + 0.25) / figure.get_figwidth()
    said = {"|": "fastest to slowest run; marks: the median run", "^": "the median run did not learn it"}
    marks = [
        Line2D([], [], color=QUIET, marker=marker, markerfacecolor="white", markersize=size, linestyle="", label=label)
        for (marker, label), size in zip(said.items(), (9, 4.6), strict=True)
    ]
    _legend(figure, marks, "Marks", (left, height), 1)


def _legend(figure: Any, handles: Sequence[Any], title: str, place: tuple[float, float], columns: int) -> None:
    """Add one part of the key, its upper left corner at a place of the figure."""
    legend = figure.legend(
        handles=handles,
        title=title,
        loc="upper left",
        bbox_to_anchor=place,
        ncols=columns,
        frameon=False,
        fontsize=8,
        title_fontproperties={"size": 8, "weight": "bold"},
        alignment="left",
        labelcolor=INK,
        borderaxespad=0,
    )
    legend.set_in_layout(False)
