"""Whose labels a strong model should learn from: weak teachers that differ from it, or good ones that do not."""

from theorybench.envs.core.registry import register
from theorybench.envs.supervision.weak_to_strong.oracle import DIFFICULTIES, WeakToStrongOracle
from theorybench.envs.supervision.weak_to_strong.setting import WeakToStrong

register(
    "TheoryBench/WeakToStrong-v0",
    WeakToStrong,
    WeakToStrongOracle,
    budget=20_000,
    difficulties=DIFFICULTIES,
)
