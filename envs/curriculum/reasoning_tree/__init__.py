"""The reasoning tree of arXiv 2511.07372: a hidden path of picks, judged by its outcome, learnt stage by stage."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/ReasoningTree-v0",
    "theorybench.envs.curriculum.reasoning_tree.setting:ReasoningTree",
    "theorybench.envs.curriculum.reasoning_tree.oracle:ReasoningTreeOracle",
    claims="theorybench.envs.curriculum.reasoning_tree.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.curriculum.reasoning_tree.studies:STUDIES",
    difficulties="theorybench.envs.curriculum.reasoning_tree.oracle:DIFFICULTIES",
    renderer="theorybench.envs.curriculum.reasoning_tree.render:ReasoningTreeRenderer",
)
