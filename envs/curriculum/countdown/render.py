"""Renderings of a running environment of Countdown."""

from theorybench.envs.core.environments.render import Renderer, Scene, described, status
from theorybench.envs.curriculum.countdown.setting import NAMES, Countdown


class CountdownRenderer(Renderer):
    """Text: the target, the remaining numbers, the moves, and the base model's success probability from here."""

    def text(self, setting: Countdown, scene: Scene) -> str:
        """Describe a game."""
        target, numbers = int(scene.state.target[0]), scene.state.numbers[0]
        left = [f"{NAMES[slot]} = {value}" for slot, value in enumerate(numbers.tolist()) if value]
        moves = [setting.symbol_name(token - 1) for token in scene.state.response[0].tolist() if token]
        winnable = setting.winnable
        chance = winnable.success_or_zero[winnable.find(scene.state.target, scene.state.numbers)][0]
        rows = [
            ("target", str(target)),
            ("left", ", ".join(left)),
            ("moves", " ".join(moves) or "(none)"),
            ("chance", "-" if scene.ended else f"{chance:.3g} under uniform moves"),
            ("status", status(setting, scene)),
        ]
        return described(setting, scene, rows)
