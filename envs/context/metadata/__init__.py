"""A text whose source is unknown: metadata, more of the text, or writing."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/Metadata-v0",
    "theorybench.envs.context.metadata.setting:Metadata",
    "theorybench.envs.context.metadata.oracle:MetadataOracle",
    claims="theorybench.envs.context.metadata.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.context.metadata.studies:STUDIES",
    difficulties="theorybench.envs.context.metadata.oracle:DIFFICULTIES",
    renderer="theorybench.envs.context.metadata.render:MetadataRenderer",
)
