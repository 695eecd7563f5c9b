"""How long a context to keep in memory, before one knows that it is needed."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/MemoryOrder-v0",
    "theorybench.envs.context.memory_order.setting:MemoryOrder",
    "theorybench.envs.context.memory_order.oracle:MemoryOrderOracle",
    claims="theorybench.envs.context.memory_order.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.context.memory_order.studies:STUDIES",
    difficulties="theorybench.envs.context.memory_order.oracle:DIFFICULTIES",
    renderer="theorybench.envs.context.memory_order.render:MemoryOrderRenderer",
)
