"""Attributes that nothing declares are open: each predicate looks at values of its own kind."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import matchwood as mw
from engine.invariants import check
from matchwood.encode.entry_events import EntryEvents

TEXTS = {
    "number": "x > 5",
    "not number": "NOT x > 5",
    "string": "x = 'a'",
    "prefix": "x LIKE 'a%'",
    "pattern": "x LIKE '%a%b'",
    "bool": "x",
    "date": "x >= DATE '2026-02-01'",
    "timestamp": "x >= TIMESTAMP '2026-02-01 12:00:00'",
    "exact": "x < 0.10000000000000000001",
    "there": "x IS NOT NULL",
    "absent": "x IS NULL",
}
VALUES: dict[Any, set[str]] = {
    7: {"number"},
    2.5: {"not number"},
    0.1: {"not number"},  # beside a double the constant is 0.1
    Decimal("0.1"): {"not number", "exact"},
    "a": {"string", "prefix"},
    "acb": {"prefix", "pattern"},
    True: {"bool"},
    date(2026, 2, 1): {"date"},
    datetime(2026, 2, 1, 12, tzinfo=UTC): {"date", "timestamp"},
    "2026-02-01T09:30:00Z": {"date"},
    "2026-02-01T12:30:00Z": {"date", "timestamp"},
    (1, 2): set(),
}


def matcher(**options: Any) -> mw.Matcher:
    m = mw.Matcher(**options)
    for id_, text in TEXTS.items():
        m.add(id_, text)
    return m


@pytest.mark.parametrize("index", ["auto", "be_tree", "a_tree"])
def test_each_predicate_looks_at_values_of_its_own_kind(index):
    m = matcher(index=index)
    for value, ids in VALUES.items():
        assert set(m.match({"x": value})) == ids | {"there"}, value
    assert m.match({}) == m.match({"x": None}) == ["absent"]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_column_says_the_same_as_single_values(value):
    m = matcher()
    values = [list(value) if isinstance(value, tuple) else value, None]
    found = m.match_many(pa.table({"x": pa.array(values)}))
    assert found.errors == {}
    assert set(found[0]) == VALUES[value] | {"there"}
    assert found[1] == ["absent"]


def test_entries_say_the_same_as_single_values():
    m = matcher()
    for value in ("a", "acb", 7, 2.5, True):
        events = EntryEvents(1, *_one(value))
        assert set(m.match_many(events)[0]) == VALUES[value] | {"there"}


def _one(value: Any) -> tuple[Any, pa.Array, pa.Array]:
    import numpy as np

    return np.zeros(1, np.int64), pa.array(["x"]), pa.array([value])


def test_no_subscription_makes_events_fail_for_others():
    m = mw.Matcher()
    m.add("good", "price < 20")
    m.add("bad", "tags = 'sale'")
    events = [{"price": 5, "tags": ["sale", "new"]}, {"price": "5", "tags": "sale"}]
    for _ in range(2):
        found = m.match_many(events)
        assert found.errors == {}
        assert found[0] == ["good"]
        m.remove("bad")
        m.add("bad", "tags = 'sale'")
    assert found[1] == ["bad"]


def test_nothing_about_types_survives_the_last_subscription():
    m = mw.Matcher()
    for text in TEXTS.values():
        m.add("only", text)
        m.remove("only")
        assert dict(m.schema) == {}
        assert m.stats()["attributes"] == 0
        check(m)


def test_what_a_value_of_another_kind_leaves_unknown_is_counted():
    m = mw.Matcher()
    m.add("n", "x > 5")
    m.match({"x": "a"})
    m.match_many([{"x": ["a"]}, {"x": 6}, {}])
    m.match_many(pa.table({"x": ["a", "b", None]}))
    assert m.stats()["unknown"] == {"x": 4}


def test_an_explanation_says_unknown_for_a_value_of_another_kind():
    m = matcher()
    for value in VALUES:
        found = set(m.match({"x": value}))
        for id_ in TEXTS:
            assert m.explain(id_, {"x": value}).matches == (id_ in found), (id_, value)
    said = str(m.explain("number", {"x": "a"}))
    assert "UNKNOWN x > 5   (x is 'a')" in said


def test_open_attributes_survive_save_and_load(tmp_path):
    m = matcher()
    m.save(tmp_path / "s")
    m = mw.Matcher.load(tmp_path / "s")
    for value, ids in VALUES.items():
        assert set(m.match({"x": value})) == ids | {"there"}
    for id_ in TEXTS:
        m.remove(id_)
    assert m.stats()["attributes"] == 0
    check(m)


@pytest.mark.slow
def test_many_kinds_come_and_go():
    rng = Random(5)
    m, held = mw.Matcher(), {}
    for step in range(300):
        if held and rng.random() < 0.5:
            id_ = rng.choice(sorted(held))
            m.remove(id_)
            del held[id_]
        else:
            kind = rng.choice(sorted(TEXTS))
            held[step] = kind
            m.add(step, TEXTS[kind])
        value = rng.choice([*VALUES])
        expected = [id_ for id_, kind in held.items() if kind in VALUES[value] | {"there"}]
        assert m.match({"x": value}) == expected
    check(m)


# ── declared ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int", "x > '10'", 11),
        ("int", "x IN (' 7 ', 8)", 7),
        ("float", "x = '1e2'", 100.0),
        ("number", "x BETWEEN '1.5' AND 2", 2),
        ("bool", "x = 'yes'", True),
        ("timestamp", "x >= DATE '2026-02-01'", datetime(2026, 2, 1, tzinfo=UTC)),
        ("date", "x = TIMESTAMP '2026-02-01 00:00:00'", date(2026, 2, 1)),
    ],
)
def test_a_literal_beside_a_declared_attribute_is_cast_as_spark_does(kind, text, value):
    m = mw.Matcher(schema={"x": kind})
    m.add(1, text)
    assert m.match({"x": value}) == [1]


@pytest.mark.parametrize(
    ("kind", "text"), [("int", "x > '10.5'"), ("float", "x = 'a'"), ("bool", "x = 'maybe'")]
)
def test_a_literal_that_cannot_be_cast_is_refused(kind, text):
    m = mw.Matcher(schema={"x": kind})
    with pytest.raises(mw.SchemaError, match="expected a"):
        m.add(1, text)


def test_a_strict_schema_refuses_unknown_names_with_the_nearest(tmp_path):
    m = mw.Matcher(schema=mw.Schema({"price": "float", "user": {"age": "int"}}, strict=True))
    for _ in range(2):
        with pytest.raises(mw.SchemaError, match="'prcie': did you mean 'price'") as caught:
            m.add("typo", "price > 1 AND prcie < 20")
        assert caught.value.position == len("price > 1 AND ")
        with pytest.raises(mw.SchemaError, match="did you mean"):
            m.validate("prices IS NULL")
        assert len(m) == 0
        m.save(tmp_path / "s")
        m = mw.Matcher.load(tmp_path / "s")
    m.add("struct", "user IS NOT NULL AND user.age > 1")
    assert m.match({"user": {"age": 3}}) == ["struct"]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("price * qty > 3", None), ("price < qty", None), ("user.age + 1 > 3", None),
        ("sent + INTERVAL 1 DAY < TIMESTAMP '2026-01-01'", None), ("lower(name) = 'x'", None),
        ("coalesce(user.age, 0) = 3", None), ("user['age'] = 3", None),
        ("NOT (price + 1 IS NULL)", None),
        ("prcie * 2 > 3", "'prcie': did you mean 'price'"),
        ("price < qtty", "'qtty': did you mean"),
        ("lower(nmae) = 'x'", "'nmae': did you mean 'name'"),
        ("exists(tags, t -> t > 3)", "'tags'"),
        ("CASE WHEN prcie > 1 THEN 1 ELSE price END = 1", "'prcie'"),
    ],
)  # fmt: skip
def test_a_strict_schema_looks_at_what_computed_attributes_read(text, wrong):
    types = {"price": "float", "qty": "int", "user": {"age": "int"}, "name": "string"}
    m = mw.Matcher(schema=mw.Schema({**types, "sent": "timestamp"}, strict=True))
    if wrong is None:
        m.add(1, text)
        assert len(m) == 1
    else:
        with pytest.raises(mw.SchemaError, match=wrong):
            m.add(1, text)


def test_constants_of_several_kinds_in_one_list_are_refused():
    m = mw.Matcher()
    with pytest.raises(mw.SchemaError, match="of one kind"):
        m.add(1, "x IN (1, 'a')")
    assert m.stats()["attributes"] == 0


@pytest.mark.parametrize("kind", [pa.decimal128(10, 2), pa.decimal128(30, 2), pa.float64()])
def test_a_column_of_numbers_leaves_predicates_of_strings_unknown(kind):
    m = mw.Matcher()
    m.add("text", "x < 'a'")
    m.add("number", "x > 1")
    m.add("moment", "x > DATE '2026-01-01'")
    m.add("unknown", "(x = 'a') IS UNKNOWN")
    values = [Decimal("0.50"), Decimal("1.50"), Decimal("2.50"), Decimal("3.00"), None]
    table = pa.table({"x": pa.array(values).cast(kind)})
    found = [list(each) for each in m.match_many(table)]
    assert found == [["unknown"], *[["number", "unknown"]] * 3, ["unknown"]]
