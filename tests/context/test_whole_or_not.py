"""A change of contexts is made whole or not at all, wherever it is interrupted."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

from definition import by_definition
from matchwood import Matcher

HOME = "matchwood/context"
CHANGES: dict[str, Callable[[Matcher], Any]] = {
    "one": lambda m: m.set_context("k", {"c": 3, "fresh": "x", "home": "Oslo", "d": None}),
    "a new one": lambda m: m.set_context("new", {"c": 3, "late": 5}),
    "pairs": lambda m: m.set_context_many([("k", {"c": 3}), ("l", {"home": "Oslo", "d": 9})]),
    "table": lambda m: m.set_context_many(
        pa.table({"context": ["k", "n", "l"], "c": [3.0, 2.0, None], "home": ["Oslo", "", None]})
    ),
    "removed": lambda m: m.remove_context("k"),
}
EVENTS = [{"a": a, "city": city} for a in (0, 2, 20, 94) for city in ("Rome", "Oslo", "x")]


def matcher(index: str) -> Matcher:
    m = Matcher(index)
    for i, context in enumerate("kkllk"):
        m.add(
            i,
            ["a < ctx.c - 5", "a >= ctx.d", "city = ctx.home", "a < ctx.late"][i % 4],
            context=context,
        )
    m.add("like", "ctx.home LIKE '%o_e%' OR a = 2", context="k")
    m.set_context_many({"k": {"c": 100, "d": 2, "home": "Rome"}, "l": {"c": 7, "home": "Rome"}})
    m.match(EVENTS[0])
    return m


def seen(m: Matcher) -> Any:
    contexts = {id_: m.context(id_) for id_ in m.context_ids()}
    found = [m.match(event) for event in EVENTS]
    assert found == [by_definition(m, event) for event in EVENTS]
    return contexts, dict(m.schema), found


class Interrupt:
    """Raises in the n-th line that is run in a part of the package, once."""

    def __init__(self, n: int, error: type[BaseException]) -> None:
        self.left, self.error, self.raised = n, error, False

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if HOME not in frame.f_code.co_filename or frame.f_code.co_name == "_take_back":
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                self.raised = True
                sys.settrace(None)
                raise self.error
        return self

    def run(self, change: Callable[[], Any]) -> bool:
        """Whether the change was interrupted."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            change()
        except self.error:
            return True
        finally:
            sys.settrace(before)
        return False


def check_every(step: int, index: str, change: Callable[[Matcher], Any]) -> None:
    """Interrupt a change in every `step`-th of its lines."""
    done = matcher(index)
    before = seen(done)
    change(done)
    after = seen(done)
    assert before != after
    n, was_raised = 1, True
    while was_raised:
        m = matcher(index)
        was_raised = Interrupt(n, KeyboardInterrupt).run(lambda m=m: change(m))
        assert seen(m) in (before, after), n
        change(m)
        assert seen(m) == after, n
        n += step
    assert n > 20


@pytest.mark.slow
@pytest.mark.parametrize("index", ["agile", "eager", "no_index"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_interrupted_change_of_contexts_is_made_whole_or_not_at_all(
    index: str, change: Callable[[Matcher], Any]
) -> None:
    check_every(1 if os.environ.get("MATCHWOOD_PROFILE") == "long" else 4, index, change)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_contexts_that_is_interrupted_here_and_there(
    change: Callable[[Matcher], Any],
) -> None:
    check_every(29, "agile", change)
