"""Follow a pointer r times: look-ups of what the look-up before has found (setting ours; loops: arXiv 2502.21212)."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/PointerChase-v0",
    "theorybench.envs.recall.pointer_chase.setting:PointerChase",
    "theorybench.envs.recall.pointer_chase.oracle:PointerChaseOracle",
    claims="theorybench.envs.recall.pointer_chase.claims:CLAIMS",
    budget=65_536,
    studies="theorybench.envs.recall.pointer_chase.studies:STUDIES",
    difficulties="theorybench.envs.recall.pointer_chase.oracle:DIFFICULTIES",
    renderer="theorybench.envs.recall.pointer_chase.render:PointerChaseRenderer",
)
