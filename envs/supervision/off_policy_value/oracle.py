"""Exact answers about off-policy value."""

import functools
from typing import Any, ClassVar

import numpy as np

from theorybench.envs.core.evidence.difficulty import Difficulty
from theorybench.envs.core.finite.graph import DecisionGraph
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
        setting, contexts = self.setting, len(graph.roots)
        context, actions, readings = graph.histories()
        reach = np.zeros((2, len(graph)))
        reach[0, graph.roots] = 1.0
        seen, rows, own = setting.observations(graph), list[np.ndarray](), []
        public = isinstance(policy, SettingPolicy)
        for good in (False, True):
            if kl or public:
                order = np.argsort(np.where(actions < 0, 2, (readings >= GOOD) != good), axis=1, kind="stable")
                begun = (np.take_along_axis(part, order, axis=1) for part in (actions, readings))
                seen = setting.dialogues(context, *begun)
            rows.append(self.ask(policy, seen) if public or not rows else rows[0])
            surprise = self.surprise(rows[-1], seen) if kl else np.zeros(len(graph))
            own.append(np.stack([*self._sums(rows[-1], graph.gains, graph.node, graph.legal), surprise]))
        for depth, edges in enumerate(graph.children):
            for way in range(2 if depth else 1):
                flow = reach[way, edges.source] * rows[way].ravel()[edges.slot] * edges.chance
                to = way if depth else (edges.reading >= GOOD)
                np.add.at(reach, (np.broadcast_to(to, flow.shape).astype(np.int64), edges.target), flow)
        found = np.where(reach > 0, np.array(own).swapaxes(0, 1), 0.0) * reach  # (totals, ways, points)
        return np.stack([np.bincount(context, total.sum(axis=0), contexts) for total in found], axis=1), rows[0]


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
