"""CyclicPreference: pairs of responses are compared by preferences with cycles, which no reward explains."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/CyclicPreference-v0",
    "theorybench.envs.preference.cyclic.setting:CyclicPreference",
    "theorybench.envs.preference.cyclic.oracle:CyclicPreferenceOracle",
    claims="theorybench.envs.preference.cyclic.claims:CLAIMS",
    budget=30_000,
    studies="theorybench.envs.preference.cyclic.studies:STUDIES",
)
