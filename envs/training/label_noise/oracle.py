"""Exact answers about label noise."""

from typing import ClassVar

from theorybench.envs.core.evidence.difficulty import Difficulty
from theorybench.envs.core.finite.oracle import FiniteOracle
from theorybench.envs.training.label_noise.setting import LabelNoise


class LabelNoiseOracle(FiniteOracle[LabelNoise]):
    """Exact answers about a `LabelNoise`, for every policy."""

    metrics: ClassVar[dict[str, str]] = FiniteOracle.metrics | {
        "true_error": "expected error on clean labels of the model that is kept",
        "kept": "expected share of the samples that are kept",
        "kept_noisy": "expected share of wrong labels among the samples that are kept",
        "stop_time": "expected number of the checkpoint of the stop",
        "dropped": "probability of a drop",
    }


#: Theory tells how errors go, and not how many episodes it takes to find a plan: there are no laws. On the second
#: ladder the share of J* - J_ref that readings are worth grows from .03 to .37.
DIFFICULTIES = (
    Difficulty(
        parameter="ratio",
        values=(5.0, 2.0, 1.0),
        size="samples per dimension n/d",
        size_of=lambda setting: 1 / setting.ratio,
        laws=(),
        grows="what is lost by training to the end: noisy labels are memorised at the cost of the signal (our mean field)",
        parameters={"instance": 10_000},
    ),
    Difficulty(
        parameter="rates",
        values=(1.0, 4.0, 16.0, 64.0),
        size="largest over least learning rate",
        laws=(),
        grows="what readings are worth: no fixed time of the drop and of the stop suits all rates (our mean field)",
        parameters={"instance": 10_000},
    ),
)
