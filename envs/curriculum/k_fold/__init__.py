"""k-fold composition (arXiv 2505.23683): hidden permutations between visible ones, learnt from easy to hard."""

from theorybench.envs.core.registry import register
from theorybench.envs.curriculum.k_fold.oracle import DIFFICULTIES, KFoldOracle
from theorybench.envs.curriculum.k_fold.render import KFoldRenderer
from theorybench.envs.curriculum.k_fold.setting import KFoldComposition

register(
    "TheoryBench/KFoldComposition-v0",
    KFoldComposition,
    KFoldOracle,
    claims="theorybench.envs.curriculum.k_fold.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.curriculum.k_fold.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=KFoldRenderer(),
)
