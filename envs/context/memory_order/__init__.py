"""How long a context to keep in memory, before one knows that it is needed."""

from theorybench.envs.context.memory_order.oracle import DIFFICULTIES, MemoryOrderOracle
from theorybench.envs.context.memory_order.render import MemoryOrderRenderer
from theorybench.envs.context.memory_order.setting import MemoryOrder
from theorybench.envs.core.registry import register

register(
    "TheoryBench/MemoryOrder-v0",
    MemoryOrder,
    MemoryOrderOracle,
    claims="theorybench.envs.context.memory_order.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.context.memory_order.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=MemoryOrderRenderer(),
)
