"""RewardTeacher: training on a reward model of given accuracy and variance (arXiv 2503.15477)."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/RewardTeacher-v0",
    "theorybench.envs.preference.reward_teacher.setting:RewardTeacher",
    "theorybench.envs.preference.reward_teacher.oracle:RewardTeacherOracle",
    claims="theorybench.envs.preference.reward_teacher.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.preference.reward_teacher.studies:STUDIES",
)
