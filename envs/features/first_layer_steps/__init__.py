"""How long to train the first layer before the head is fitted: power iteration finds features, and then loses them."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/FirstLayerSteps-v0",
    "theorybench.envs.features.first_layer_steps.setting:FirstLayerSteps",
    "theorybench.envs.features.first_layer_steps.oracle:FirstLayerStepsOracle",
    claims="theorybench.envs.features.first_layer_steps.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.features.first_layer_steps.studies:STUDIES",
    difficulties="theorybench.envs.features.first_layer_steps.oracle:DIFFICULTIES",
    renderer="theorybench.envs.features.render:HiddenRunRenderer",
)
