"""Sparse parity, one claim per bit: the smallest task that outcome rewards cannot teach but a curriculum can."""

from theorybench.envs.core.registry import register
from theorybench.envs.curriculum.parity.claims import CLAIMS
from theorybench.envs.curriculum.parity.oracle import DIFFICULTIES, ParityOracle
from theorybench.envs.curriculum.parity.setting import Parity
from theorybench.envs.curriculum.parity.studies import STUDIES

register(
    "TheoryBench/Parity-v0",
    Parity,
    ParityOracle,
    claims=CLAIMS,
    budget=20_000,
    studies=STUDIES,
    difficulties=DIFFICULTIES,
)
