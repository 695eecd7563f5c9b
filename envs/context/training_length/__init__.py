"""Which lengths to train on, with compute to pay, so that the model is right at any length."""

from theorybench.envs.context.training_length.oracle import DIFFICULTIES, TrainingLengthOracle
from theorybench.envs.context.training_length.render import TrainingLengthRenderer
from theorybench.envs.context.training_length.setting import TrainingLength
from theorybench.envs.core.registry import register

register(
    "TheoryBench/TrainingLength-v0",
    TrainingLength,
    TrainingLengthOracle,
    claims="theorybench.envs.context.training_length.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.context.training_length.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=TrainingLengthRenderer(),
)
