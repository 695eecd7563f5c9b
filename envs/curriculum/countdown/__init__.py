"""Countdown: combine numbers until one equals the target; stages and hints shorten the search."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/Countdown-v0",
    "theorybench.envs.curriculum.countdown.setting:Countdown",
    "theorybench.envs.curriculum.countdown.oracle:CountdownOracle",
    claims="theorybench.envs.curriculum.countdown.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.curriculum.countdown.studies:STUDIES",
    difficulties="theorybench.envs.curriculum.countdown.oracle:DIFFICULTIES",
    renderer="theorybench.envs.curriculum.countdown.render:CountdownRenderer",
)
