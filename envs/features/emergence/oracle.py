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


#: How many episodes it takes to tell worlds apart is not known: there are no laws.
DIFFICULTIES = (
    Difficulty(
        parameter="types",
        values=(2, 4, 8, 12),
        size="worlds",
        laws=(),
        grows="the worlds that pilots have to tell apart",
        parameters={"instance": 10_000},
    ),
)
