"""The studies of KFoldComposition: what they draw agrees with theory where theory speaks."""

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.curriculum.k_fold import studies as k_fold_studies
from theorybench.envs.curriculum.k_fold.training import Ascent

ID = "TheoryBench/KFoldComposition-v0"
STUDY = {study.id: study for study in tb.studies(ID)}


def lines(chart, style):
    return {series.group: series for series in chart.series if series.style == style}


def test_the_barrier_is_where_theory_says(monkeypatch):
    monkeypatch.setattr(k_fold_studies, "HOPS", (1, 4))
    monkeypatch.setattr(k_fold_studies, "MOST_MEASURED", 3)
    tilts, gradients = STUDY["barrier"].result(seeds=4).charts
    for chart in (tilts, gradients):
        for agreement in chart.agreement():
            assert agreement.inside >= agreement.points - 1 and agreement.distance < 0.02, agreement
    theory = lines(gradients, "predicted")
    falling, flat = theory["x and the response"].y, theory["the whole prompt"].y
    assert np.allclose(np.diff(np.log(falling)), -np.log(2) / 2) and len(set(flat)) == 1


@pytest.mark.slow
def test_easy_before_hard_for_tables_and_networks(monkeypatch):
    monkeypatch.setattr(k_fold_studies, "Ascent", lambda share: Ascent(share, updates=25))
    result = STUDY["learning"].result(seeds=2)
    sources, tables, networks = result.charts
    ends = {name: series.y[-1] for name, series in lines(sources, "band").items()}
    assert ends["single hops"] > 0.9 and ends["single hops and full tasks"] > 0.9
    assert abs(ends["full tasks alone"]) < 0.02
    for chart in (tables, networks):
        ends = {name: series.y[-1] for name, series in lines(chart, "band").items()}
        assert ends["rungs 1, 2, ..., k"] > 0.6 > 0.4 > ends["full tasks alone"], chart.title


def test_tables_climb_a_staircase(monkeypatch):
    monkeypatch.setattr(k_fold_studies, "POLICIES", {"tables": k_fold_studies.POLICIES["tables"]})
    result = STUDY["staircase"].result(seeds=2)
    (chart,) = result.charts
    measured, theory = lines(chart, "measured"), lines(chart, "predicted")
    assert list(measured) == ["1 hop", "2 hops", "3 hops"]
    for group, series in measured.items():
        assert np.abs(np.array(series.y) - theory[group].y).max() < 0.08
    assert len(result.tables[0].rows) == 3
