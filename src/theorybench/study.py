"""What claims and studies of your own are made of: tables, charts and their series, and intervals of measured numbers.

A claim's `measure` returns (value, low, high), which `mean_interval`, `share_interval` and `ratio_of_means` make; a
study's `run` returns an `Exhibit`. `examples/own_claim.py` has one of each.
"""

from theorybench.envs.core.evidence.claim import Lab, interval, mean_interval, ratio_of_means, share_interval
from theorybench.envs.core.evidence.study import (
    Axis,
    Chart,
    Column,
    Exhibit,
    Picture,
    Quantity,
    Series,
    Study,
    Table,
    measured,
)

__all__ = [
    "Axis",
    "Chart",
    "Column",
    "Exhibit",
    "Lab",
    "Picture",
    "Quantity",
    "Series",
    "Study",
    "Table",
    "interval",
    "mean_interval",
    "measured",
    "ratio_of_means",
    "share_interval",
]
