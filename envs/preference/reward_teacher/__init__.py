"""RewardTeacher: training on a reward model of given accuracy and variance (arXiv 2503.15477)."""

from theorybench.envs.core.registry import register
from theorybench.envs.preference.reward_teacher.claims import CLAIMS
from theorybench.envs.preference.reward_teacher.oracle import RewardTeacherOracle
from theorybench.envs.preference.reward_teacher.setting import RewardTeacher
from theorybench.envs.preference.reward_teacher.studies import STUDIES

register(
    "TheoryBench/RewardTeacher-v0",
    RewardTeacher,
    RewardTeacherOracle,
    claims=CLAIMS,
    budget=20_000,
    studies=STUDIES,
)
