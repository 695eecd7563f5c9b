"""Renderings of a running chain of thought on the reasoning tree."""

from theorybench.envs.core.environments.canvas import GIVEN, PER_LINE, SAID, Cell, CellRow
from theorybench.envs.core.environments.render import Renderer, Scene
from theorybench.envs.curriculum.reasoning_tree.setting import ReasoningTree


class ReasoningTreeRenderer(Renderer):
    """The bits, those that were picked, and the picks in their order."""

    def rows(self, setting: ReasoningTree, scene: Scene) -> list[CellRow]:
        """Show indices and bits, and the picks with the bits that they read."""
        names = ["·" if token == 0 else setting.symbol_name(token - 1) for token in scene.observation.tolist()]
        bits, picks = names[: setting.d], names[setting.d :]
        wide = min(1.0, 12 / setting.d)
        return [
            CellRow("index", tuple(Cell(f"i{number}", None) for number in range(setting.d)), wide),
            CellRow("bits x", tuple(Cell(b, SAID if f"i{n}" in picks else GIVEN) for n, b in enumerate(bits)), wide),
            *super().rows(setting, scene)[-(-len(bits) // PER_LINE) :],
        ]
