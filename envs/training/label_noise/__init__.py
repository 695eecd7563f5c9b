"""Training on labels some of which are wrong: when to stop, and when to drop the samples with a large loss."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/LabelNoise-v0",
    "theorybench.envs.training.label_noise.setting:LabelNoise",
    "theorybench.envs.training.label_noise.oracle:LabelNoiseOracle",
    claims="theorybench.envs.training.label_noise.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.training.label_noise.studies:STUDIES",
    difficulties="theorybench.envs.training.label_noise.oracle:DIFFICULTIES",
    renderer="theorybench.envs.training.label_noise.render:LabelNoiseRenderer",
)
