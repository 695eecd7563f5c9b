"""Which lengths to train on, so that a model learns to look the answer up instead of where it stood."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/InductionMixture-v0",
    "theorybench.envs.training.induction_mixture.setting:InductionMixture",
    "theorybench.envs.training.induction_mixture.oracle:InductionMixtureOracle",
    claims="theorybench.envs.training.induction_mixture.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.training.induction_mixture.studies:STUDIES",
    difficulties="theorybench.envs.training.induction_mixture.oracle:DIFFICULTIES",
    renderer="theorybench.envs.training.induction_mixture.render:InductionMixtureRenderer",
)
