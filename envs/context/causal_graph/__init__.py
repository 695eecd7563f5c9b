"""Who attends to whom: tests of small batches, in context or pooled, before the tree of parents is named."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/CausalGraph-v0",
    "theorybench.envs.context.causal_graph.setting:CausalGraph",
    "theorybench.envs.context.causal_graph.oracle:CausalGraphOracle",
    claims="theorybench.envs.context.causal_graph.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.context.causal_graph.studies:STUDIES",
    difficulties="theorybench.envs.context.causal_graph.oracle:DIFFICULTIES",
    renderer="theorybench.envs.context.causal_graph.render:CausalGraphRenderer",
)
