"""Exact answers about whose labels to learn from."""

from typing import ClassVar

from theorybench.envs.core.evidence.difficulty import Difficulty
from theorybench.envs.supervision.purchases import PurchaseOracle
from theorybench.envs.supervision.weak_to_strong.setting import WeakToStrong


class WeakToStrongOracle(PurchaseOracle[WeakToStrong]):
    """Exact answers about `WeakToStrong`, for every policy.

    "context_0/objective" and so on give the values of each shown row of teachers.
    """

    metrics: ClassVar[dict[str, str]] = {
        **PurchaseOracle.metrics,
        "actions_0": (
            "expected batches of true labels; actions_1, actions_2, ... are those of each teacher, the last is STOP"
        ),
    }


#: How many episodes it takes to find a good teacher is not known: there are no laws.
DIFFICULTIES = (
    Difficulty(
        parameter="teachers",
        values=(1, 2, 3, 4),
        size="situations",
        size_of=lambda setting: setting.most_rows(),
        laws=(),
        grows="what has to be learnt; the rule of the theory stays the same",
        parameters={"instance": 10_000},
    ),
)
