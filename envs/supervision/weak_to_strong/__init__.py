"""Whose labels a strong model should learn from: weak teachers that differ from it, or good ones that do not."""

from theorybench.envs.core.registry import register
from theorybench.envs.supervision.weak_to_strong.oracle import DIFFICULTIES, WeakToStrongOracle
from theorybench.envs.supervision.weak_to_strong.render import WeakToStrongRenderer
from theorybench.envs.supervision.weak_to_strong.setting import WeakToStrong

register(
    "TheoryBench/WeakToStrong-v0",
    WeakToStrong,
    WeakToStrongOracle,
    claims="theorybench.envs.supervision.weak_to_strong.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.supervision.weak_to_strong.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=WeakToStrongRenderer(),
)
