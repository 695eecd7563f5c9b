"""A text whose source is unknown: metadata, more of the text, or writing."""

from theorybench.envs.context.metadata.oracle import DIFFICULTIES, MetadataOracle
from theorybench.envs.context.metadata.render import MetadataRenderer
from theorybench.envs.context.metadata.setting import Metadata
from theorybench.envs.core.registry import register

register(
    "TheoryBench/Metadata-v0",
    Metadata,
    MetadataOracle,
    claims="theorybench.envs.context.metadata.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.context.metadata.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=MetadataRenderer(),
)
