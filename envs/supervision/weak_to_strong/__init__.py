"""Whose labels a strong model should learn from: weak teachers that differ from it, or good ones that do not."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/WeakToStrong-v0",
    "theorybench.envs.supervision.weak_to_strong.setting:WeakToStrong",
    "theorybench.envs.supervision.weak_to_strong.oracle:WeakToStrongOracle",
    claims="theorybench.envs.supervision.weak_to_strong.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.supervision.weak_to_strong.studies:STUDIES",
    difficulties="theorybench.envs.supervision.weak_to_strong.oracle:DIFFICULTIES",
    renderer="theorybench.envs.supervision.weak_to_strong.render:WeakToStrongRenderer",
)
