"""Exact answers about the generative leap."""

from typing import ClassVar

from theorybench.envs.core.evidence.difficulty import Difficulty
from theorybench.envs.features.generative_leap.setting import GenerativeLeap
from theorybench.envs.features.run import HiddenRunOracle


class GenerativeLeapOracle(HiddenRunOracle[GenerativeLeap]):
    """Exact answers about a `GenerativeLeap`, for every policy."""

    metrics: ClassVar[dict[str, str]] = HiddenRunOracle.metrics | {
        "accepted": "expected number of directions that are accepted",
        "overlap": "squared overlap of accepted eigenvectors with their directions, mean over all three of these",
        "samples": "expected samples that are spent, in units of d",
        "useful": "share of the samples of an episode that had a direction accepted, 0 where none are spent",
    }


#: How many episodes it takes to learn what to look at is not known: there are no laws. What is to be learnt does not
#: grow with the dimension, in units of which samples are counted.
DIFFICULTIES = (
    Difficulty(
        parameter="horizon",
        values=(3, 4, 5, 6),
        size="decisions",
        laws=(),
        grows="the dialogues that have to be told apart; the ladder of moments stays the same",
        parameters={"instance": 10_000},
    ),
)
