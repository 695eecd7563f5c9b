"""A hidden semiautomaton reads a word; only the final state is rewarded (arXiv 2510.04115)."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/Semiautomaton-v0",
    "theorybench.envs.curriculum.semiautomaton.setting:Semiautomaton",
    "theorybench.envs.curriculum.semiautomaton.oracle:SemiautomatonOracle",
    claims="theorybench.envs.curriculum.semiautomaton.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.curriculum.semiautomaton.studies:STUDIES",
    difficulties="theorybench.envs.curriculum.semiautomaton.oracle:DIFFICULTIES",
    renderer="theorybench.envs.curriculum.semiautomaton.render:SemiautomatonRenderer",
)
