"""Tests that take turns do: each runs on some day, and no more of them run each day when settings come."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from theorybench.envs.core.registry import load_module

turns = load_module(str(Path(__file__).with_name("conftest.py"))).turns
SETTING = "tests/envs/tree/markov_chain/test_claims.py::test_a"


def cases(name: str, count: int, *marks: pytest.MarkDecorator, first: str = "TheoryBench/A-v0") -> Iterator[Any]:
    """The cases of a test as pytest has them, the first of them with a parameter of its own."""
    for case in range(count):
        callspec = SimpleNamespace(params={"case": case, "env_id": "" if case else first})
        own = [mark.mark for mark in marks]
        yield SimpleNamespace(
            nodeid=f"{name}[{case}]", own_markers=own, callspec=callspec, get_closest_marker=lambda _: None
        )


def days(items: list[Any], shipped: int = 24) -> Counter[int]:
    """How many tests run on each of sixty days; each runs equally often."""
    taking = list(turns(items, shipped))
    runs = Counter(item.nodeid for item, turn, of in taking for day in range(60) if turn % of == day % of)
    assert {runs[item.nodeid] * of for item, _, of in taking} <= {60}
    return Counter(day for _, turn, of in taking for day in range(60) if turn % of == day % of)


def test_so_many_cases_a_day_however_many_there_are() -> None:
    for count, least in ((3, 3), (24, 4), (40, 4), (60, 4)):
        found = days(list(cases("tests/a.py::test_a", count, pytest.mark.rotating(daily=4))))
        assert len(found) == 60 and least <= min(found.values()) <= max(found.values()) <= 4


def test_cases_on_toys_run_every_day() -> None:
    items = list(cases("tests/a.py::test_a", 12, pytest.mark.rotating(daily=4), first="Toy/Copy-v0"))
    assert [item.nodeid for item, *_ in turns(items, 24)] == [item.nodeid for item in items[1:]]


def test_tests_of_a_setting_are_fewer_a_day_the_more_settings_there_are() -> None:
    for shipped, of in ((8, 3), (24, 6), (40, 10)):
        items = list(cases(SETTING, 600, pytest.mark.rotating))
        assert {of for *_, of in turns(items, shipped)} == {of}
        found = days(items, shipped)
        assert len(found) == 60 and max(found.values()) < 1.5 * 600 / of
    assert {of for *_, of in turns(cases("tests/envs/core/test_a.py::test_a", 9, pytest.mark.rotating), 40)} == {3}


def test_numbers_and_shares_that_marks_name_count_and_a_cases_mark_before_its_tests() -> None:
    marks = [pytest.mark.rotating(4, of=6), pytest.mark.rotating(of=4), pytest.mark.rotating(1)]
    named = [next(turns(cases(SETTING, 1, *marks[:end]), 24))[1:] for end in (1, 2, 3)]
    assert named[0] == (4, 6) and named[1][1] == 4 and named[2] == (1, 3)
    assert not list(turns(cases(SETTING, 3, pytest.mark.slow), 24))
