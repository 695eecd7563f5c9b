"""Whose value was that? Keys of several symbols, many of which share all but one."""

from theorybench.envs.core.registry import register
from theorybench.envs.recall.key_recall.oracle import DIFFICULTIES, KeyRecallOracle
from theorybench.envs.recall.key_recall.render import KeyRecallRenderer
from theorybench.envs.recall.key_recall.setting import KeyRecall

register(
    "TheoryBench/KeyRecall-v0",
    KeyRecall,
    KeyRecallOracle,
    claims="theorybench.envs.recall.key_recall.claims:CLAIMS",
    budget=65_536,
    studies="theorybench.envs.recall.key_recall.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=KeyRecallRenderer(),
)
