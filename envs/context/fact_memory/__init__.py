"""What to write into a memory in which every fact that is written blurs all others."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/FactMemory-v0",
    "theorybench.envs.context.fact_memory.setting:FactMemory",
    "theorybench.envs.context.fact_memory.oracle:FactMemoryOracle",
    claims="theorybench.envs.context.fact_memory.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.context.fact_memory.studies:STUDIES",
    difficulties="theorybench.envs.context.fact_memory.oracle:DIFFICULTIES",
    renderer="theorybench.envs.context.fact_memory.render:FactMemoryRenderer",
)
