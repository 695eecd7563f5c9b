"""Renderings of streams of writes: which tokens are writes, which one counts, and what was answered."""

from typing import Any

import numpy as np

from theorybench.envs.core.environments.canvas import GIVEN, GOOD, SAID, Cell, CellRow
from theorybench.envs.core.environments.render import Renderer, Scene, described, status
from theorybench.envs.recall.last_write.setting import LastWrite

#: Tokens in a row of a picture, and in a line of text.
_BOXES, _NAMES = 32, 16


class LastWriteRenderer(Renderer):
    """The stream: writes in green, decoys and fillers in grey, the write that counts in orange."""

    def text(self, setting: LastWrite, scene: Scene) -> str:
        """Describe an episode; the last write stands in brackets."""
        names, place = _names(setting, scene), _place(setting, scene)
        if place is not None:
            names[place] = f"[{names[place]}]"
        used = names[int((scene.observation[: setting.T] == 0).sum()) :]
        lines = [" ".join(used[k : k + _NAMES]) for k in range(0, len(used), _NAMES)]
        rows = [("prompt" if k == 0 else "", line) for k, line in enumerate(lines)]
        rows += [("legend", "w writes, d decoy, f filler; [ ] the last write, which is hidden")]
        return described(setting, scene, [*rows, ("status", status(setting, scene))])

    def rows(self, setting: LastWrite, scene: Scene) -> list[CellRow]:
        """Show the stream in rows of boxes, then the answer."""
        names, place = _names(setting, scene), _place(setting, scene)
        faces = {"w": GOOD, "d": GIVEN, "f": GIVEN, "·": GIVEN}
        boxes = [Cell(name, SAID if k == place else faces[name[0]]) for k, name in enumerate(names)]
        lines = [boxes[k : k + _BOXES] for k in range(0, len(boxes), _BOXES)]
        found = [CellRow("prompt" if k == 0 else "", tuple(line), 12 / _BOXES) for k, line in enumerate(lines)]
        given = int(scene.observation[setting.T])
        answer, told = "·" if given == 0 else str(given - 1), ""
        if scene.last is not None:
            told = f"reward {scene.last.reward:g}"
        key = "w writes, d decoy, f filler; the write that counts is orange"
        return [*found, CellRow("answer", (Cell(answer, SAID),), words=told), CellRow("legend", words=key)]


def _names(setting: LastWrite, scene: Scene) -> list[str]:
    """Name the tokens of the prompt."""
    tokens: list[Any] = scene.observation[: setting.T].tolist()
    return ["·" if token == 0 else setting.symbol_name(token - 1) for token in tokens]


def _place(setting: LastWrite, scene: Scene) -> int | None:
    """Return where the last write stands."""
    places = np.flatnonzero(setting.parents(scene.observation[None])[0])
    return int(places[0]) if len(places) else None
