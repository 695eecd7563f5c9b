"""The metastable chain of arXiv 2502.01694: easy steps inside clusters, rare hard steps between them."""

from theorybench.envs.core.registry import register
from theorybench.envs.tree.metastable_chain.oracle import MetastableChainOracle
from theorybench.envs.tree.metastable_chain.render import RingRenderer
from theorybench.envs.tree.metastable_chain.setting import MetastableChain

register(
    "TheoryBench/MetastableChain-v0",
    MetastableChain,
    MetastableChainOracle,
    claims="theorybench.envs.tree.metastable_chain.claims:CLAIMS",
    budget=20_000,
    renderer=RingRenderer(),
)
