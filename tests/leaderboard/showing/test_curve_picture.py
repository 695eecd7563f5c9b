"""The still picture of learning curves: a row for each group, repeatable, and it refuses what it cannot draw."""

import pytest

from theorybench.envs.core.errors import ParameterError
from theorybench.leaderboard.comparing.board import make_board
from theorybench.leaderboard.showing.curve_picture import picture_of_curves


@pytest.fixture(scope="module")
def board(synthetic_sweep):
    return make_board(synthetic_sweep, draws=50)


def test_every_agent_and_environment_is_named(board, tmp_path):
    labels = [agent.label for agent in board.agents]
    path = picture_of_curves(board, tmp_path / "curves.svg", {"first": labels[:1], "others": labels[1:]})
    text = path.read_text("utf-8")
    names = [*labels, "first", "others", *(entry.environment.label for entry in board.environments)]
    assert not [name for name in names if f"<!-- {name} -->" not in text]


def test_a_picture_is_the_same_every_time_and_png_is_one(board, tmp_path):
    groups = {"all": [agent.label for agent in board.agents]}
    first, again = (picture_of_curves(board, tmp_path / f"{name}.svg", groups).read_bytes() for name in "ab")
    assert first == again
    assert picture_of_curves(board, tmp_path / "curves.png", groups).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("name", "groups"), [("curves.gif", {"all": ["a"]}), ("curves.png", {})])
def test_what_cannot_be_drawn_is_refused(board, tmp_path, name, groups):
    with pytest.raises(ParameterError):
        picture_of_curves(board, tmp_path / name, groups)
    assert not list(tmp_path.iterdir())
