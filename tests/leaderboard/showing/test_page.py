"""Table, page and picture: legible, whole, and safe with hostile records."""

import base64
import hashlib
import json
from html.parser import HTMLParser

import plotly.graph_objects as go
import pytest
from rich.console import Console

from theorybench.envs.core.errors import ParameterError
from theorybench.leaderboard.comparing.board import make_board
from theorybench.leaderboard.showing.page import render_page, write_page
from theorybench.leaderboard.showing.picture import picture
from theorybench.leaderboard.showing.table import format_bytes, format_number, format_seconds, render

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
VOID = {"meta", "img", "br", "link", "input"}


class Page(HTMLParser):
    """Elements, their attributes, and the text in them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def scripts(self):
        return [text for tag, text in self.texts if tag == "script"]

    def text(self):
        return " ".join(text for tag, text in self.texts if tag not in ("script", "style"))


@pytest.fixture(scope="module")
def board(synthetic_sweep):
    return make_board(synthetic_sweep, draws=200)


@pytest.fixture(scope="module")
def page(board):
    return Page(render_page(board))


def printed(board, width=100):
    console = Console(width=width, record=True, file=open("/dev/null", "w"), force_terminal=False)  # noqa: SIM115
    console.print(render(board))
    return console.export_text()


def hostile(run):
    records = [
        run(
            f"a.py:{HOSTILE}",
            0.5 + 0.01 * seed,
            seed=seed,
            agent_label=HOSTILE,
            env_label=f"[bold]{HOSTILE}[/bold]",
            track=HOSTILE,
            metrics={"objective": 1.0, f"{HOSTILE}/pass@1": 0.1, f"{HOSTILE}/pass@2": 0.2},
            hardware=HOSTILE,
            versions={HOSTILE: HOSTILE},
        )
        for seed in range(5)
    ]
    return make_board(
        [*records, run(HOSTILE, status="failed", error=f"{HOSTILE}\n\x1b[2J\x07 $x^2$ [/red]", track=HOSTILE)]
    )


def test_the_table_fits_eighty_columns(board):
    text = printed(board, width=80)
    assert max(len(line) for line in text.splitlines()) <= 80
    for word in ("Reasoning", "Curriculum", "Preference", "astar-po", "privileged", "1/10"):
        assert word in text
    tables = text.partition("failed runs")[0]
    assert "0.866 [0.8" in tables and "…" not in tables


def test_queries_are_a_column_where_an_agent_asks_any(synthetic_run, page, board):
    asked = {"best-of-n": 8.0, "soft-best-of-n": 4096.0, "prm-sample": 12.5, "rlvr": 0.0}
    records = [
        synthetic_run(agent, seed=seed, queries_per_response=queries, lifted=1 if queries else 5)
        for agent, queries in asked.items()
        for seed in range(5)
    ]
    searching = make_board(records, draws=50)
    text = printed(searching, width=80)
    assert max(len(line) for line in text.splitlines()) <= 80 and "…" not in text
    told = Page(render_page(searching)).text()
    for words in ("queries", " 8 ", "4,096", "12.5"):
        assert words in text and words in told.replace("\n", " ")
    assert "queries" not in printed(board).partition("failed runs")[0]
    assert "queries" not in page.text().partition("How scores are computed")[0]


def test_the_table_prints_hostile_text_as_it_is(synthetic_run):
    text = printed(hostile(synthetic_run), width=200)
    assert "\x1b" not in text and "\x07" not in text
    assert "[bold]</script><script>alert(1)" in text


def test_the_page_is_whole(page, board):
    assert page.open == []
    text = page.text()
    for row in board.standings[0].rows:
        assert row.label in text and format_number(row.score.value) in text
    for words in (
        "the loss diverged",
        "Learning curves",
        "Pass@K",
        "Performance profiles",
        "theorybench run",
        "fingerprint",
    ):
        assert words in text
    for sentence in board.method:
        assert sentence in text
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] for tag, attrs in page.elements if tag == "a"]
    assert links and all(link[0] == "#" and link[1:] in ids for link in links)


def test_the_page_loads_nothing(page):
    assert not [e for e in page.elements if e[0] in ("link", "img", "iframe", "object", "embed", "base")]
    assert not [attrs for _, attrs in page.elements if "src" in attrs]
    assert "url(" not in " ".join(text for tag, text in page.texts if tag == "style")
    (policy,) = [
        attrs["content"] for tag, attrs in page.elements if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy
    _, *scripts = page.scripts()
    assert len(scripts) == 2 and "plotly.js" in scripts[0][:300]
    for script in scripts:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy


def test_every_figure_is_one_that_plotly_knows(page, board):
    figures = json.loads(page.scripts()[0])
    charts = [attrs for _, attrs in page.elements if attrs.get("class") == "chart"]
    assert len(charts) == len(figures) == len(board.environments) + 2 + 1
    for chart in charts:
        assert chart["data-figure"] in figures[chart["id"]]
        for figure in figures[chart["id"]].values():
            assert go.Figure(figure).data


def test_hostile_records_stay_text(synthetic_run):
    page = Page(render_page(hostile(synthetic_run)))
    assert len(page.scripts()) == 3 and not [e for e in page.elements if e[0] == "img"]
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert page.text().count(HOSTILE) > 5
    figures = json.loads(page.scripts()[0])
    names = {trace["name"] for chart in figures.values() for f in chart.values() for trace in f["data"]}
    assert names and not [name for name in names if "<" in name]


def test_the_page_is_written_whole_or_not_at_all(tmp_path, board, monkeypatch):
    path = write_page(board, tmp_path / "folder" / "board.html")
    assert path.is_absolute() and path.read_text(encoding="utf-8") == render_page(board)
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_page(board, path)
    assert path.read_bytes() == before and [p.name for p in path.parent.iterdir()] == ["board.html"]


def test_a_board_of_one_run_is_shown(synthetic_run, tmp_path):
    for run in (synthetic_run(), synthetic_run(status="killed"), synthetic_run("optimal"), synthetic_run("reference")):
        board = make_board([run])
        assert Page(render_page(board)).open == [] and "1 agent" in printed(board)
        assert picture(board, tmp_path / "one.png").stat().st_size > 1000


@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_the_picture(tmp_path, board, synthetic_run, name, magic):
    assert picture(board, tmp_path / name).read_bytes().startswith(magic)
    assert picture(hostile(synthetic_run), tmp_path / f"hostile-{name}").stat().st_size > 1000


def test_pictures_are_reproducible_and_other_formats_refused(tmp_path, board):
    assert picture(board, tmp_path / "a.svg").read_bytes() == picture(board, tmp_path / "b.svg").read_bytes()
    with pytest.raises(ParameterError, match=r"\.png"):
        picture(board, tmp_path / "a.gif")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.svg", "b.svg"]


def test_numbers_are_short():
    assert [format_number(x) for x in (-0.0, -0.0004, 1.0, -0.25)] == ["0.000", "0.000", "1.000", "-0.250"]
    assert [format_seconds(x) for x in (None, 0.05, 3.25, 45.2, 600.0, 8000.0)] == [
        "-",
        "0.05 s",
        "3.2 s",
        "45 s",
        "10.0 min",
        "2.2 h",
    ]
    assert [format_bytes(x) for x in (None, 400_000_000, 3_000_000_000)] == ["-", "400 MB", "3.0 GB"]
