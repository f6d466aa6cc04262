"""A change is a transaction: whatever is raised at any step, it happened whole or not at all."""

from __future__ import annotations

import os
from ast import literal_eval
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import matchwood as mw
from engine.invariants import check
from faults import fault_at
from inside import access_of
from matchwood.encode import keys
from matchwood.encode.dictionary import OrderedDictionary
from matchwood.index.core.registry import REGISTRY
from naive import in_context, matches

IS_LONG = os.environ.get("MATCHWOOD_PROFILE") == "long"
STRIDE = 1 if IS_LONG else 617
"""Every so many steps one is tried; coprime to most loops, so that all kinds of places are met."""
WHOLE = ("auto", "scan")
"""Indexes that the long profile interrupts at every step of all that happens; the others, whose
changes go the same way up to the index, at every step of the index."""

CONTEXTUAL = ("agile", "no_index", "eager", "partial", "gbu", "auto")
EVENTS = [
    *({"x": x, "y": 7 - x, "s": s} for x in range(0, 8, 3) for s in ("ab", "b", "xaz")),
    {"x": 3},
    {"s": "new", "z": 4},
    {},
]

Model = dict[int | str, tuple[str, str | None]]
Contexts = dict[str, dict[str, Any]]


@cache
def printed(text: str) -> str:
    """A text as the product prints it."""
    return str(mw.parse(text))


@cache
def expected_match(text: str, event: int, values: str) -> bool:
    """Whether the naive evaluator says that a text holds for an event, given a context's values."""
    return matches(mw.parse(text), in_context(EVENTS[event], literal_eval(values)))


class World:
    """A matcher, and what it must hold: texts by id in order, and the values of contexts."""

    def __init__(self, index: str) -> None:
        self.matcher = mw.Matcher(index=index)
        self.model: Model = {}
        self.contexts: Contexts = {"k": {"c": 4, "w": "b"}, "l": {"c": 1}}
        texts = [f"x = {i % 8} AND y >= {i % 5}" for i in range(24)]
        texts += ["s = 'ab' OR (x < 3 AND NOT y = 2)", "s LIKE '%a%' AND x >= 1", "z IS NULL"]
        texts += ["TRUE", "x < 1 AND x > 2", "s IN ('b', 'c') XOR x = 3"]
        self.model = {i: (text, None) for i, text in enumerate(texts)}
        if index in CONTEXTUAL:
            bound = ["x < ctx.c", "s = ctx.w AND x >= 0", "ctx.c > 2 AND y < 5", "x < ctx.c - 1"]
            self.model |= {f"c{i}": (text, "kl"[i % 2]) for i, text in enumerate(bound)}
            for id_, values in self.contexts.items():
                self.matcher.set_context(id_, values)
        report = self.matcher.add_many([(id_, *each) for id_, each in self.model.items()])
        assert not report.errors

    def expected(self, model: Model, contexts: Contexts) -> list[list[int | str]]:
        return [
            [
                id_
                for id_, (text, context) in model.items()
                if expected_match(text, n, str(contexts.get(context or "", {})))
            ]
            for n in range(len(EVENTS))
        ]

    def holds(self, model: Model, contexts: Contexts) -> bool:
        """Whether the matcher holds exactly this."""
        m = self.matcher
        answers = [m.match(event) for event in EVENTS]
        in_batch = [list(ids) for ids in m.match_many(EVENTS)]
        assert answers == in_batch
        assert not access_of(m).is_mine
        check(m)
        texts = {id_: str(m.expression(id_)) for id_ in model if id_ in m}
        return (
            len(m) == len(model)
            and texts == {id_: printed(text) for id_, (text, _) in model.items()}
            and answers == self.expected(model, contexts)
        )


def add(m: mw.Matcher) -> None:
    m.add("new", "x BETWEEN 2 AND 5 AND z = 4 AND s < 'bb'")


def add_many(m: mw.Matcher) -> None:
    rows = [(f"n{i}", f"x = {i % 4} AND new{i % 3} = {i}") for i in range(9)]
    m.add_many([*rows, ("bad", "x ="), ("t", "x = 3 OR s LIKE '%w'")])


def replace(m: mw.Matcher) -> None:
    m.replace(3, "s = 'new' OR x = 3")


def remove(m: mw.Matcher) -> None:
    m.remove(25)


def remove_many(m: mw.Matcher) -> None:
    m.remove_many([*range(1, 24, 2), 27, "unknown"])


def remove_all(m: mw.Matcher) -> None:
    m.remove_many([*range(30), *(f"c{i}" for i in range(4) if f"c{i}" in m)])


def compact(m: mw.Matcher) -> None:
    m.compact()


def set_context(m: mw.Matcher) -> None:
    m.set_context("k", {"c": 2, "w": "new word"})


def after(change: Callable[[mw.Matcher], None], world: World) -> tuple[Model, Contexts]:
    """What the world holds once a change has happened."""
    model, contexts = dict(world.model), {id_: dict(v) for id_, v in world.contexts.items()}
    if change is add:
        model["new"] = ("x BETWEEN 2 AND 5 AND z = 4 AND s < 'bb'", None)
    elif change is add_many:
        model |= {f"n{i}": (f"x = {i % 4} AND new{i % 3} = {i}", None) for i in range(9)}
        model["t"] = ("x = 3 OR s LIKE '%w'", None)
    elif change is replace:
        model[3] = ("s = 'new' OR x = 3", model[3][1])
    elif change is remove:
        del model[25]
    elif change is remove_many:
        for id_ in [*range(1, 24, 2), 27]:
            del model[id_]
    elif change is remove_all:
        model = {}
    elif change is set_context:
        contexts["k"] = {"c": 2, "w": "new word"}
    return model, contexts


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("change", [add, add_many, replace, remove, remove_many, remove_all])
@pytest.mark.parametrize("index", ["auto", *REGISTRY])
def test_an_exception_at_any_step_of_a_change_leaves_the_matcher_as_before(index, change, error):
    interrupt_everywhere(index, change, error)


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("index", CONTEXTUAL)
def test_an_exception_at_any_step_of_an_update_leaves_contexts_as_before(index, error):
    interrupt_everywhere(index, set_context, error)


@pytest.mark.slow
@pytest.mark.parametrize("index", ["auto", "be_tree", "pst_bloom", "agile"])
def test_an_exception_at_any_step_of_compacting_changes_no_answer(index):
    interrupt_everywhere(index, compact, KeyboardInterrupt)


def interrupt_everywhere(
    index: str, change: Callable[[mw.Matcher], None], error: type[BaseException]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # labels with narrow gaps: new constants move old ones, which is the hardest case
        patch.setattr(keys, "OrderedDictionary", lambda: OrderedDictionary(3))
        world = World(index)
        before = world.model, world.contexts
        done = after(change, world)
        assert world.holds(*before)
        step, n_faults = 17 * len(index) % STRIDE, 0
        within = ("index", "context") if IS_LONG and index not in WHOLE else ("",)
        while True:
            with fault_at(step, error, within) as fault:
                change(world.matcher)
            if not fault.happened:
                break
            n_faults += 1
            if not world.holds(*before):
                assert world.holds(*done), f"half done after step {step}, {fault.where}"
                world = World(index)
            step += STRIDE
        assert n_faults >= 1
        assert world.holds(*done)


@pytest.mark.slow
@pytest.mark.parametrize("index", ["auto", "be_tree", "a_tree", "agile"])
def test_building_again_after_an_exception_may_be_interrupted_too(index):
    world = World(index)
    with fault_at(150, KeyboardInterrupt) as fault:
        add(world.matcher)
    assert fault.happened
    step = 0
    while True:
        with fault_at(step, MemoryError) as again:
            world.matcher.match({"x": 1})
        if not again.happened:
            break
        step += 97
    assert step > 0
    assert world.holds(world.model, world.contexts)


@pytest.mark.parametrize("step", range(0, 120, 7))
def test_an_interrupted_search_leaves_nothing_for_the_next_one(step):
    world = World("auto")
    events = [{"x": i % 9, "y": i % 4, "s": "ab"} for i in range(40)]
    with fault_at(step, KeyboardInterrupt):
        world.matcher.match_many(events)
    assert world.holds(world.model, world.contexts)


def test_what_a_removal_iterates_over_may_change_the_matcher():
    m = mw.Matcher()
    m.add_many([(i, f"x = {i}") for i in range(5)])

    def ids() -> Any:
        for i in (1, 3):
            m.remove(0) if i == 1 else m.add("late", "x = 0")
            yield i

    assert m.remove_many(ids()).count == 2
    assert [m.match({"x": i}) for i in range(5)] == [["late"], [], [2], [], [4]]
    check(m)
