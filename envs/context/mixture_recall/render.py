"""Renderings of a running environment of mixture recall: what was read at each sharpness."""

from typing import Any

from theorybench.envs.context.mixture_recall.mixture import SOURCES
from theorybench.envs.context.mixture_recall.setting import KINDS, MixtureRecall
from theorybench.envs.core.environments.canvas import GIVEN, SAID, CellRow, draw_page
from theorybench.envs.core.environments.canvas import Cell as Box
from theorybench.envs.core.environments.render import Renderer, Scene, described, headline, status

#: The values that are read.
VALUES = ("-3", "-1", "1", "3")


class MixtureRecallRenderer(Renderer):
    """How sharply is attended, how much leaks, and how often each value was read."""

    def text(self, setting: MixtureRecall, scene: Scene) -> str:
        """Describe an episode."""
        sources, sharpness, counts = _board(setting, scene)
        rows = [
            ("sources", f"{sources}, one of which is asked for"),
            ("level", f"sharpness {sharpness} of {setting.levels}, leak {setting.leaks(sources)[sharpness]:.2f}"),
            *((f"at {level}", _told(own)) for level, own in enumerate(counts)),
            ("status", status(setting, scene)),
        ]
        return described(setting, scene, rows)

    def picture(self, setting: MixtureRecall, figure: Any, scene: Scene) -> None:
        """Draw the leak as a meter, and a row of counts for each sharpness."""
        sources, sharpness, counts = _board(setting, scene)
        leaks = setting.leaks(sources)
        rows = [
            CellRow("leak", share=float(leaks[sharpness]), words=f"{leaks[sharpness]:.2f} at sharpness {sharpness}"),
            CellRow("value", tuple(Box(value, None) for value in VALUES), width=1.5),
        ]
        for level, own in enumerate(counts):
            boxes = tuple(Box(str(count) if count else "·", SAID if level == sharpness else GIVEN) for count in own)
            rows.append(CellRow(f"at {level}", boxes, width=1.5, words="now" if level == sharpness else ""))
        draw_page(figure, headline(setting, scene), rows, None, f"{sources} sources. {status(setting, scene)}")


def _board(setting: MixtureRecall, scene: Scene) -> tuple[int, int, list[list[int]]]:
    """Return the number of sources, the sharpness, and how often each value was read at each sharpness.

    An answer clears the board: the sharpness is all that is left of it.
    """
    sources, levels = SOURCES[int(scene.state.prompt[0]) // 2], setting.levels + 1
    if scene.ended:
        ending = int(scene.state.node[0]) - setting.problem.num_nodes
        return sources, ending // (setting.readings + 1) % levels, [[0] * KINDS] * levels
    shown = (scene.observation.astype(int) - setting.num_actions - 1).tolist()
    return sources, shown[1], [shown[2 + KINDS * level :][:KINDS] for level in range(levels)]


def _told(counts: list[int]) -> str:
    return ", ".join(f"{value}: {count}" for value, count in zip(VALUES, counts, strict=True) if count) or "nothing"
