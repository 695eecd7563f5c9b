"""Which of the recorded variables a prediction needs, where correlation points at the wrong ones."""

from theorybench.envs.core.registry import register
from theorybench.envs.supervision.markov_blanket.oracle import DIFFICULTIES, MarkovBlanketOracle
from theorybench.envs.supervision.markov_blanket.render import MarkovBlanketRenderer
from theorybench.envs.supervision.markov_blanket.setting import MarkovBlanket

register(
    "TheoryBench/MarkovBlanket-v0",
    MarkovBlanket,
    MarkovBlanketOracle,
    claims="theorybench.envs.supervision.markov_blanket.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.supervision.markov_blanket.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=MarkovBlanketRenderer(),
)
