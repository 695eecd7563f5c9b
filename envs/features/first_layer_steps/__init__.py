"""How long to train the first layer before the head is fitted: power iteration finds features, and then loses them."""

from theorybench.envs.core.registry import register
from theorybench.envs.features.first_layer_steps.oracle import DIFFICULTIES, FirstLayerStepsOracle
from theorybench.envs.features.first_layer_steps.setting import FirstLayerSteps
from theorybench.envs.features.render import HiddenRunRenderer

register(
    "TheoryBench/FirstLayerSteps-v0",
    FirstLayerSteps,
    FirstLayerStepsOracle,
    claims="theorybench.envs.features.first_layer_steps.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.features.first_layer_steps.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=HiddenRunRenderer(),
)
