"""Which of the recorded variables a prediction needs, where correlation points at the wrong ones."""

from theorybench.envs.core.registry import register
from theorybench.envs.supervision.markov_blanket.oracle import DIFFICULTIES, MarkovBlanketOracle
from theorybench.envs.supervision.markov_blanket.setting import MarkovBlanket

register(
    "TheoryBench/MarkovBlanket-v0",
    MarkovBlanket,
    MarkovBlanketOracle,
    budget=20_000,
    difficulties=DIFFICULTIES,
)
