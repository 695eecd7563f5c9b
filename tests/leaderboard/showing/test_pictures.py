"""Still pictures: everything is named, they are repeatable, and what cannot be drawn is refused."""

import re

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


def test_the_ranking_parts_agents_that_are_not_ranked_together(tmp_path, synthetic_run):
    shown = {"rlvr": {"sees": "tokens"}, "ppo": {"sees": "secret"}, "grpo": {"sees": "tokens", "preset": "tree"}}
    records = [synthetic_run(name, 0.5, seed=seed, **says) for name, says in shown.items() for seed in range(5)]
    wanted = (
        ("shown tokens alone", "rlvr  1"),
        ("shown tokens alone, tuned", "grpo  1"),
        ("shown what the setting hides", "ppo  1"),
    )
    heights = places_of_texts(picture(make_board(records, draws=50), tmp_path / "three.svg"))
    found = [heights[text] for pair in wanted for text in pair]
    assert found == sorted(found) and len(set(found)) == 6
    one = [record for record in records if record.agent == "rlvr"]
    assert "shown tokens alone" not in places_of_texts(picture(make_board(one, draws=50), tmp_path / "one.svg"))


def test_the_ranking_says_what_it_clips(tmp_path, synthetic_run):
    scores = {"far": [-4.0, -6.0, -5.0, -3.0, -9.0], "once": [0.5, 0.5, 0.5, 0.5, -7.0], "near": [-1.0] * 5}
    records = [synthetic_run(name, own, seed=seed) for name, all in scores.items() for seed, own in enumerate(all)]
    texts = places_of_texts(picture(make_board(records, draws=50), tmp_path / "a.svg"))
    said = {text.partition(" [")[0]: place for text, place in texts.items() if text.startswith("raw")}
    assert set(said) == {"raw −5", "raw 0.5"}
    for text, row in (("raw −5", "far"), ("raw 0.5", "once")):
        (place,) = [place for name, place in texts.items() if name.startswith(f"{row}  ")]
        assert abs(said[text] - place) < 3  # points


def places_of_texts(path):
    """Each text of a picture with its distance from the upper edge, in points."""
    found = re.findall(r"<!-- (.*?) -->\s*<g [^>]*translate\([-\d.]+ ([-\d.]+)\)", path.read_text("utf-8"))
    return {text: float(height) for text, height in found}


def test_the_pictures_of_a_study_are_its_charts_and_its_drawings(tmp_path, hostile):
    line = Chart(hostile, Axis(hostile), Axis(hostile), (Series(hostile, "measured", (1, 2), (1, 2)),), hostile)
    result = StudyResult(charts=(line,), pictures=(Picture("", "<svg></svg>"),))
    chart, drawing = write_pictures(result, tmp_path / "a", "name")
    assert chart.read_bytes().startswith(b"\x89PNG") and chart.stat().st_size > 10_000
    assert drawing.name == "name-1.svg" and drawing.read_text() == "<svg></svg>"
    assert write_pictures(StudyResult(), tmp_path / "b", "name") == [] and not (tmp_path / "b").exists()
