"""Exact answers about step sizes."""

import functools
from typing import Any, ClassVar

import numpy as np

from theorybench.envs.core.evidence.difficulty import Difficulty
from theorybench.envs.core.finite.oracle import FiniteOracle
from theorybench.envs.training.step_sizes.schedules import block_lengths
from theorybench.envs.training.step_sizes.setting import LAWS, StepSizes


class StepSizesOracle(FiniteOracle[StepSizes]):
    """Exact answers about `StepSizes`, for every policy.

    "law_0" to "law_3" are the values under each law of the stop, also named "context_0/objective" and so on. The last
    three metrics are of the plan that the policy would follow if it were never stopped, on average over its choices and
    over the laws; a plan that ends with an illegal action counts as 0 there.
    """

    metrics: ClassVar[dict[str, str]] = {
        **FiniteOracle.metrics,
        **{f"law_{number}": f"objective where the stop is {law}" for number, law in enumerate(LAWS)},
        "guarantee_at_end": "ln(W of the textbook step / W) after all steps, W being the family's worst case",
        "worst_time": "the least ln(W of the textbook step / W) after any number of steps",
        "largest_block": "steps of the longest block, before it is cut",
    }

    @property
    def open_loop(self) -> float:
        """J*: nothing is read before the run is stopped, so that every plan is fixed in advance."""
        return self.optimal_value

    @functools.cached_property
    def clairvoyant(self) -> float:
        """The optimum of one who is told when the run is stopped; not attainable."""
        gains = np.where(np.isfinite(self.setting.guarantees), self.setting.gains, 0.0)
        return float((self.setting.laws @ gains.max(axis=0)).mean())

    def measure(self, policy: Any, metrics: frozenset[str] | None) -> dict[str, float]:
        """Compute all metrics."""
        values = super().measure(policy, metrics)
        values |= {f"law_{law}": values[f"context_{law}/objective"] for law in range(len(LAWS))}
        return values | self.unstopped(policy) if metrics is None or metrics & self.unstopped_names else values

    unstopped_names: ClassVar[frozenset[str]] = frozenset({"guarantee_at_end", "worst_time", "largest_block"})

    def unstopped(self, policy: Any) -> dict[str, float]:
        """Return the metrics of the plans that a policy would follow if it were never stopped."""
        setting, plans = self.setting, self.setting.plans
        rows = np.empty((len(LAWS), len(plans.time), setting.num_actions))
        graph = setting.graph(setting.rows)
        rows[graph.owner, graph.node] = self.probs(policy, setting.observations(graph))
        reach, low = np.zeros((len(LAWS), len(plans.time))), np.full(len(plans.time), np.inf)
        reach[:, 0] = 1.0
        gains, lengths = setting.gains, block_lengths(setting.orders)
        least = np.where(np.isfinite(setting.guarantees), gains, np.inf).min(axis=1)
        taken = np.empty((len(LAWS), len(plans.source)))
        for level in plans.levels:
            own = slice(*np.searchsorted(plans.source, [level.start, level.stop]))
            node, child = plans.source[own], plans.child[own]
            taken[:, own] = reach[:, node] * rows[:, node, plans.action[own]]
            least[own] = np.minimum(least[own], low[node])
            on = child >= 0
            reach[:, child[on]], low[child[on]] = taken[:, own][:, on], least[own][on]
        last = plans.child < 0
        chance = taken[:, last].mean(axis=0)
        found = gains[last, -1], least[last], lengths[plans.action[last]]
        return {
            name: float(chance @ value)
            for name, value in zip(("guarantee_at_end", "worst_time", "largest_block"), found, strict=True)
        }


DIFFICULTIES = (
    Difficulty(
        parameter="steps",
        values=(7, 15, 23, 31),
        size="gradient steps",
        laws=(),
        grows=(
            "what the best plan gains: its worst case falls as t^(-1.1195) after t steps, that of every constant "
            "choice as 1/t (arXiv 2411.17668)"
        ),
        parameters={"instance": 10_000},
    ),
)
