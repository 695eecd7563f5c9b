"""OptimalAdvantage: prompts with verifiable responses and a KL penalty to the reference (arXiv 2505.20686)."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/OptimalAdvantage-v0",
    "theorybench.envs.preference.optimal_advantage.setting:OptimalAdvantage",
    "theorybench.envs.preference.optimal_advantage.oracle:OptimalAdvantageOracle",
    claims="theorybench.envs.preference.optimal_advantage.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.preference.optimal_advantage.studies:STUDIES",
)
