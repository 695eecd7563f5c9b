"""Exact answers about thinking steps."""

from typing import ClassVar

from theorybench.envs.core.evidence.difficulty import Difficulty
from theorybench.envs.core.finite.oracle import FiniteOracle
from theorybench.envs.training.thinking_steps.setting import ThinkingSteps
from theorybench.envs.training.thinking_steps.tasks import condition


class ThinkingStepsOracle(FiniteOracle[ThinkingSteps]):
    """Exact answers about `ThinkingSteps`, for every policy.

    "context_0/objective" and so on give the values of each class of tasks, in the order of `examples`.
    """

    metrics: ClassVar[dict[str, str]] = FiniteOracle.metrics | {
        "digits": "expected right digits of the answer, -log10 of what is left of the squared error, clipped",
        "thoughts": "expected number of thoughts",
        "diverged": "probability that the answer is worse than none: the error has grown",
        "solved": "probability that all digits that are paid are right",
    }


DIFFICULTIES = (
    Difficulty(
        parameter="d",
        values=(12, 20, 30, 40),
        size="condition number of the Marchenko-Pastur law",
        size_of=lambda setting: condition(setting.examples[0], setting.d),
        parameters={"examples": (48,), "instance": 10_000},
        laws=(),
        grows=(
            "the thoughts that a digit costs: as the condition number with one step size, as its root with the best "
            "several (Chebyshev)"
        ),
    ),
)
