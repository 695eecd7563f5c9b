"""PreferenceBandit: pairs of responses, Bradley-Terry labels and a linear softmax class (arXiv 2601.08421)."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/PreferenceBandit-v0",
    "theorybench.envs.preference.bandit.setting:PreferenceBandit",
    "theorybench.envs.preference.bandit.oracle:PreferenceBanditOracle",
    claims="theorybench.envs.preference.bandit.claims:CLAIMS",
    budget=30_000,
    studies="theorybench.envs.preference.bandit.studies:STUDIES",
)
