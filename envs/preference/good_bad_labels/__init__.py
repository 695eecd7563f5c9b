"""GoodBadLabels: single responses are labelled good or bad; the target is the law of good ones (arXiv 2505.07558)."""

from theorybench.envs.core.registry import register

register(
    "TheoryBench/GoodBadLabels-v0",
    "theorybench.envs.preference.good_bad_labels.setting:GoodBadLabels",
    "theorybench.envs.preference.good_bad_labels.oracle:GoodBadLabelsOracle",
    claims="theorybench.envs.preference.good_bad_labels.claims:CLAIMS",
    budget=20_000,
    studies="theorybench.envs.preference.good_bad_labels.studies:STUDIES",
)
