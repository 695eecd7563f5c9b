"""The tree-structured Markov chain of arXiv 2511.07368: reasoning as a walk, correctness as consistency."""

from theorybench.envs.core.registry import register
from theorybench.envs.tree.markov_chain.oracle import MarkovChainOracle
from theorybench.envs.tree.markov_chain.pictures.render import TreeRenderer
from theorybench.envs.tree.markov_chain.setting import TreeMarkovChain

register(
    "TheoryBench/TreeMarkovChain-v0",
    TreeMarkovChain,
    MarkovChainOracle,
    claims="theorybench.envs.tree.markov_chain.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.tree.markov_chain.studies:STUDIES",
    renderer=TreeRenderer(),
)
