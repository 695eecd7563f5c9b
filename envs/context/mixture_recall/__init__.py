"""A question about one of several sources: how sharply to attend, how much to read, and when to answer."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/MixtureRecall-v0",
    "theorybench.envs.context.mixture_recall.setting:MixtureRecall",
    "theorybench.envs.context.mixture_recall.oracle:MixtureRecallOracle",
    claims="theorybench.envs.context.mixture_recall.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.context.mixture_recall.studies:STUDIES",
    difficulties="theorybench.envs.context.mixture_recall.oracle:DIFFICULTIES",
    renderer="theorybench.envs.context.mixture_recall.render:MixtureRecallRenderer",
)
