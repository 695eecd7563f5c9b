"""How to split a budget of labels between source tasks, which teach features, and heads, which use them."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/SampleSplit-v0",
    "theorybench.envs.features.sample_split.setting:SampleSplit",
    "theorybench.envs.features.sample_split.oracle:SampleSplitOracle",
    claims="theorybench.envs.features.sample_split.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.features.sample_split.studies:STUDIES",
    difficulties="theorybench.envs.features.sample_split.oracle:DIFFICULTIES",
    renderer="theorybench.envs.features.render:HiddenRunRenderer",
)
