"""Countdown: combine numbers until one equals the target; stages and hints shorten the search."""

from theorybench.envs.core.registry import register
from theorybench.envs.curriculum.countdown.oracle import DIFFICULTIES, CountdownOracle
from theorybench.envs.curriculum.countdown.render import CountdownRenderer
from theorybench.envs.curriculum.countdown.setting import Countdown

register(
    "TheoryBench/Countdown-v0",
    Countdown,
    CountdownOracle,
    claims="theorybench.envs.curriculum.countdown.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.curriculum.countdown.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=CountdownRenderer(),
)
