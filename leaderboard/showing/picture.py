"""Still pictures: of the ranking, for a README, and of what a policy does."""

import textwrap
from pathlib import Path
from typing import Any

from theorybench.envs.core.environments.render import policy_picture
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.policy import SettingPolicy
from theorybench.envs.core.registry import lookup
from theorybench.leaderboard.comparing.board import Board, Standing
from theorybench.leaderboard.comparing.ranking import Row
from theorybench.leaderboard.records.store import atomic_write
from theorybench.leaderboard.showing.curves import agent_styles
from theorybench.leaderboard.showing.styles import INK, QUIET, RULE

#: What a name may end with.
FORMATS = (".png", ".svg", ".pdf")


def picture(board: Board, path: str | Path) -> Path:
    """Draw scores with their intervals, one panel for each standing, and write a picture, atomically.

    A board that has ladders of difficulty alone shows these.

    Args:
        board: what is drawn.
        path: ends in .png, .svg or .pdf.

    Returns:
        The absolute path.

    Raises:
        ParameterError: another ending.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    path = checked_path(path)
    standings = [standing for standing in board.standings if standing.rows]
    if not standings:
        from theorybench.leaderboard.showing.ladder_picture import ladder_figure

        with rc_context({"text.parse_math": False}):
            return save(ladder_figure(board), path)
    columns = min(3, len(standings))
    lines = -(-len(standings) // columns)
    rows = max(sum(not row.privileged for row in standing.rows) for standing in standings)
    engine = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    figure = Figure(figsize=(4.6 * columns, lines * (0.9 + 0.27 * rows)), layout=engine, dpi=160)
    styles = {agent: style.colour for agent, style in agent_styles(board).items()}
    with rc_context({"text.parse_math": False}):
        grid = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes, standing in zip(grid, standings, strict=False):
            _draw(axes, standing, styles)
            axes.set_ylim(rows - 0.4, -0.6)
        for axes in grid[len(standings) :]:
            axes.set_visible(False)
    return save(figure, path)


def picture_of_policy(name: str, policy: Any, env_id: str, parameters: dict[str, Any], path: str | Path) -> Path:
    """Draw a policy beside the reference and write the picture, atomically.

    Args:
        name: what the policy is called.
        policy: any object with `probs`.
        env_id: the registered id of its environment.
        parameters: of the setting.
        path: ends in .png, .svg or .pdf.

    Returns:
        The absolute path.

    Raises:
        ParameterError: another ending, or a setting without pictures of policies.
    """
    path, setting = checked_path(path), lookup(env_id).make_setting(parameters)
    return save(policy_picture(setting, {"reference": SettingPolicy(setting, "reference"), name: policy}), path)


def checked_path(path: str | Path) -> Path:
    """Check the ending of a picture's name.

    Raises:
        ParameterError: another ending than .png, .svg or .pdf.
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise ParameterError("path", str(path), f"a name that ends in {', '.join(FORMATS)}")
    return path


def save(figure: Any, path: Path) -> Path:
    """Write a Figure atomically, the same bytes every time."""
    from matplotlib import rc_context

    kind = path.suffix.lower()[1:]
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with rc_context({"svg.hashsalt": "theorybench", "text.parse_math": False}), atomic_write(path, "wb") as file:
        figure.savefig(file, format=kind, metadata=metadata, facecolor="white")
    return path.resolve()


def _draw(axes: Any, standing: Standing, colours: dict[str, str]) -> None:
    """Draw one standing: the best agent above, optimum and reference as lines, unranked agents hollow."""
    rows = [row for row in standing.rows if not row.privileged]
    for level in (0.0, 1.0):
        axes.axvline(level, color=QUIET, linewidth=0.9, linestyle=":")
    for place, row in enumerate(rows):
        colour = colours[row.agent]
        if row.score.low is not None and row.score.high is not None:
            ends = [row.score.low, row.score.high]
            axes.plot(ends, [place, place], color=colour, linewidth=6, alpha=0.35, solid_capstyle="butt")
        filling = colour if row.rank else "white"
        axes.plot(row.score.value, place, "o", color=colour, markersize=5.5, markerfacecolor=filling)
    axes.set_yticks(range(len(rows)), [_name(row) for row in rows])
    lowest = [row.score.value if row.score.low is None else row.score.low for row in rows]
    axes.set_xlim(min([-0.05, *lowest]) - 0.05, 1.05)
    above = axes.secondary_xaxis("top")
    above.set_xticks([0, 1], ["reference", "optimum"])
    above.tick_params(length=0, labelsize=7, labelcolor=QUIET, pad=1)
    above.spines["top"].set_visible(False)
    axes.set_title(standing.title, loc="left", fontsize=10, fontweight="bold", color=INK)
    axes.tick_params(length=0, labelsize=8, labelcolor=INK)
    axes.grid(axis="x", color=RULE, linewidth=0.5)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(RULE)


def _name(row: Row) -> str:
    """Return rank and label, shortened."""
    label = textwrap.shorten(row.label, 36, placeholder="...") if " " in row.label else row.label[:36]
    return f"{label}  {row.rank or '–'}"
