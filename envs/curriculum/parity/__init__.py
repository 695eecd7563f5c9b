"""Sparse parity, one claim per bit: the smallest task that outcome rewards cannot teach but a curriculum can."""

from theorybench.envs.core.registry import register
from theorybench.envs.curriculum.parity.oracle import DIFFICULTIES, ParityOracle
from theorybench.envs.curriculum.parity.render import ParityRenderer
from theorybench.envs.curriculum.parity.setting import Parity

register(
    "TheoryBench/Parity-v0",
    Parity,
    ParityOracle,
    claims="theorybench.envs.curriculum.parity.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.curriculum.parity.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=ParityRenderer(),
)
