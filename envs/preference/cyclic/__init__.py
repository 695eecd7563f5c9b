"""CyclicPreference: pairs of responses are compared by preferences with cycles, which no reward explains."""

from theorybench.envs.core.registry import register
from theorybench.envs.preference.cyclic.oracle import CyclicPreferenceOracle
from theorybench.envs.preference.cyclic.setting import CyclicPreference

register(
    "TheoryBench/CyclicPreference-v0",
    CyclicPreference,
    CyclicPreferenceOracle,
    claims="theorybench.envs.preference.cyclic.claims:CLAIMS",
    budget=30_000,
    studies="theorybench.envs.preference.cyclic.studies:STUDIES",
)
