"""The reasoning tree of arXiv 2511.07372: a hidden path of picks, judged by its outcome, learnt stage by stage."""

from theorybench.envs.core.registry import register
from theorybench.envs.curriculum.reasoning_tree.oracle import DIFFICULTIES, ReasoningTreeOracle
from theorybench.envs.curriculum.reasoning_tree.render import ReasoningTreeRenderer
from theorybench.envs.curriculum.reasoning_tree.setting import ReasoningTree

register(
    "TheoryBench/ReasoningTree-v0",
    ReasoningTree,
    ReasoningTreeOracle,
    claims="theorybench.envs.curriculum.reasoning_tree.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.curriculum.reasoning_tree.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=ReasoningTreeRenderer(),
)
