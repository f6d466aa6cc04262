"""What a matcher held at one moment is written while it changes and is searched."""

from __future__ import annotations

from pathlib import Path

import pytest

import matchwood as mw
from matchwood.engine.snapshots.versions import frozen, load_version, n_unmapped, write_frozen

EVENTS = [{"a": n, "b": n % 3} for n in range(12)]


def made(index: str = "auto") -> mw.Matcher:
    matcher = mw.Matcher(index=index)
    matcher.add_many([(n, f"a = {n % 12} OR b > {n % 5}") for n in range(700)])
    matcher.add_many([(n, "a < ctx.top", f"c{n % 3}") for n in range(700, 720)])
    matcher.set_context_many([(f"c{n}", {"top": 3 * n}) for n in range(3)])
    matcher.remove_many([*range(0, 700, 7), 705])
    matcher.add("late", "a = 3")
    return matcher


def change(matcher: mw.Matcher, turn: int) -> None:
    matcher.add_many([(f"new{turn}-{n}", f"a = {n % 12}") for n in range(40)])
    matcher.remove_many([n for n in range(700) if n % 13 == turn])
    matcher.remove_many([707 + turn])
    matcher.set_context("c1", {"top": 100 + turn, "more": "text"})
    matcher.add(f"linked{turn}", "a > ctx.top", context="c2")


def answers(matcher: mw.Matcher) -> list[list[object]]:
    return [sorted(matcher.match(event), key=str) for event in EVENTS]


@pytest.mark.parametrize("index", ["auto", "be_tree"])
def test_what_was_held_is_written_whatever_changes_meanwhile(tmp_path: Path, index: str) -> None:
    matcher, steps = made(index), 0
    expected, types = answers(matcher), dict(matcher.schema)
    found = frozen(matcher)

    def pause() -> None:
        nonlocal steps
        if steps < 6:
            change(matcher, steps)
            answers(matcher)
        steps += 1

    write_frozen(found, tmp_path / "v", None, pause)
    assert steps > 6
    assert answers(matcher) != expected
    written = load_version(tmp_path / "v")
    assert answers(written) == expected
    assert dict(written.schema) == types


def test_the_next_version_links_what_the_one_before_has(tmp_path: Path) -> None:
    matcher = made()
    write_frozen(frozen(matcher), tmp_path / "1", None, lambda: None)
    assert n_unmapped(matcher) == 0
    change(matcher, 1)
    assert n_unmapped(matcher) >= 40
    write_frozen(frozen(matcher), tmp_path / "2", tmp_path / "1", lambda: None)
    first, second = ({each.name for each in (tmp_path / n / "segments").glob("s-*")} for n in "12")
    assert first & second
    assert answers(load_version(tmp_path / "2")) == answers(matcher)


def test_segments_of_a_version_that_was_given_up_are_written_again(tmp_path: Path) -> None:
    matcher = made()
    write_frozen(frozen(matcher), tmp_path / "1", None, lambda: None)
    change(matcher, 1)
    steps = 0

    def give_up() -> None:
        nonlocal steps
        steps += 1
        if steps == last:
            raise OSError("no space left")

    for last in (1, 5, 30, 60):
        steps = 0
        with pytest.raises((OSError, mw.StorageError), match="no space"):
            write_frozen(frozen(matcher), tmp_path / f"given up {last}", tmp_path / "1", give_up)
        change(matcher, 2 + last)
    write_frozen(frozen(matcher), tmp_path / "2", tmp_path / "1", lambda: None)
    assert answers(load_version(tmp_path / "2")) == answers(matcher)
