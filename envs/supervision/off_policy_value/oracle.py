"""Exact answers about off-policy value."""

import functools
from typing import Any, ClassVar

import numpy as np

from theorybench.envs.core.evidence.difficulty import Difficulty
from theorybench.envs.core.finite.graph import DecisionGraph
from theorybench.envs.core.finite.totals import earned, met
from theorybench.envs.core.policy import SettingPolicy
from theorybench.envs.supervision.off_policy_value.setting import GOOD, OffPolicyValue
from theorybench.envs.supervision.purchases import PurchaseOracle


class OffPolicyValueOracle(PurchaseOracle[OffPolicyValue]):
    """Exact answers about an `OffPolicyValue`, for every policy that sees no more than situations."""

    metrics: ClassVar[dict[str, str]] = PurchaseOracle.metrics | {
        "deployed": "probability that the candidate is deployed",
        "mistakes": "probability that a candidate is deployed that is worse than what runs today",
    }

    @functools.cached_property
    def clairvoyant(self) -> float:
        """The optimum of one who is shown the hidden world: nothing has to be bought."""
        return float(np.maximum(self.setting.gains, 0.0).mean())

    def _sees_rows(self, policy: Any) -> bool:
        return isinstance(policy, SettingPolicy) or super()._sees_rows(policy)

    def valued(self, policy: Any, graph: DecisionGraph, *, kl: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return what a policy earns from each root of a graph, in totals and divergence, and its rows.

        The reference goes by the first reading, which situations forget. So they are reached in two ways, by whether
        that reading was good, and what is seen there is a dialogue that begins with such a reading.
        """
        if graph.merge != "nodes":
            return super().valued(policy, graph, kl=kl)
        public = isinstance(policy, SettingPolicy)
        seen = [way[0] for way in self._begun] if public else [self.setting.observations(graph)]
        rows = [self.ask(policy, some) for some in seen]
        rows = rows if public else rows * 2
        reach, taken = np.zeros((2, len(graph))), np.zeros(rows[0].shape)
        reach[0, graph.roots] = 1.0
        for depth, (level, edges) in enumerate(zip(graph.depths, graph.children, strict=True)):
            good = edges.reading >= GOOD
            for way in range(2 if depth else 1):
                own = rows[way][level] * reach[way, level, None]
                taken[level] += own
                flow = own.ravel()[edges.slot - level.start * own.shape[1]] * edges.chance
                for to in (way,) if depth else (0, 1):
                    arrived = np.bincount(edges.target - level.stop, flow if depth else np.where(good == to, flow, 0.0))
                    reach[to, level.stop : level.stop + len(arrived)] = arrived
        found = earned(taken[:, :, None], graph)
        if kl:
            surprises = (self.divergences(own, way[1]) for own, way in zip(rows, self._begun, strict=True))
            ways = [met(own[:, None], surprise, graph) for own, surprise in zip(reach, surprises, strict=True)]
            found = np.column_stack([found, sum(ways)])
        return found, rows[0]

    @functools.cached_property
    def _begun(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """What is seen at each node after a first reading that was bad or good, and the reference's rows there."""
        setting, ways = self.setting, []
        context, actions, readings = setting.graph("nodes").histories()
        for good in (False, True):
            order = np.argsort(np.where(actions < 0, 2, (readings >= GOOD) != good), axis=1, kind="stable")
            begun = (np.take_along_axis(part, order, axis=1) for part in (actions, readings))
            seen = setting.dialogues(context, *begun)
            ways.append((seen, setting.reference_probs(seen)))
        return ways


#: What has to be learnt grows with the number of situations; the theory's choice of the estimator does not.
DIFFICULTIES = (
    Difficulty(
        parameter="looks",
        values=(1, 2, 3),  # four take gigabytes of memory
        size="situations",
        size_of=lambda setting: float(setting.most_rows()),
        laws=(),
        grows="the situations that have to be told apart, while what a further evaluation is worth falls",
        parameters={"instance": 10_000},
    ),
)
