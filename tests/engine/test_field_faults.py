"""Fields, batches and logs are part of a transaction: interrupted anywhere, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import matchwood as mw
from engine.invariants import check
from faults import fault_at

IS_LONG = os.environ.get("MATCHWOOD_PROFILE") == "long"
STRIDE = 7 if IS_LONG else 61


def filled(m: mw.Matcher) -> mw.Matcher:
    m.add_many(
        [
            {"id": i, "expr": f"x >= {i}", "priority": i % 3, "payload": i,
             "attributes": {"age": i} if i % 2 else None, "expires": 4e9 if i % 4 else 100}
            for i in range(8)
        ]
    )  # fmt: skip
    m.add("bound", "x < ctx.c", context="ann", payload={"a": 1})
    m.set_context("ann", {"c": 5})
    return m


def add(m: mw.Matcher) -> None:
    m.add("new", "x = 1", priority=9, attributes={"age": 99}, expires=5e9, payload=["p"])


def replace(m: mw.Matcher) -> None:
    m.replace(3, "x = 1", priority=-9, attributes=None, expires=None, payload="other")


def replace_many(m: mw.Matcher) -> None:
    m.replace_many([{"id": i, "expr": "x = 2", "priority": 50} for i in (1, "fresh", 5)])


def sweep(m: mw.Matcher) -> None:
    m.sweep(now=1000)


def clear(m: mw.Matcher) -> None:
    m.clear()


def batch(m: mw.Matcher) -> None:
    with m.batch() as b:
        b.remove(2)
        b.add(2, "x = 7", priority=3)
        b.replace("bound", "x > ctx.c", payload=None)
        b.set_context("ann", {"c": 1})


def compact(m: mw.Matcher) -> None:
    m.compact()


CHANGES = [add, replace, replace_many, sweep, clear, batch, compact]


def held(m: mw.Matcher) -> list[Any]:
    rows = m.to_arrow().drop_columns(["added"]).to_pylist()
    found = [m.match({"x": x}, limit=4) for x in range(6)]
    return [rows, found, m.match({"x": 6}, where="age > 2"), m.context("ann")]


def interrupted(make: Callable[[], mw.Matcher], change: Callable[[mw.Matcher], None]) -> None:
    m, done = make(), make()
    before = held(m)
    change(done)
    after = held(done)
    done.close()
    step, n_faults = 3, 0
    while True:
        with fault_at(step, KeyboardInterrupt) as fault:
            change(m)
        if not fault.happened:
            break
        n_faults += 1
        now = held(m)
        assert now in (before, after), (step, fault.where)
        check(m)
        if now == after != before:
            m.close()
            m = make()
        step += STRIDE
    assert n_faults
    assert held(m) == after
    m.close()


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_an_interruption_at_any_step_leaves_fields_as_before_or_after(change) -> None:
    interrupted(lambda: filled(mw.Matcher()), change)


@pytest.mark.slow
@pytest.mark.parametrize("change", [add, replace, batch, clear])
def test_an_interruption_at_any_step_leaves_the_log_as_memory(change, tmp_path: Path) -> None:
    n = 0

    def make() -> mw.Matcher:
        nonlocal n
        n += 1
        return filled(mw.Matcher.open(tmp_path / str(n), sync=False))

    m = make()
    step = 5
    while True:
        with fault_at(step, KeyboardInterrupt) as fault:
            change(m)
        if not fault.happened:
            break
        # Whatever it was, both go on from one state, in which "bound" may be gone.
        m.replace("bound", "x < ctx.c", context="ann", payload=step)
        with mw.Matcher.open(tmp_path / str(n), read_only=True) as reader:
            assert held(reader) == held(m), (step, fault.where)
        check(m)
        m.close()
        m = make()
        step += 3 * STRIDE
    with mw.Matcher.open(tmp_path / str(n), read_only=True) as reader:
        assert held(reader) == held(m)
    m.close()
