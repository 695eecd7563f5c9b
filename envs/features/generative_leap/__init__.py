"""Which moment of the data to look at next, on how many samples, if one direction makes the next one cheaper."""

from theorybench.envs.core.registry import register
from theorybench.envs.features.generative_leap.oracle import DIFFICULTIES, GenerativeLeapOracle
from theorybench.envs.features.generative_leap.setting import GenerativeLeap
from theorybench.envs.features.render import HiddenRunRenderer

register(
    "TheoryBench/GenerativeLeap-v0",
    GenerativeLeap,
    GenerativeLeapOracle,
    claims="theorybench.envs.features.generative_leap.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.features.generative_leap.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=HiddenRunRenderer(),
)
