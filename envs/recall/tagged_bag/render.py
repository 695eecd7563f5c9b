"""Renderings of a bag of readings: what each source has shown, which one is asked about, and its posterior."""

from typing import Any

import numpy as np

from theorybench.envs.core.environments.canvas import GIVEN, SAID, Bars, Cell, CellRow, draw_page
from theorybench.envs.core.environments.render import Renderer, Scene, described, headline, status
from theorybench.envs.recall.tagged_bag.setting import TaggedBag


class TaggedBagRenderer(Renderer):
    """A row for each source, with how often it showed each symbol; the posterior of the one asked about as bars."""

    def text(self, setting: TaggedBag, scene: Scene) -> str:
        """Describe an episode."""
        asked, shown = _read(setting, scene)
        rows = [
            *(
                (f"source {i}", "  ".join(f"{name} {count or '·'}" for name, count in own) + "   asked" * (i == asked))
                for i, own in enumerate(shown)
            ),
            ("hidden", _favourites(setting)),
            ("belief", ", ".join(f"{name} {p:.3f}" for name, p in zip(*_posterior(setting, scene), strict=True))),
            ("truth", f"{setting.symbol_name(int(scene.state.answers[0, 0]))}, hidden from the agent"),
            ("status", status(setting, scene)),
        ]
        return described(setting, scene, rows)

    def picture(self, setting: TaggedBag, figure: Any, scene: Scene) -> None:
        """Draw the readings of each source, and the posterior."""
        asked, shown = _read(setting, scene)
        rows = []
        for i, own in enumerate(shown):
            boxes = tuple(
                Cell(f"{name} {count}" if count else "·", SAID if i == asked else GIVEN) for name, count in own
            )
            rows.append(CellRow(f"source {i}", boxes, words="asked" if i == asked else ""))
        rows.append(CellRow("hidden", words=_favourites(setting)))
        names, heights = _posterior(setting, scene)
        chosen = () if scene.last is None else (int(scene.last.action),)
        bars = Bars("posterior", names, heights, chosen)
        draw_page(figure, headline(setting, scene), rows, bars, status(setting, scene))


def _read(setting: TaggedBag, scene: Scene) -> tuple[int, list[list[tuple[str, int]]]]:
    """Return the source asked about, and how often each source showed each symbol."""
    seen = scene.observation[None]
    readings = scene.observation[: setting.n].astype(np.int64) - (setting.C + 1)
    cells = setting.I * setting.Z
    counts = np.bincount(readings[readings >= 0], minlength=cells).reshape(setting.I, setting.Z)
    names = [chr(ord("a") + symbol) for symbol in range(setting.Z)]
    return int(setting.asked(seen)[0]), [list(zip(names, own, strict=True)) for own in counts.tolist()]


def _posterior(setting: TaggedBag, scene: Scene) -> tuple[list[str], np.ndarray]:
    """Return the names of types, and how likely each is."""
    return [setting.symbol_name(c) for c in range(setting.C)], setting.posterior(scene.observation[None])[0]


def _favourites(setting: TaggedBag) -> str:
    pairs = (f"{setting.symbol_name(c)} {chr(ord('a') + z)}" for c, z in enumerate(setting.tables.favourites.tolist()))
    return f"favourites are {', '.join(pairs)}"
