"""Laws of what is copied and saved: all that a matcher holds, also where its head cannot change.

A head whose other store is spoiled, or used by a search, becomes a segment at the next change
(`engine/segments/head`), that of bringing everything together included.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import matchwood as mw
from inside import searching
from matchwood.engine.segments import head

Change = Callable[[mw.Matcher], object]


def texts(m: mw.Matcher) -> dict[Any, str]:
    return {id_: each.text for id_, each in m.items()}


def rows(first: int, last: int) -> list[tuple[int, str]]:
    return [(i, f"x > {i}") for i in range(first, last)]


def spoil(m: mw.Matcher) -> None:
    """A change that is given up half-way: the store that it began to change is used no more."""

    def give_up(done: int, total: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        m.add_many(rows(1_000, 1_010), progress=give_up)


def replace(m: mw.Matcher) -> None:
    m.replace(0, "y = 1")


def remove(m: mw.Matcher) -> None:
    m.remove(1)


def add(m: mw.Matcher) -> None:
    m.add("late", "y = 1")


def saved(m: mw.Matcher, folder: Path) -> mw.Matcher:
    m.save(folder)
    return mw.Matcher.load(folder)


COPIES: dict[str, Callable[[mw.Matcher, Path], mw.Matcher]] = {
    "pickle": lambda m, _: pickle.loads(pickle.dumps(m)),
    "copy": lambda m, _: copy.copy(m),
    "save": saved,
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("change", [replace, remove, add])
def test_a_change_after_one_that_was_given_up_is_copied_and_saved(
    way: str, change: Change, tmp_path: Path
) -> None:
    m = mw.Matcher()
    m.add_many(rows(0, head.COPIED_MOST + 10))
    spoil(m)
    change(m)
    expected = texts(m)
    found = COPIES[way](m, tmp_path / "s")
    assert texts(found) == texts(m) == expected
    event = {"x": 3, "y": 1}
    assert found.match(event) == m.match(event)


def test_a_checkpoint_after_a_change_that_was_given_up_has_all_changes(tmp_path: Path) -> None:
    with mw.Matcher.open(tmp_path / "d") as m:
        m.add_many(rows(0, head.COPIED_MOST + 10))
        spoil(m)
        replace(m)
        remove(m)
        add(m)
        expected = texts(m)
        m.checkpoint()
    with mw.Matcher.open(tmp_path / "d") as m:
        assert texts(m) == expected
        assert m.match({"x": 0, "y": 1}) == [0, "late"]


@pytest.mark.parametrize("way", COPIES)
def test_recent_additions_are_copied_and_saved_beside_a_search_that_goes_on(
    way: str, tmp_path: Path
) -> None:
    m = mw.Matcher()
    m.add_many(rows(0, head.COPIED_MOST))

    def changed() -> mw.Matcher:
        m.add_many(rows(500, 510))
        add(m)
        return COPIES[way](m, tmp_path / "s")

    with searching(m), ThreadPoolExecutor(1) as pool:
        found = pool.submit(changed).result()
    expected = {i: f"x > {i}" for i in (*range(head.COPIED_MOST), *range(500, 510))}
    assert texts(found) == texts(m) == {**expected, "late": "y = 1"}
    assert found.match({"y": 1}) == m.match({"y": 1}) == ["late"]


def test_numbering_anew_keeps_everything_where_the_head_cannot_change() -> None:
    m = mw.Matcher()
    m.add_many(rows(0, head.COPIED_MOST + 10))
    spoil(m)
    replace(m)
    remove(m)
    expected = texts(m)
    names = m.renumber().to_pylist()
    assert {names[number]: text for number, text in texts(m).items()} == expected
