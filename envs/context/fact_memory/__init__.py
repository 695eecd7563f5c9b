"""What to write into a memory in which every fact that is written blurs all others."""

from theorybench.envs.context.fact_memory.oracle import DIFFICULTIES, FactMemoryOracle
from theorybench.envs.context.fact_memory.render import FactMemoryRenderer
from theorybench.envs.context.fact_memory.setting import FactMemory
from theorybench.envs.core.registry import register

register(
    "TheoryBench/FactMemory-v0",
    FactMemory,
    FactMemoryOracle,
    claims="theorybench.envs.context.fact_memory.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.context.fact_memory.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=FactMemoryRenderer(),
)
