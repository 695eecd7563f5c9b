"""How wide a network should be and how large its steps, for a given compute, and what cheap pilot runs tell of it."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/Emergence-v0",
    "theorybench.envs.features.emergence.setting:Emergence",
    "theorybench.envs.features.emergence.oracle:EmergenceOracle",
    claims="theorybench.envs.features.emergence.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.features.emergence.studies:STUDIES",
    difficulties="theorybench.envs.features.emergence.oracle:DIFFICULTIES",
    renderer="theorybench.envs.features.render:HiddenRunRenderer",
)
