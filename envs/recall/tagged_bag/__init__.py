"""What kind the source with a tag is, after readings of several sources in one context."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/TaggedBag-v0",
    "theorybench.envs.recall.tagged_bag.setting:TaggedBag",
    "theorybench.envs.recall.tagged_bag.oracle:TaggedBagOracle",
    claims="theorybench.envs.recall.tagged_bag.claims:CLAIMS",
    budget=65_536,
    studies="theorybench.envs.recall.tagged_bag.studies:STUDIES",
    difficulties="theorybench.envs.recall.tagged_bag.oracle:DIFFICULTIES",
    renderer="theorybench.envs.recall.tagged_bag.render:TaggedBagRenderer",
)
