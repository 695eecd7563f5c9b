"""A solution of K sub-steps within a budget of H tokens, whose relative size determines how much a learner can gain."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/RelativeBudget-v0",
    "theorybench.envs.curriculum.relative_budget.setting:RelativeBudget",
    "theorybench.envs.curriculum.relative_budget.oracle:RelativeBudgetOracle",
    claims="theorybench.envs.curriculum.relative_budget.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.curriculum.relative_budget.studies:STUDIES",
    difficulties="theorybench.envs.curriculum.relative_budget.oracle:DIFFICULTIES",
    renderer="theorybench.envs.curriculum.relative_budget.render:RelativeBudgetRenderer",
)
