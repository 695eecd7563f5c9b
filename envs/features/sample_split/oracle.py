"""Exact answers about how to split labels between features and heads."""

from typing import ClassVar

from theorybench.envs.core.evidence.difficulty import Difficulty
from theorybench.envs.features.run import HiddenRunOracle
from theorybench.envs.features.sample_split.setting import SampleSplit


class SampleSplitOracle(HiddenRunOracle[SampleSplit]):
    """Exact answers about `SampleSplit`, for every policy.

    "context_0/objective" and so on give the values of each number of downstream tasks.
    """

    metrics: ClassVar[dict[str, str]] = {
        **HiddenRunOracle.metrics,
        "chunks": "expected chunks of the budget that are spent on sources",
        "samples_a_head": "expected number of labels that each head gets",
        "recovered_1": "expected share of the first feature that was learnt, rho^2; recovered_2 is that of the second",
    }


#: How many episodes it takes to learn which source teaches what is not known: there are no laws.
DIFFICULTIES = (
    Difficulty(
        parameter="budget",
        values=(48, 24, 16, 12),
        size="D over labels",
        size_of=lambda setting: 1 / setting.budget,
        laws=(),
        grows="how much of the features is missed: samples are counted in D, about d^2/2",
        parameters={"instance": 10_000, "downstream": (4,)},
    ),
)
