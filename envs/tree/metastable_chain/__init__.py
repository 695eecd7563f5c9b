"""The metastable chain of arXiv 2502.01694: easy steps inside clusters, rare hard steps between them."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/MetastableChain-v0",
    "theorybench.envs.tree.metastable_chain.setting:MetastableChain",
    "theorybench.envs.tree.metastable_chain.oracle:MetastableChainOracle",
    claims="theorybench.envs.tree.metastable_chain.claims:CLAIMS",
    budget=20_000,
    renderer="theorybench.envs.tree.metastable_chain.render:RingRenderer",
)
