"""The studies of Semiautomaton: what they draw agrees with theory where theory speaks, and with what learners do."""

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.curriculum.semiautomaton import studies

STUDY = {study.id: study for study in tb.studies("TheoryBench/Semiautomaton-v0")}


def lines(chart, style):
    return {series.group: series for series in chart.series if series.style == style}


def test_machines_part_as_fast_as_theory_says(monkeypatch):
    monkeypatch.setattr(studies, "ALPHABETS", (6, 500))
    monkeypatch.setattr(studies, "EPISODES", 4000)
    (chart,) = STUDY["parting"].result(seeds=6).charts
    counted, exact = lines(chart, "simulated"), lines(chart, "predicted")
    limit = np.array(exact[studies.LIMIT].y)
    assert np.allclose(limit[1:] / limit[:-1], 0.8)
    large = np.array(exact["500 letters"].y)
    assert np.abs(large / limit - 1).max() < 0.15 and exact["6 letters"].y[-1] > 2 * limit[-1]
    theory = dict(zip(exact["500 letters"].x, large, strict=True))
    points = zip(counted["500 letters"].x, counted["500 letters"].y, strict=True)
    assert all(abs(y - theory[x]) < 0.05 for x, y in points)


def test_one_table_is_right_on_all_lengths_after_its_first_rung_and_at_chance_without_it(monkeypatch):
    monkeypatch.setattr(studies, "POLICIES", {"tables": ({}, {}, 4000)})
    monkeypatch.setattr(studies, "POINTS", 8)
    result = STUDY["networks"].result(seeds=3)
    barrier, stairs = result.charts
    curves = lines(barrier, "band")
    assert curves[studies.CLIMBING].low[-1] > 0.9 > 0.45 > curves[studies.DIRECT].y[-1]
    assert lines(barrier, "predicted")["chance"].y == (1 / 3, 1 / 3)
    assert stairs.note.endswith("Runs that are right on each rung: 3, 3, 3, 3, 3 of 3.")
    for word, (group, series) in enumerate(lines(stairs, "measured").items()):
        assert group.startswith(str(word + 1)) and series.y[-1] > 0.9 and series.y[0] > 0.9 ** (word + 1)
    assert [row[:4] for row in result.tables[0].rows][1] == ("tables", studies.CLIMBING, 3, 3)


def test_a_curriculum_that_skips_the_short_words_climbs_no_staircase(monkeypatch):
    monkeypatch.setattr(studies, "POLICIES", {"tables": ({}, {"threshold": 0.0}, 4000)})
    monkeypatch.setattr(studies, "POINTS", 4)
    barrier, _ = STUDY["networks"].result(seeds=4).charts
    assert lines(barrier, "band")[studies.CLIMBING].y[-1] < 0.7


@pytest.mark.slow
def test_transformers_are_at_chance_on_long_words_alone_and_climb_by_ever_longer_ones(monkeypatch):
    monkeypatch.setattr(studies, "POLICIES", {"a transformer": studies.POLICIES["a transformer"]})
    monkeypatch.setattr(studies, "POINTS", 12)
    barrier, stairs = STUDY["networks"].result(seeds=3).charts
    curves = lines(barrier, "band")
    assert curves[studies.CLIMBING].y[-1] > 0.9 and curves[studies.DIRECT].high[-1] < 0.45
    found = lines(stairs, "measured")
    assert found["1 letter"].y[0] > 0.9 > 0.5 > found["5 letters"].y[0]
