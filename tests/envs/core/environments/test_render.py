"""Renderings: from tokens unless a setting draws its own."""

import xml.etree.ElementTree as ElementTree
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from theorybench.envs.core.environments.batch import Batch
from theorybench.envs.core.environments.render import (
    RENDERERS,
    Last,
    Renderer,
    Scene,
    ansi,
    figure_svg,
    policy_picture,
    renderer_of,
    rgb_array,
)
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.registry import lookup
from theorybench.envs.curriculum.countdown.render import CountdownRenderer


def test_a_setting_may_draw_its_own(toys: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Scene] = []

    class Drawing(Renderer):
        def text(self, setting: Any, scene: Scene) -> str:
            seen.append(scene)
            return "two arms"

        def picture(self, setting: Any, figure: Any, scene: Scene) -> None:
            figure.set_size_inches(3, 2)
            figure.add_axes((0, 0, 1, 1), facecolor="#ff0000").axis("on")

    class Drawn(toys.TwoArms):  # type: ignore[misc,name-defined]
        pass

    class DrawnToo(Drawn):
        pass

    monkeypatch.setitem(RENDERERS, Drawn, Drawing())
    assert isinstance(renderer_of(DrawnToo()), Drawing) and not isinstance(renderer_of(toys.TwoArms()), Drawing)
    assert type(renderer_of(lookup("TheoryBench/Countdown-v0").make_setting({}))) is CountdownRenderer
    batch = Batch(Drawn(), 3, np)
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


def test_a_setting_without_pictures_of_policies_says_so(toys: ModuleType) -> None:
    with pytest.raises(ParameterError, match="one that draws policies"):
        policy_picture(toys.TwoArms(), {})


def test_svg_is_the_same_every_time_and_stands_in_a_page() -> None:
    def drawn() -> str:
        figure = Figure()
        axes = figure.add_subplot()
        axes.plot([0, 1], [1, 0], "o-")
        return figure_svg(figure)

    text = drawn()
    assert text == drawn() and text.startswith("<svg") and "<dc:date>" not in text
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
