"""How widely a loss should be smoothed, and when to stop paying for that: online SGD on the sphere."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/Smoothing-v0",
    "theorybench.envs.features.smoothing.setting:Smoothing",
    "theorybench.envs.features.smoothing.oracle:SmoothingOracle",
    claims="theorybench.envs.features.smoothing.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.features.smoothing.studies:STUDIES",
    difficulties="theorybench.envs.features.smoothing.oracle:DIFFICULTIES",
    renderer="theorybench.envs.features.render:HiddenRunRenderer",
)
