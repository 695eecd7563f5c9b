"""CyclicPreference: pairs of responses whose preferences need no reward: general preferences with cycles."""

from theorybench.envs.core.registry import register
from theorybench.envs.preference.cyclic.claims import CLAIMS
from theorybench.envs.preference.cyclic.oracle import CyclicPreferenceOracle
from theorybench.envs.preference.cyclic.setting import CyclicPreference
from theorybench.envs.preference.cyclic.studies import STUDIES

register(
    "TheoryBench/CyclicPreference-v0",
    CyclicPreference,
    CyclicPreferenceOracle,
    claims=CLAIMS,
    budget=30_000,
    studies=STUDIES,
)
