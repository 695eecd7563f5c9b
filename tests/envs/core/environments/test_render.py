"""Renderings: from tokens unless a setting draws its own."""

import xml.etree.ElementTree as ElementTree
from types import ModuleType
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from theorybench.envs.core.arrays import numpy_namespace
from theorybench.envs.core.environments.batch import Batch
from theorybench.envs.core.environments.render import Last, Scene, ansi, figure_svg, rgb_array


def test_a_setting_may_draw_its_own(toys: ModuleType) -> None:
    seen: list[Scene] = []

    class Drawn(toys.TwoArms):  # type: ignore[misc,name-defined]
        def render_text(self, scene: Scene) -> str:
            seen.append(scene)
            return "two arms"

        def render_picture(self, figure: Any, scene: Scene) -> None:
            figure.set_size_inches(3, 2)
            figure.add_axes((0, 0, 1, 1), facecolor="#ff0000").axis("on")

    batch = Batch(Drawn(), 3, numpy_namespace)
    batch.seed(0)
    batch.reset(batch.options(None))
    batch.step(batch.actions([0, 1, 0], 3))
    assert ansi(batch, 1, Last(1, 1.0)) == "two arms"
    (scene,) = seen
    assert scene.observation.tolist() == [2] and scene.state.pulled.tolist() == [2] and scene.ended and scene.step == 1
    assert scene.last == Last(1, 1.0) and scene.legal.tolist() == [True, True]
    scene.state.pulled[:] = 7  # a copy
    assert batch.state.pulled.tolist() == [1, 2, 1]
    image = rgb_array(batch, 0, None)
    assert image.shape == (200, 300, 3) and image.dtype == np.uint8
    assert (image[100, 150] == [255, 0, 0]).all()


def test_svg_is_the_same_every_time_and_stands_in_a_page() -> None:
    def drawn() -> str:
        figure = Figure()
        axes = figure.add_subplot()
        axes.plot([0, 1], [1, 0], "o-")
        return figure_svg(figure)

    text = drawn()
    assert text == drawn() and text.startswith("<svg") and "<dc:date>" not in text
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
