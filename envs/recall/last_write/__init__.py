"""The value that was written last, among decoys and fillers: how far back it may lie before a policy forgets it."""

from theorybench.envs.core.registry import register
from theorybench.envs.recall.last_write.oracle import DIFFICULTIES, LastWriteOracle
from theorybench.envs.recall.last_write.render import LastWriteRenderer
from theorybench.envs.recall.last_write.setting import LastWrite

register(
    "TheoryBench/LastWrite-v0",
    LastWrite,
    LastWriteOracle,
    claims="theorybench.envs.recall.last_write.claims:CLAIMS",
    budget=65_536,
    studies="theorybench.envs.recall.last_write.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=LastWriteRenderer(),
)
