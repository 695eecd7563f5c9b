"""Claims and studies in the terminal, on a page and as pictures: whole, legible, and safe with hostile text."""

import base64
import dataclasses
import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from rich.console import Console

import theorybench as tb
from theorybench.envs.core.evidence.interval import Interval
from theorybench.envs.core.evidence.study import Axis, Chart, Column, Picture, Series, StudyResult, Table
from theorybench.leaderboard.evidence.report import CheckedClaim, ShownStudy, chapters, check_claim, show_study
from theorybench.leaderboard.showing.exhibit_charts import study_figure
from theorybench.leaderboard.showing.exhibit_layout import (
    axis_range,
    chart_key,
    format_tick,
    log_ticks,
    place_labels,
    tick_texts,
)
from theorybench.leaderboard.showing.exhibit_pictures import _figure, write_pictures
from theorybench.leaderboard.showing.exhibit_table import cell, claim_lines, study_lines
from theorybench.leaderboard.showing.report_page import render_report
from theorybench.leaderboard.showing.styles import style

ENV = f"{Path(__file__).parents[1] / 'data' / 'toys.py'}:Toys/TwoArms-v0"
ID = "Toys/TwoArms-v0"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>[red]\x1b[2J$x^2$"
K = (1, 2, 4, 8)


def lines(*groups: str) -> Chart:
    """One measured and one predicted series for each group, on a logarithmic axis."""
    series = []
    for i, group in enumerate(groups):
        y = np.array([0.1, 0.2, 0.3, 0.4]) + i / 10
        series.append(Series(group, "measured", K, y + 0.01, y - 0.02, y + 0.03))
        series.append(Series(group, "predicted", K, y))
    return Chart("Lines", Axis("tries K", "log", ticks=K), Axis("pass@K"), tuple(series))


def everything(text: str) -> StudyResult:
    """An result with every kind of thing, `text` wherever there is text."""
    styles = ("measured", "band", "simulated", "predicted", "published", "censored")
    series = [Series(text, name, (1, 2, 3), (1, 2, 3), (0, 1, 2), (2, 3, 4)) for name in styles]
    table = Table(
        text, (Column(text), Column("n", ",d"), Column("x")), ((text, 10_000, Interval(1.5, 1, 2)),) * 15, text
    )
    chart = Chart(text, Axis(text), Axis(text), tuple(series), text)
    return StudyResult((table,), (chart, lines("a", "b", text)), (Picture(text, f"<svg>{text}</svg>", text),), (text,))


def shown(result: StudyResult | None, text: str = "words", **changes) -> ShownStudy:
    study = ShownStudy("two-arms", ID, text, text, text, seed=0, seeds=3, seconds=1.0, result=result)
    return dataclasses.replace(study, **changes)


def checked(text: str = "words", **changes) -> CheckedClaim:
    claim = CheckedClaim("one-claim", ID, text, text, text, text, 0.1, text, 1.0, 1.1, 1.0, 1.2, True, 0.5)
    return dataclasses.replace(claim, **changes)


def printed(renderable, width: int = 80) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"), force_terminal=False)  # noqa: SIM115
    console.print(renderable)
    return console.export_text()


class Page(HTMLParser):
    """Elements with their attributes, and the text of scripts and of everything else."""

    def __init__(self, claims=(), studies=()):
        super().__init__(convert_charrefs=True)
        self.elements, self.scripts, self.text, self._open = [], [], "", ""
        tb.claims(ENV)  # registers the toys
        self.feed(render_report(chapters(claims, studies)))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_endtag(self, tag):
        self._open = ""

    def handle_data(self, data):
        if self._open == "script":
            self.scripts.append(data)
        elif self._open != "style":
            self.text += data


# What is shown.


def test_claims_and_studies_become_rows():
    win, _, wrong = (check_claim(claim, 0) for claim in tb.claims(ENV))
    assert (win.environment, win.formula, win.holds) == (ID, ".5 + gap", True) and not wrong.holds
    learning, broken = (show_study(study, 1, 2) for study in tb.studies(ENV))
    assert learning.seeds == 2 and learning.result.notes == ("2 runs of 0.5.",) and learning.error is None
    assert broken.result is None and "ValueError: no such thing" in broken.error
    (chapter,) = chapters([win, wrong], [learning, broken])
    assert chapter.holding == 1 and chapter.label == "Toys/TwoArms" and len(chapter.studies) == 2


def test_a_claim_that_cannot_be_measured_does_not_hold():
    claim = dataclasses.replace(tb.claims(ENV)[0], measure=lambda *_: 1 / 0)
    row = check_claim(claim, 0)
    assert not row.holds and "ZeroDivisionError" in row.error and row.measured is None
    assert "ZeroDivisionError" in printed(claim_lines(row)) and "ZeroDivisionError" in Page([row]).text


def test_cells_are_written_in_the_format_of_their_column():
    column = Column("x", ".2f")
    assert cell(None, column) == "" and cell("text", column) == "text" and cell(10_000, Column("n", ",d")) == "10,000"
    assert cell(Interval(0.5, 0.25, 0.75), column) == "0.50 [0.25, 0.75]" and cell(0.5, column) == "0.50"


# Layout.


def test_axes_show_all_values_with_a_margin():
    low, high = axis_range(Axis("x"), [0.0, 10.0])
    assert low == pytest.approx(-0.5) and high == pytest.approx(10.5)
    low, high = axis_range(Axis("x", "log"), [1.0, 100.0, 0.0])
    assert low == pytest.approx(10**-0.1) and high == pytest.approx(10**2.1)
    assert axis_range(Axis("x", range=(2, 3)), [0.0]) == (2, 3)
    low, high = axis_range(Axis("x"), [4.0])
    assert low < 4.0 < high


@pytest.mark.parametrize("seed", range(5))
def test_labels_keep_apart_and_in_order(seed):
    ends = np.sort(np.random.default_rng(seed).uniform(0.4, 0.6, 7))
    chart = Chart(
        "", Axis(""), Axis("", range=(0, 1)), tuple(Series(str(y), "predicted", (0, 1), (y, y)) for y in ends)
    )
    labels = place_labels(chart, 0.06)
    heights = np.array([labels.heights[str(y)] for y in ends])
    assert (np.diff(heights) > 0.06 - 1e-9).all() and labels.side == "right"
    assert abs(heights.mean() - ends.mean()) < 0.06


def test_labels_stand_where_lines_are_apart():
    lines = [Series(str(y), "predicted", (0, 1), (y, 0.5)) for y in (0.1, 0.4, 0.7)]
    chart = Chart("", Axis(""), Axis("", range=(0, 1)), tuple(lines))
    labels = place_labels(chart, 0.06)
    assert labels.side == "left" and labels.heights == pytest.approx({"0.1": 0.1, "0.4": 0.4, "0.7": 0.7})
    layout = study_figure(chart, {group: style(0) for group in chart.groups}, "place")["layout"]
    assert layout["yaxis"]["side"] == "right" and {note["x"] for note in layout["annotations"]} == {0}


def test_labels_stay_on_the_chart():
    lines = [Series(str(y), "predicted", (0, 1), (y, y)) for y in (0.9, 0.95, 1.0)]
    heights = place_labels(Chart("", Axis(""), Axis("", range=(0, 1)), tuple(lines)), 0.06).heights
    assert heights == pytest.approx({"0.9": 0.88, "0.95": 0.94, "1.0": 1.0})
    many = [Series(str(y), "predicted", (0, 1), (y, y)) for y in np.linspace(0, 1, 40)]
    heights = place_labels(Chart("", Axis(""), Axis("", range=(0, 1)), tuple(many)), 0.06).heights
    assert list(heights.values()) == pytest.approx(np.linspace(0, 1, 40))


def test_ticks_are_short():
    assert [format_tick(x) for x in (1.0, 128.0, 20_000.0, 0.1)] == ["1", "128", "20,000", "0.1"]
    assert tick_texts((1.0, 10.0, 100.0, 1e5)) == ["1", "10", "100", "100,000"]
    assert tick_texts((1e-2, 1.0, 10.0, 1e3, 1e12)) == ["10⁻²", "1", "10", "10³", "10¹²"]
    assert tick_texts((1e6, 2e6)) == ["1,000,000", "2,000,000"]


def test_logarithmic_axes_are_labelled_at_powers_of_ten_or_between():
    assert log_ticks((0.5, 2e3)) == [(1, "1"), (10, "10"), (100, "100"), (1000, "1,000")]
    assert [text for _, text in log_ticks((0.9, 30))] == ["1", "2", "5", "10", "20"]
    assert [text for _, text in log_ticks((3, 2e7))][-1] == "10⁷"


def test_lines_of_theory_are_dashed_where_lines_are_measured():
    y = (1, 2, 3)
    theory, floor = Series("a", "predicted", y, y), Series("floor", "predicted", y, (1, 1, 1))
    for other, dash, key in (("band", "dash", "dashed: theory"), ("measured", "solid", "line: theory")):
        chart = Chart("", Axis(""), Axis(""), (Series("a", other, y, y, (0, 1, 2), (2, 3, 4)), theory, floor))
        data = study_figure(chart, {group: style(i) for i, group in enumerate(chart.groups)}, "place")["data"]
        lines = [trace["line"] for trace in data if trace["mode"] == "lines" and trace["line"].get("dash")]
        assert [line["dash"] for line in lines[-2:]] == [dash, dash] and key in chart_key(chart)


def test_values_that_were_not_reached_are_marked_and_compared_with_nothing():
    above = Series("a", "censored", (3,), (5,))
    chart = Chart("", Axis(""), Axis(""), (Series("a", "predicted", (1, 2, 3), (1, 2, 9)), above))
    assert chart.agreement() == () and chart_key(chart)[-1] == "↥ not reached: more than that"
    data = study_figure(chart, {"a": style(0)}, "place")["data"]
    assert data[-1]["text"] == ["↥"] and "not reached" in data[-1]["hovertemplate"]
    both = dataclasses.replace(chart, series=(above, dataclasses.replace(above, group="b")))
    data = study_figure(both, {group: style(i) for i, group in enumerate("ab")}, "place")["data"]
    assert [trace["textposition"] for trace in data] == ["top left", "top right"]  # one does not hide the other


# The terminal.


def test_the_terminal_fits_eighty_columns_and_shows_what_counts():
    text = printed(study_lines(shown(everything("words"))))
    assert max(len(line) for line in text.splitlines()) <= 80
    for words in ("10,000", "1.500 [1.000, 2.000]", "▁", "● measured", "× counted in roll-outs", "○ published"):
        assert words in text
    assert "a: theory lies in 4 of 4 intervals; largest distance 0.01" in text
    text = printed(claim_lines(checked()))
    for words in ("holds", "one-claim", "predicted  1   words", "measured   1.1 [1, 1.2]   tolerance 0.1", "fails for"):
        assert words in text
    assert "FAILS" in printed(claim_lines(checked(holds=False)))
    assert "↥ not reached: more than" in printed(study_lines(shown(everything("words"))), 200)
    assert "error: it broke" in printed(study_lines(shown(None, error="it broke")))


def test_long_names_are_broken_in_the_terminal_and_not_cut():
    names = "accuracy 0.75, even start of the first kind", "accuracy 0.75, even start of the second kind"
    text = printed(study_lines(shown(StudyResult(charts=(lines(*names),)))))
    assert "…" not in text and "first kind" in text.split("theory lies")[0] and "second kind" in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_the_terminal_prints_hostile_text_as_it_is():
    text = printed(study_lines(shown(everything(HOSTILE), HOSTILE)), 200) + printed(claim_lines(checked(HOSTILE)), 200)
    assert "\x1b" not in text and "<script>alert(1)</script>" in text and "[red]" in text


# The page.


def test_the_page_shows_every_claim_and_study():
    page = Page(
        [checked(), checked(id="two", holds=False)], [shown(everything("words")), shown(None, id="b", error="why")]
    )
    for words in ("1 of 2 claims hold", "one-claim", "fails", "[1, 1.2]", "words", "15 rows", "Theory lies in", "why"):
        assert words in page.text
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    links = [attrs["href"] for tag, attrs in page.elements if tag == "a"]
    assert "theorybench claims NAME --seed 0" in page.text
    assert len(ids) == len(set(ids)) and links and all(link[0] == "#" and link[1:] in ids for link in links)
    figures = json.loads(page.scripts[0])
    charts = [attrs for _, attrs in page.elements if attrs.get("class") == "chart"]
    assert {chart["id"] for chart in charts} == set(figures) and len(charts) == 2
    for figure in figures.values():
        assert len(go.Figure(figure[""]).data) >= 4
    three = Page([checked(id=id, seed=7) for id in "abc"])
    assert {"#claim-a", "#claim-b", "#claim-c"} <= {attrs["href"] for tag, attrs in three.elements if tag == "a"}
    assert "--seed 7" in three.text
    assert "studies" not in Page([checked()]).text and "2 studies" in Page([], [shown(None), shown(None, id="b")]).text


@pytest.mark.parametrize(
    ("changes", "strips"),
    [({}, 1), ({"measured": float("inf")}, 0), ({"predicted": 1.1, "low": 1.1, "high": 1.1, "tolerance": 0.0}, 1)],
)
def test_strips_are_drawn_for_finite_numbers(changes, strips):
    page = Page([checked(**changes)])
    found = [attrs for _, attrs in page.elements if attrs.get("class") == "strip"]
    marks = [attrs["style"] for _, attrs in page.elements if attrs.get("class") in ("dot", "line", "bar", "within")]
    assert len(found) == strips and len(marks) == 4 * strips and "nan" not in " ".join(marks)


def test_the_page_keeps_hostile_text_as_text_and_loads_nothing():
    page = Page([checked(HOSTILE)], [shown(everything(HOSTILE), HOSTILE)])
    assert len(page.scripts) == 3 and page.text.count("<script>alert(1)</script>") > 8
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    (image,) = [attrs for tag, attrs in page.elements if tag == "img"]
    kind, _, data = image["src"].partition(",")
    assert kind == "data:image/svg+xml;base64" and base64.b64decode(data).decode().startswith("<svg>")
    assert not [e for e in page.elements if e[0] in ("link", "iframe", "object", "embed", "base")]
    assert "<" not in "".join(
        trace["name"] for figure in json.loads(page.scripts[0]).values() for trace in figure[""]["data"]
    )


# Pictures.


def test_ticks_beyond_the_ends_do_not_widen_an_axis():
    y = Axis("", "log", ticks=(0.01, 1, 10, 100, 1e4))
    chart = Chart("", Axis("", ticks=(0, 1, 100)), y, (Series("a", "measured", (1, 2, 3), (2, 20, 30)),), "note " * 60)
    (axes,) = _figure(StudyResult(charts=(chart,))).axes
    assert axes.get_xlim() == pytest.approx(axis_range(chart.x, (1, 3)))
    assert axes.get_ylim() == pytest.approx(axis_range(y, (2, 30)))
    notes = [text.get_text() for text in axes.texts if "note" in text.get_text()]
    assert len(notes) == 1 and max(map(len, notes[0].splitlines())) < 100


def test_pictures_are_written_and_reproducible(tmp_path):
    result = everything("words")
    chart, drawing = write_pictures(result, tmp_path / "a", "name")
    assert chart.read_bytes().startswith(b"\x89PNG") and chart.stat().st_size > 10_000
    assert drawing.name == "name-1.svg" and drawing.read_text() == "<svg>words</svg>"
    again, _ = write_pictures(result, tmp_path / "b", "name")
    assert again.read_bytes() == chart.read_bytes()
    assert write_pictures(everything(HOSTILE), tmp_path / "c", "name")[0].stat().st_size > 10_000
    assert write_pictures(StudyResult(tables=result.tables), tmp_path / "d", "name") == []
