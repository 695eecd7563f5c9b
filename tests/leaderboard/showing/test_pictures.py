"""Still pictures: everything is named, they are repeatable, and what cannot be drawn is refused."""

import pytest

from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.evidence.study import Axis, Chart, Picture, Series, StudyResult
from theorybench.leaderboard.comparing.board import make_board
from theorybench.leaderboard.showing.pictures import picture, picture_of_curves, write_pictures
from theorybench.leaderboard.showing.words import format_rank


@pytest.fixture(scope="module")
def board(synthetic_sweep):
    two = [record for record in synthetic_sweep if record.track == "preference"]
    return make_board(two, draws=50)


def test_a_picture_of_curves_names_every_agent_and_environment(board, tmp_path):
    labels = [agent.label for agent in board.agents]
    path = picture_of_curves(board, tmp_path / "curves.svg", {"first": labels[:1], "others": labels[1:]})
    text = path.read_text("utf-8")
    names = [*labels, "first", "others", *(entry.environment.label for entry in board.environments)]
    assert not [name for name in names if f"<!-- {name} -->" not in text]


@pytest.mark.parametrize(("name", "groups"), [("curves.gif", {"all": ["a"]}), ("curves.png", {})])
def test_what_cannot_be_drawn_is_refused(board, tmp_path, name, groups):
    with pytest.raises(ParameterError):
        picture_of_curves(board, tmp_path / name, groups)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_the_ranking_has_three_formats_each_the_same_every_time(tmp_path, synthetic_run, name, magic):
    small = make_board([synthetic_run(), synthetic_run("b", 0.25)], draws=10)
    first = picture(small, tmp_path / name).read_bytes()
    assert first.startswith(magic) and first == picture(small, tmp_path / f"again-{name}").read_bytes()
    with pytest.raises(ParameterError, match=r"\.png"):
        picture(small, tmp_path / "a.gif")
    assert len(list(tmp_path.iterdir())) == 2


def test_the_ranking_names_agents_and_standings_even_hostile_ones(board, hostile_board, tmp_path):
    text = picture(board, tmp_path / "a.svg").read_text("utf-8")
    for row in board.standings[0].rows:
        assert row.privileged or f"<!-- {row.label}  {format_rank(row.rank).replace('-', '–')} -->" in text
    assert picture(hostile_board, tmp_path / "b.svg").stat().st_size > 1000


def test_the_pictures_of_a_study_are_its_charts_and_its_drawings(tmp_path, hostile):
    line = Chart(hostile, Axis(hostile), Axis(hostile), (Series(hostile, "measured", (1, 2), (1, 2)),), hostile)
    result = StudyResult(charts=(line,), pictures=(Picture("", "<svg></svg>"),))
    chart, drawing = write_pictures(result, tmp_path / "a", "name")
    assert chart.read_bytes().startswith(b"\x89PNG") and chart.stat().st_size > 10_000
    assert drawing.name == "name-1.svg" and drawing.read_text() == "<svg></svg>"
    assert write_pictures(StudyResult(), tmp_path / "b", "name") == [] and not (tmp_path / "b").exists()
