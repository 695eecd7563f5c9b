"""The settings that ship: one registration each."""

from theorybench.envs.core.registry import register
from theorybench.envs.preference.bandit import PreferenceBandit
from theorybench.envs.preference.bandit_claims import CLAIMS as PREFERENCE_BANDIT_CLAIMS
from theorybench.envs.preference.bandit_oracle import PreferenceBanditOracle

register(
    "TheoryBench/PreferenceBandit-v0",
    PreferenceBandit,
    PreferenceBanditOracle,
    claims=PREFERENCE_BANDIT_CLAIMS,
    budget=30_000,
)
