"""Who attends to whom: tests of small batches, in context or pooled, before the tree of parents is named."""

from theorybench.envs.context.causal_graph.oracle import DIFFICULTIES, CausalGraphOracle
from theorybench.envs.context.causal_graph.setting import CausalGraph
from theorybench.envs.core.registry import register

register(
    "TheoryBench/CausalGraph-v0",
    CausalGraph,
    CausalGraphOracle,
    budget=20_000,
    difficulties=DIFFICULTIES,
)
