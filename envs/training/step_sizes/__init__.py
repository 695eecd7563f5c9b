"""Step sizes of gradient descent that may be stopped at any time: how long may a step be?"""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/StepSizes-v0",
    "theorybench.envs.training.step_sizes.setting:StepSizes",
    "theorybench.envs.training.step_sizes.oracle:StepSizesOracle",
    claims="theorybench.envs.training.step_sizes.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.training.step_sizes.studies:STUDIES",
    difficulties="theorybench.envs.training.step_sizes.oracle:DIFFICULTIES",
    renderer="theorybench.envs.training.step_sizes.render:StepSizesRenderer",
)
