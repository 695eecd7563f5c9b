"""Who attends to whom: tests of small batches, in context or pooled, before the tree of parents is named."""

from theorybench.envs.context.causal_graph.oracle import DIFFICULTIES, CausalGraphOracle
from theorybench.envs.context.causal_graph.render import CausalGraphRenderer
from theorybench.envs.context.causal_graph.setting import CausalGraph
from theorybench.envs.core.registry import register

register(
    "TheoryBench/CausalGraph-v0",
    CausalGraph,
    CausalGraphOracle,
    claims="theorybench.envs.context.causal_graph.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.context.causal_graph.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=CausalGraphRenderer(),
)
