"""A context's value that has fields is an object: present, and of no value."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import matchwood as mw

TEXTS = {
    "absent": "ctx.brand IS NULL",
    "there": "ctx.brand IS NOT NULL",
    "id": "ctx.brand.id = 3",
    "no id": "ctx.brand.id IS NULL",
    "safe": "NOT (ctx.brand.id <=> 3)",
}
ABSENT = ["absent", "no id", "safe"]
SET = ["there", "id"]
EMPTY = ["there", "no id", "safe"]


def matcher(**options: Any) -> mw.Matcher:
    m = mw.Matcher(**options)
    add(m)
    return m


def add(m: mw.Matcher) -> None:
    for id_, text in TEXTS.items():
        m.add(id_, text, context="u")


def found(m: mw.Matcher) -> list[str]:
    for id_ in TEXTS:
        assert m.explain(id_, {}).matches == (id_ in m.match({}))
    return m.match({})


STEPS: list[tuple[dict[str, Any], list[str]]] = [
    ({"other": 1}, ABSENT),
    ({"brand": {"id": 3, "name": "x"}}, SET),
    ({"brand": {"id": None}}, EMPTY),
    ({"brand": {"id": 3}}, SET),
    ({"brand": None}, ABSENT),
    ({"brand": {}}, EMPTY),
    ({"brand.id": 3}, SET),
]


@pytest.mark.parametrize("index", ["auto", "agile"])
def test_an_object_is_present_until_it_is_set_to_none(index):
    m = matcher(index=index)
    assert found(m) == ABSENT
    for values, expected in STEPS:
        m.set_context("u", values)
        assert found(m) == expected, values
    m.remove_context("u")
    assert found(m) == ABSENT


def test_a_subscription_that_comes_after_its_context_says_the_same():
    for n in range(len(STEPS)):
        m = mw.Matcher()
        for values, _ in STEPS[: n + 1]:
            m.set_context("u", values)
        add(m)
        assert found(m) == STEPS[n][1]


@pytest.mark.slow
def test_objects_survive_save_load_and_the_log(tmp_path):
    m, durable = matcher(), mw.Matcher.open(tmp_path / "d")
    add(durable)
    for n, (values, expected) in enumerate(STEPS):
        m.set_context("u", values)
        durable.set_context("u", values)
        m.save(tmp_path / f"s{n}")
        assert found(mw.Matcher.load(tmp_path / f"s{n}")) == expected
        durable.close()
        durable = mw.Matcher.open(tmp_path / "d")
        assert found(durable) == expected, values
    durable.close()


def test_columns_of_structs_and_dotted_columns_make_objects_present():
    brand = pa.array([{"id": 3}, {"id": None}, None])
    for column in ({"brand": brand}, {"brand.id": pa.array([3, None, None])}):
        m = mw.Matcher()
        for context in ("a", "b", "c"):
            m.add(context, "ctx.brand IS NOT NULL", context=context)
        m.set_context_many(pa.table({"context": ["a", "b", "c"], **column}))
        assert m.match({}) == (["a", "b"] if "brand" in column else ["a"])


def test_a_context_shows_the_values_that_were_set_and_objects_without_any():
    m = mw.Matcher()
    m.set_context("u", {"a": {"b": {"c": 1}}, "d": {}})
    assert m.context("u") == {"a.b.c": 1, "d": {}}


def test_a_name_with_values_of_its_own_is_no_object():
    m = mw.Matcher()
    m.add("s", "ctx.brand = 'x'", context="u")
    m.add("f", "ctx.brand.id = 3", context="u")
    m.set_context("u", {"brand": {"id": 3}})
    assert m.match({}) == ["f"]
    m.set_context("u", {"brand": "x"})
    assert m.match({}) == ["s", "f"]


def test_comparing_an_object_is_refused():
    m = mw.Matcher()
    m.set_context("u", {"brand": {"id": 3}})
    for text in ("ctx.brand = 'x'", "ctx.brand LIKE 'x%'", "name = ctx.brand"):
        with pytest.raises(mw.SchemaError, match="object"):
            m.add(1, text, context="u")
