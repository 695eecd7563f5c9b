"""Renderings of a running environment of memories: the bits, and which orders are open since when."""

from typing import Any

import numpy as np

from theorybench.envs.context.memory_order.setting import MemoryOrder
from theorybench.envs.core.environments.canvas import GIVEN, SAID, Cell, CellRow, draw_page
from theorybench.envs.core.environments.render import Renderer, Scene, described, headline, status


class MemoryOrderRenderer(Renderer):
    """The text, and below it what each memory holds: the places since it was opened."""

    def text(self, setting: MemoryOrder, scene: Scene) -> str:
        """Describe an episode."""
        bits, since = _board(setting, scene)
        rows = [
            ("bits", " ".join(_spelt(setting, bits))),
            *((f"order {k}", " ".join(_held(setting, bits, k, opened)) + _told(opened)) for k, opened in since),
            ("hidden", _posterior(setting, scene, bits)),
            ("status", status(setting, scene)),
        ]
        return described(setting, scene, rows)

    def picture(self, setting: MemoryOrder, figure: Any, scene: Scene) -> None:
        """Draw a box for each bit, and for each order the places whose pairs it holds."""
        bits, since = _board(setting, scene)
        width = min(1.0, 11 / setting.T)
        rows = [CellRow("bits", tuple(Cell(bit, GIVEN) for bit in _spelt(setting, bits)), width)]
        for k, opened in since:
            boxes = tuple(Cell(mark, SAID) for mark in _held(setting, bits, k, opened))
            rows.append(CellRow(f"order {k}", boxes, width))
        rows.append(CellRow("hidden", words=_posterior(setting, scene, bits)))
        draw_page(figure, headline(setting, scene), rows, None, status(setting, scene))


def _board(setting: MemoryOrder, scene: Scene) -> tuple[list[int], list[tuple[int, int | None]]]:
    """Return the bits, and for each order from the largest on the step at which it was opened, None where it is not.

    The end clears the board.
    """
    numbers = np.maximum(scene.observation.astype(int) - setting.num_actions - 1, 0).tolist()
    bits = [number - 1 for number in numbers[: setting.T] if number]
    since = enumerate(numbers[setting.T :], 1)
    return bits, [(k, opened - 1 if opened else None) for k, opened in since][::-1]


def _spelt(setting: MemoryOrder, bits: list[int]) -> list[str]:
    return [*map(str, bits), *["·"] * (setting.T - len(bits))]


def _held(setting: MemoryOrder, bits: list[int], order: int, opened: int | None) -> list[str]:
    """Mark the places whose pairs a memory holds."""
    first = setting.T if opened is None else max(opened, order)
    return ["■" if first <= place < len(bits) else "·" for place in range(setting.T)]


def _told(opened: int | None) -> str:
    return "  closed" if opened is None else f"  open since step {opened}"


def _posterior(setting: MemoryOrder, scene: Scene, bits: list[int]) -> str:
    """Say how likely each order is."""
    if scene.ended:
        return "the text is over"
    row = 2 ** len(bits) - 1 + int("".join(map(str, bits)) or "0", 2)
    chances = setting.text.posterior(setting.weights)[row]
    return "by the bits, " + ", ".join(f"order {m}: {chance:.2f}" for m, chance in enumerate(chances, 1))
