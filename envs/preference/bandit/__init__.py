"""PreferenceBandit: pairs of responses, Bradley-Terry labels and a linear softmax class (arXiv 2601.08421)."""

from theorybench.envs.core.registry import register
from theorybench.envs.preference.bandit.claims import CLAIMS
from theorybench.envs.preference.bandit.oracle import PreferenceBanditOracle
from theorybench.envs.preference.bandit.setting import PreferenceBandit
from theorybench.envs.preference.bandit.studies import STUDIES

register(
    "TheoryBench/PreferenceBandit-v0",
    PreferenceBandit,
    PreferenceBanditOracle,
    claims=CLAIMS,
    budget=30_000,
    studies=STUDIES,
)
