"""Exact answers about width, step size and pilots."""

from typing import ClassVar

from theorybench.envs.core.evidence.difficulty import Difficulty
from theorybench.envs.features.emergence.setting import Emergence
from theorybench.envs.features.run import HiddenRunOracle


class EmergenceOracle(HiddenRunOracle[Emergence]):
    """Exact answers about an `Emergence`, for every policy."""

    metrics: ClassVar[dict[str, str]] = HiddenRunOracle.metrics | {
        "skills": "expected number of skills that are learnt, 0 where nothing is committed",
        "rank": "expected largest rank of a skill that is learnt with probability 1/2 or more",
        "next_skill": "expected rank that one neuron is next to find with probability 1/2: in order of strength",
        "width": "expected width of the network, 0 where there is none",
        "step": "expected step etahat, likewise",
        "pilots": "expected number of pilots",
    }


#: The larger the compute, the more a wrong step loses.
DIFFICULTIES = (
    Difficulty(
        parameter="log_compute",
        values=((8,), (12,), (16,), (20,)),
        size="compute",
        size_of=lambda setting: 2.0 ** setting.log_compute[0],
        laws=(),
        grows="what pilots leave out: the best width rises with the compute, and the best step falls",
        parameters={"instance": 10_000},
    ),
)
