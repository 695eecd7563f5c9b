"""The studies of ReasoningTree: what they count agrees with theory, and runs do what their charts are about."""

import dataclasses
import itertools

import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.curriculum.reasoning_tree import studies as reasoning_tree_studies
from theorybench.envs.curriculum.reasoning_tree.setting import ReasoningTree

ID = "TheoryBench/ReasoningTree-v0"
STUDY = {study.id.removeprefix("reasoning-tree-"): study for study in tb.studies(ID)}
SMALL = {
    "DIRECT": (1, 2),
    "LEARNT": (1, 2),
    "STAGED": (1, 3),
    "DRAWN": (1, 2, 3),
    "LIMIT": 1_600,
    "SHARE": 1_600,
    "CONFIRMATIONS": (1, 3),
    "BLOCKS": 100,
    "COSTED": (1, 3),
    "BUDGET": 6_000,
    "RESPONSES": 512,
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few points and short runs."""
    for name, value in SMALL.items():
        monkeypatch.setattr(reasoning_tree_studies, name, value)
    searches = {name: (1, 2) if "full" in name else (1, 3) for name in reasoning_tree_studies.SEARCHES}
    monkeypatch.setattr(reasoning_tree_studies, "SEARCHES", searches)
    learners = {
        name: (agent, (1, 2) if agent == "rlvr" else (1, 3))
        for name, (agent, _) in reasoning_tree_studies.LEARNERS.items()
    }
    monkeypatch.setattr(reasoning_tree_studies, "LEARNERS", learners)


def lines(chart, style):
    return {series.group: series for series in chart.series if series.style == style}


def agrees(chart):
    found = chart.agreement()
    assert found and all(group.inside == group.points for group in found), found


def test_searches_cost_what_theory_says_and_learners_that_do_not_arrive_are_said_to():
    result = STUDY["length"].result(seeds=2)
    training, testing = result.charts
    for chart in (training, testing):
        agrees(chart)
        theory = lines(chart, "predicted")
        growth = np.diff(np.log(theory["search, full task"].y))
        assert growth == pytest.approx(np.log(5), rel=0.05)
    assert np.diff(lines(training, "predicted")["search, stage by stage"].y) == pytest.approx(5)
    arrived = {row[:2]: row[2] for row in result.tables[0].rows}
    assert arrived["REINFORCE, rung by rung", 1] == arrived["REINFORCE, rung by rung", 3] == 2
    assert arrived["REINFORCE, full task", 2] < 2
    assert 2.0 in lines(training, "censored")["REINFORCE, full task"].x


def test_a_search_that_knows_a_pick_is_off_the_lines(monkeypatch):
    whole = reasoning_tree_studies.depth_ladder
    monkeypatch.setattr(reasoning_tree_studies, "depth_ladder", lambda setting, p: whole(setting, p)[-1:])
    result = STUDY["length"].result(seeds=2)
    (ladder,) = [group for group in result.charts[0].agreement() if group.group == "search, stage by stage"]
    assert ladder.inside < ladder.points


def test_parity_pays_for_the_length_and_stages_teach_what_it_cannot_say():
    study = dataclasses.replace(STUDY["verifiers"], setting=ReasoningTree(d=8, L=4))
    result = study.result(seeds=2)
    survival, tests, exact, parity = result.charts
    agrees(survival)
    agrees(tests)
    assert max(lines(exact, "band")["full task"].y) < 0.05
    assert lines(parity, "band")["full task"].y[-1] > 0.3
    ends = [lines(chart, "band")["stages"].y[-1] for chart in (exact, parity)]
    assert min(ends) > 0.9
    learnt, costs = result.tables
    for verifier, _, reward, whole, right in learnt.rows:
        share = right.value if verifier == "exact" else (1 + right.value) / 2
        assert reward.value == pytest.approx(whole.value * share, abs=0.06)
    assert [row[1] for row in costs.rows] == [81, 6561] and [row[4] for row in costs.rows] == [18, 36]


def test_ladders_of_stages_and_hints_cost_the_same_and_steep_ones_more():
    result = STUDY["ladders"].result(seeds=2)
    lengths, increments, learning = result.charts
    agrees(lengths)
    agrees(increments)
    theory = lines(lengths, "predicted")
    assert theory["stages"].y == theory["hints"].y
    costs = lines(increments, "simulated")["stages"].y
    assert all(first < second for first, second in itertools.pairwise(costs))
    ends = {name: series.y[-1] for name, series in lines(learning, "band").items()}
    assert min(ends["stages"], ends["hints"]) > 0.9 > ends["full task"]
