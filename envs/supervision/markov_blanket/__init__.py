"""Which of the recorded variables a prediction needs, where correlation points at the wrong ones."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/MarkovBlanket-v0",
    "theorybench.envs.supervision.markov_blanket.setting:MarkovBlanket",
    "theorybench.envs.supervision.markov_blanket.oracle:MarkovBlanketOracle",
    claims="theorybench.envs.supervision.markov_blanket.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.supervision.markov_blanket.studies:STUDIES",
    difficulties="theorybench.envs.supervision.markov_blanket.oracle:DIFFICULTIES",
    renderer="theorybench.envs.supervision.markov_blanket.render:MarkovBlanketRenderer",
)
