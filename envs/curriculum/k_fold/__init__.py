"""k-fold composition (arXiv 2505.23683): hidden permutations between visible ones, learnt from easy to hard."""

from theorybench.envs.core.registry import register
from theorybench.envs.curriculum.k_fold.claims import CLAIMS
from theorybench.envs.curriculum.k_fold.oracle import DIFFICULTIES, KFoldOracle
from theorybench.envs.curriculum.k_fold.setting import KFoldComposition
from theorybench.envs.curriculum.k_fold.studies import STUDIES

register(
    "TheoryBench/KFoldComposition-v0",
    KFoldComposition,
    KFoldOracle,
    claims=CLAIMS,
    budget=20_000,
    studies=STUDIES,
    difficulties=DIFFICULTIES,
)
