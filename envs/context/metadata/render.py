"""Renderings of a running environment of metadata: the text and the labels, known and hidden."""

import numpy as np

from theorybench.envs.context.metadata.grammar import labels
from theorybench.envs.context.metadata.setting import Metadata
from theorybench.envs.core.environments.canvas import BAD, GIVEN, GOOD, SAID, Cell, CellRow
from theorybench.envs.core.environments.render import Renderer, Scene, described, status

UNKNOWN = "·"


class MetadataRenderer(Renderer):
    """The text so far, what was written of it, and the labels that were bought, above what is hidden."""

    def text(self, setting: Metadata, scene: Scene) -> str:
        """Describe an episode: what was written stands in capitals."""
        told, known, begun = _board(setting, scene)
        way, true = _hidden(setting, scene)
        drawn = [name if place < begun else name.upper() for place, name in enumerate(told)]
        rows = [
            ("text", f"{' '.join(drawn)}   (shown or read; in capitals what was written)"),
            ("labels", f"{' '.join(known)}   ({setting.label_price:g} each; a symbol read: {setting.read_price:g})"),
            ("hidden", f"{' '.join(true)}   of grammar {''.join(way)}"),
            ("judged", _verdict(setting, scene) or "at the end"),
            ("status", status(setting, scene)),
        ]
        return described(setting, scene, rows)

    def rows(self, setting: Metadata, scene: Scene) -> list[CellRow]:
        """Return the text, the labels, and what is hidden."""
        told, known, begun = _board(setting, scene)
        way, true = _hidden(setting, scene)
        verdict = _verdict(setting, scene)
        said = SAID if not verdict else GOOD if verdict == "grammatical" else BAD
        text = tuple(Cell(name, GIVEN if place < begun else said) for place, name in enumerate(told))
        return [
            CellRow("text", text, words=verdict or ("being written" if begun < setting.L else "shown or read")),
            CellRow("labels", tuple(Cell(name) for name in known)),
            CellRow("hidden", tuple(Cell(name, None) for name in true), words=f"of grammar {''.join(way)}"),
        ]


def _board(setting: Metadata, scene: Scene) -> tuple[list[str], list[str], int]:
    """Return the symbols and labels on the board (at the end the text), and how many symbols were shown or read."""
    node, nodes = int(scene.state.node[0]), setting.problem.num_nodes
    unknown = [UNKNOWN] * setting.L
    if node >= nodes:
        whole = setting.texts.symbols[node - nodes : node - nodes + 1].ravel().tolist()
        return [setting.symbol_name(symbol) for symbol in whole] or unknown, unknown[: setting.D], 0
    numbers = setting.problem.shown[node].tolist()
    told, known, begun = numbers[: setting.L], numbers[setting.L : -1], numbers[-1]
    names = [setting.symbol_name(number - 1) if number else UNKNOWN for number in told]
    return names, [str(number - 1) if number else UNKNOWN for number in known], begun or setting.L


def _verdict(setting: Metadata, scene: Scene) -> str:
    """Say what a text was judged to be; "" before its end."""
    node, nodes = int(scene.state.node[0]), setting.problem.num_nodes
    if node < nodes:
        return ""
    if node - nodes == len(setting.texts.symbols):
        return "impossible"
    return "grammatical" if setting.problem.pay[node - nodes, int(scene.state.hidden[0])] else "of another grammar"


def _hidden(setting: Metadata, scene: Scene) -> tuple[list[str], list[str]]:
    """Return the labels and the text that the agent does not see."""
    way, text = np.nonzero(setting.texts.chance)
    state = int(scene.state.hidden[0])
    true = [setting.symbol_name(symbol) for symbol in setting.texts.symbols[text[state]].tolist()]
    return [str(label) for label in labels(setting.D)[way[state]]], true
