"""How long a context to keep in memory, before one knows that it is needed."""

from theorybench.envs.context.memory_order.oracle import DIFFICULTIES, MemoryOrderOracle
from theorybench.envs.context.memory_order.setting import MemoryOrder
from theorybench.envs.core.registry import register

register(
    "TheoryBench/MemoryOrder-v0",
    MemoryOrder,
    MemoryOrderOracle,
    budget=20_000,
    difficulties=DIFFICULTIES,
)
