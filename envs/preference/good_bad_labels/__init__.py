"""GoodBadLabels: single responses are labelled good or bad; which policy are they good of? (arXiv 2505.07558)."""

from theorybench.envs.core.registry import register
from theorybench.envs.preference.good_bad_labels.claims import CLAIMS
from theorybench.envs.preference.good_bad_labels.oracle import GoodBadLabelsOracle
from theorybench.envs.preference.good_bad_labels.setting import GoodBadLabels
from theorybench.envs.preference.good_bad_labels.studies import STUDIES

register(
    "TheoryBench/GoodBadLabels-v0",
    GoodBadLabels,
    GoodBadLabelsOracle,
    claims=CLAIMS,
    budget=20_000,
    studies=STUDIES,
)
