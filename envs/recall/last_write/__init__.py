"""The value that was written last, among decoys and fillers: how far back it may lie before a policy forgets it."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/LastWrite-v0",
    "theorybench.envs.recall.last_write.setting:LastWrite",
    "theorybench.envs.recall.last_write.oracle:LastWriteOracle",
    claims="theorybench.envs.recall.last_write.claims:CLAIMS",
    budget=65_536,
    studies="theorybench.envs.recall.last_write.studies:STUDIES",
    difficulties="theorybench.envs.recall.last_write.oracle:DIFFICULTIES",
    renderer="theorybench.envs.recall.last_write.render:LastWriteRenderer",
)
