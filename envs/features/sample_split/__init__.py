"""How to split a budget of labels between source tasks, which teach features, and heads, which use them."""

from theorybench.envs.core.registry import register
from theorybench.envs.features.render import HiddenRunRenderer
from theorybench.envs.features.sample_split.oracle import DIFFICULTIES, SampleSplitOracle
from theorybench.envs.features.sample_split.setting import SampleSplit

register(
    "TheoryBench/SampleSplit-v0",
    SampleSplit,
    SampleSplitOracle,
    claims="theorybench.envs.features.sample_split.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.features.sample_split.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=HiddenRunRenderer(),
)
