"""How wide a network should be and how large its steps, for a given compute, and what cheap pilot runs tell of it."""

from theorybench.envs.core.registry import register
from theorybench.envs.features.emergence.oracle import DIFFICULTIES, EmergenceOracle
from theorybench.envs.features.emergence.setting import Emergence
from theorybench.envs.features.render import HiddenRunRenderer

register(
    "TheoryBench/Emergence-v0",
    Emergence,
    EmergenceOracle,
    claims="theorybench.envs.features.emergence.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.features.emergence.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=HiddenRunRenderer(),
)
