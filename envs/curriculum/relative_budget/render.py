"""Renderings of a running environment with a relative budget."""

from theorybench.envs.core.environments.render import Renderer, Scene, described, status
from theorybench.envs.curriculum.relative_budget.law import TokenLaw
from theorybench.envs.curriculum.relative_budget.setting import RelativeBudget


class RelativeBudgetRenderer(Renderer):
    """Text: the progress, the remaining budget, and the base model's success probability from here."""

    def text(self, setting: RelativeBudget, scene: Scene) -> str:
        """Describe an attempt."""
        progress, used, goal = (int(field[0]) for field in scene.state[1:])
        chance = ""
        if not scene.ended:
            law = TokenLaw.negative_binomial(goal - progress, setting.p, setting.horizon - used)
            chance = f"{law.success:.3g} of a solution in time under the base model"
        rows = [
            ("solved", f"{progress} of {goal} sub-steps"),
            ("tokens", f"{used} of {setting.horizon}"),
            ("chance", chance),
            ("status", status(setting, scene)),
        ]
        return described(setting, scene, rows)
