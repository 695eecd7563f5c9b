"""Which lengths to train on, with compute to pay, so that the model is right at any length."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/TrainingLength-v0",
    "theorybench.envs.context.training_length.setting:TrainingLength",
    "theorybench.envs.context.training_length.oracle:TrainingLengthOracle",
    claims="theorybench.envs.context.training_length.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.context.training_length.studies:STUDIES",
    difficulties="theorybench.envs.context.training_length.oracle:DIFFICULTIES",
    renderer="theorybench.envs.context.training_length.render:TrainingLengthRenderer",
)
