"""A question about one of several sources: how sharply to attend, how much to read, and when to answer."""

from theorybench.envs.context.mixture_recall.oracle import DIFFICULTIES, MixtureRecallOracle
from theorybench.envs.context.mixture_recall.render import MixtureRecallRenderer
from theorybench.envs.context.mixture_recall.setting import MixtureRecall
from theorybench.envs.core.registry import register

register(
    "TheoryBench/MixtureRecall-v0",
    MixtureRecall,
    MixtureRecallOracle,
    claims="theorybench.envs.context.mixture_recall.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.context.mixture_recall.studies:STUDIES",
    difficulties=DIFFICULTIES,
    renderer=MixtureRecallRenderer(),
)
