"""Which moment of the data to look at next, on how many samples, if one direction makes the next one cheaper."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/GenerativeLeap-v0",
    "theorybench.envs.features.generative_leap.setting:GenerativeLeap",
    "theorybench.envs.features.generative_leap.oracle:GenerativeLeapOracle",
    claims="theorybench.envs.features.generative_leap.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.features.generative_leap.studies:STUDIES",
    difficulties="theorybench.envs.features.generative_leap.oracle:DIFFICULTIES",
    renderer="theorybench.envs.features.render:HiddenRunRenderer",
)
