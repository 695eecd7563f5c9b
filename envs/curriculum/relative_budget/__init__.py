"""A solution of K sub-steps within a budget of H tokens, whose relative size determines how much a learner can gain."""

from theorybench.envs.core.registry import register
from theorybench.envs.curriculum.relative_budget.oracle import DIFFICULTIES, RelativeBudgetOracle
from theorybench.envs.curriculum.relative_budget.render import RelativeBudgetRenderer
from theorybench.envs.curriculum.relative_budget.setting import RelativeBudget

register(
    "TheoryBench/RelativeBudget-v0",
    RelativeBudget,
    RelativeBudgetOracle,
    claims="theorybench.envs.curriculum.relative_budget.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.curriculum.relative_budget.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=RelativeBudgetRenderer(),
)
