"""How widely a loss should be smoothed, and when to stop paying for that: online SGD on the sphere."""

from theorybench.envs.core.registry import register
from theorybench.envs.features.render import HiddenRunRenderer
from theorybench.envs.features.smoothing.oracle import DIFFICULTIES, SmoothingOracle
from theorybench.envs.features.smoothing.setting import Smoothing

register(
    "TheoryBench/Smoothing-v0",
    Smoothing,
    SmoothingOracle,
    claims="theorybench.envs.features.smoothing.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.features.smoothing.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=HiddenRunRenderer(),
)
