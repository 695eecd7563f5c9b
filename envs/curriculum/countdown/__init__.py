"""Countdown: combine numbers until one equals the target; stages and hints shorten the search."""

from theorybench.envs.core.registry import register
from theorybench.envs.curriculum.countdown.claims import CLAIMS
from theorybench.envs.curriculum.countdown.oracle import DIFFICULTIES, CountdownOracle
from theorybench.envs.curriculum.countdown.render import CountdownRenderer
from theorybench.envs.curriculum.countdown.setting import Countdown
from theorybench.envs.curriculum.countdown.studies import STUDIES

register(
    "TheoryBench/Countdown-v0",
    Countdown,
    CountdownOracle,
    claims=CLAIMS,
    budget=20_000,
    studies=STUDIES,
    difficulties=DIFFICULTIES,
    renderer=CountdownRenderer(),
)
