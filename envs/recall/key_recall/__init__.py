"""Whose value was that? Keys of several symbols, many of which share all but one."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/KeyRecall-v0",
    "theorybench.envs.recall.key_recall.setting:KeyRecall",
    "theorybench.envs.recall.key_recall.oracle:KeyRecallOracle",
    claims="theorybench.envs.recall.key_recall.claims:CLAIMS",
    budget=65_536,
    studies="theorybench.envs.recall.key_recall.studies:STUDIES",
    difficulties="theorybench.envs.recall.key_recall.oracle:DIFFICULTIES",
    renderer="theorybench.envs.recall.key_recall.render:KeyRecallRenderer",
)
