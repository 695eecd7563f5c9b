"""Sparse parity, one claim per bit: the smallest task that outcome rewards cannot teach but a curriculum can."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/Parity-v0",
    "theorybench.envs.curriculum.parity.setting:Parity",
    "theorybench.envs.curriculum.parity.oracle:ParityOracle",
    claims="theorybench.envs.curriculum.parity.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.curriculum.parity.studies:STUDIES",
    difficulties="theorybench.envs.curriculum.parity.oracle:DIFFICULTIES",
    renderer="theorybench.envs.curriculum.parity.render:ParityRenderer",
)
