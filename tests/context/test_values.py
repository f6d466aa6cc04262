"""Updates of the context: taken whole or not at all, in whatever form they come."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from matchwood import Matcher
from matchwood.errors import EventError

UPDATES: dict[str, Any] = {
    "another type": {"city": "Rome", "level": "high"},
    "two types at once": {"fresh": 1, "nested": {"deep": object()}},
    "types that a subscription compares": {"low": 1, "high": "x"},
    "no double": {"fresh": "x", "level": 2**2000},
}


def watched() -> Matcher:
    m = Matcher()
    m.add("s", "ctx.level > 3 AND price < ctx.level", context="c")
    m.add("t", "ctx.low < ctx.high OR ctx.city LIKE '%o_e%'", context="c")
    m.set_context("c", {"level": 5})
    return m


@pytest.mark.parametrize("values", UPDATES.values(), ids=UPDATES)
@pytest.mark.parametrize("form", ["one", "mapping", "pairs", "table"])
def test_a_refused_update_leaves_no_trace(form: str, values: dict[str, Any]) -> None:
    m = watched()
    before = m.schema, m.context("c"), m.context_ids()
    with pytest.raises(EventError):
        _send(m, form, values)
    assert (m.schema, m.context("c"), m.context_ids()) == before
    m.set_context("c", {"fresh": "text", "low": "a", "high": "b", "other": 1})
    assert m.match({"price": 4}) == ["s", "t"]


def _send(m: Matcher, form: str, values: dict[str, Any]) -> None:
    if form == "one":
        m.set_context("c", values)
    elif form == "mapping":
        m.set_context_many({"new": {"other": True}, "c": values})
    elif form == "pairs":
        m.set_context_many([("new", {"other": True}), ("new", values)])
    else:
        m.set_context_many(_table(values))


def _table(values: dict[str, Any]) -> pa.Table:
    columns = {}
    for name, value in values.items():
        if isinstance(value, (int, str)) and value != 2**2000:
            columns[name] = pa.array([None, value])
        else:  # nothing that a context could hold
            columns[name] = pa.array([None, b"bytes"])
    return pa.table({"context": ["new", "c"], "other": pa.array([True, None]), **columns})


@pytest.mark.parametrize("form", ["one", "pairs", "table"])
def test_new_strings_that_move_others_of_the_same_update(form: str) -> None:
    """Each string falls between the two before it, so the labels there run out again and again,
    and then those of all strings move.
    """
    m = Matcher()
    for name in ("a", "b", "c"):
        m.add(name, f"x = ctx.{name}", context="k")
    low, high = 0, 2**200
    m.set_context("ends", {"a": f"{low:0201b}", "b": f"{high:0201b}"})
    for _ in range(60):
        values = {}
        for name in ("a", "b", "c"):
            low, high = high, (low + high) // 2
            values[name] = f"{high:0201b}"
        if form == "one":
            m.set_context("k", values)
        elif form == "pairs":
            m.set_context_many([("k", {name: value}) for name, value in values.items()])
        else:
            m.set_context_many(
                pa.table({"context": ["k"], **{name: [value] for name, value in values.items()}})
            )
        assert m.context("k") == values
        for name, value in values.items():
            assert name in m.match({"x": value})
