"""What kind the source with a tag is, after readings of several sources in one context."""

from theorybench.envs.core.registry import register
from theorybench.envs.recall.tagged_bag.oracle import DIFFICULTIES, TaggedBagOracle
from theorybench.envs.recall.tagged_bag.render import TaggedBagRenderer
from theorybench.envs.recall.tagged_bag.setting import TaggedBag

register(
    "TheoryBench/TaggedBag-v0",
    TaggedBag,
    TaggedBagOracle,
    claims="theorybench.envs.recall.tagged_bag.claims:CLAIMS",
    budget=65_536,
    studies="theorybench.envs.recall.tagged_bag.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=TaggedBagRenderer(),
)
