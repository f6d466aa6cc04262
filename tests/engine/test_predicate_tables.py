"""Tables of predicates say what the same subscriptions say as text."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings

import matchwood as mw
from engine.invariants import check
from matchwood.engine.input import predicate_tables
from matchwood.lang.nodes import And, Between, Comparison, Expr, In, IsNull, Like, Predicate
from naive import matches
from strategies import POOL, event, predicate, schema, seeds

FIELDS = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
}


def row(leaf: Predicate) -> tuple[str, list[Any]]:
    """Operator and constants of a predicate."""
    negated = "NOT " if getattr(leaf, "negated", False) else ""
    if isinstance(leaf, Comparison):
        return leaf.op, [leaf.value]
    if isinstance(leaf, Between):
        return f"{negated}BETWEEN", [leaf.low, leaf.high]
    if isinstance(leaf, In):
        return f"{negated}in", list(leaf.values)
    if isinstance(leaf, Like):
        return f"{negated}Like", [leaf.pattern]
    assert isinstance(leaf, IsNull)
    return f"IS {negated}NULL", []


def field_of(value: Any) -> str:
    kinds = [(bool, "bool"), (int, "int"), (float, "float"), (str, "string")]
    kinds += [(datetime, "timestamp"), (date, "date")]
    return next(name for kind, name in kinds if isinstance(value, kind))


def struct_of(value: Any) -> dict[str, Any]:
    return {field_of(value): value}


def as_table(rng: Random, subscriptions: dict[Any, list[Predicate]]) -> pa.Table:
    """Rows in any order, constants in structs, lists or both."""
    rows = [(id_, leaf) for id_, leaves in subscriptions.items() for leaf in leaves]
    first_rows = {id_: rows.index((id_, leaves[0])) for id_, leaves in subscriptions.items()}
    rest = [r for i, r in enumerate(rows) if i not in first_rows.values()]
    rng.shuffle(rest)
    rows = [rows[i] for i in sorted(first_rows.values())] + rest
    struct = pa.struct(list(FIELDS.items()))
    columns: dict[str, list[Any]] = {"value": [], "values": []}
    for _, leaf in rows:
        constants = [struct_of(value) for value in row(leaf)[1]]
        alone = len(constants) == 1 and rng.random() < 0.5
        columns["value"].append(constants[0] if alone else None)
        columns["values"].append(constants if constants and not alone else None)
    return pa.table(
        {
            "id": [id_ for id_, _ in rows],
            "attribute": [leaf.name for _, leaf in rows],
            "operator": [row(leaf)[0] for _, leaf in rows],
            "value": pa.array(columns["value"], struct),
            "values": pa.array(columns["values"], pa.list_(struct)),
        }
    )


def drawn(rng: Random, types: dict[str, str]) -> list[Predicate]:
    def usable(leaf: Predicate) -> bool:
        return not (isinstance(leaf, In) and None in leaf.values)

    leaves: list[Predicate] = []
    while len(leaves) < rng.randint(1, 3):
        leaf = predicate(rng, types)
        if usable(leaf):
            leaves.append(leaf)
    return leaves


def joined(leaves: list[Predicate]) -> Expr:
    return leaves[0] if len(leaves) == 1 else And(tuple(leaves))


@pytest.mark.slow
@settings(max_examples=max(10, settings.default.max_examples // 2))
@given(seed=seeds())
def test_a_table_says_what_the_texts_say(seed):
    rng = Random(seed)
    types = schema(rng)
    subscriptions = {f"s{i}": drawn(rng, types) for i in range(12)}
    table = as_table(rng, subscriptions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predicate_tables, "SUBSCRIPTIONS_PER_CHUNK", rng.choice((1, 5, 100)))
        m = mw.Matcher(schema=types)
        report = m.add_many(table)
    assert report.errors == []
    assert report.count == len(subscriptions)
    check(m)
    for each in [event(rng, types) for _ in range(8)]:
        expected = [id_ for id_, leaves in subscriptions.items() if matches(joined(leaves), each)]
        assert m.match(each) == expected
        for id_ in subscriptions:
            assert m.explain(id_, each).matches is (id_ in expected)


def table(**columns: Any) -> pa.Table:
    return pa.table(columns)


def one(operator: str, value: Any = None, values: Any = None, **schema_: str) -> mw.Matcher:
    m = mw.Matcher(schema=schema_)
    report = m.add_many(
        table(id=[1], attribute=["x"], operator=[operator], value=value, values=values)
        if values is not None and value is not None
        else table(id=[1], attribute=["x"], operator=[operator], value=value)
        if values is None
        else table(id=[1], attribute=["x"], operator=[operator], values=values)
    )
    assert report.errors == []
    return m


def test_the_table_of_the_docs():
    m = mw.Matcher()
    m.add_many(
        table(
            id=[7, 7, 8],
            attribute=["price", "genre", "price"],
            operator=["BETWEEN", "=", "<"],
            value=pa.array([None, {"text": "classics"}, {"number": 10}],
                           pa.struct({"number": pa.int64(), "text": pa.string()})),
            values=pa.array([[{"number": 20}, {"number": 40}], None, None],
                            pa.list_(pa.struct({"number": pa.int64(), "text": pa.string()}))),
        )
    )  # fmt: skip
    assert m.match({"price": 26, "genre": "classics"}) == [7]
    assert m.match({"price": 5, "genre": "classics"}) == [8]


def test_constants_are_never_narrowed():
    doubles, ints = pa.list_(pa.float64()), pa.list_(pa.int64())
    assert one("=", [1.5], pa.array([None], ints)).match({"x": 1.5}) == [1]
    assert one("=", [1.5], pa.array([None], ints)).match({"x": 1}) == []
    big = 2**53 + 1
    assert one("=", [big], pa.array([None], doubles)).match({"x": big}) == [1]
    assert one("=", [big], pa.array([None], doubles)).match({"x": big - 1}) == []
    assert one("=", pa.array([2**64 - 1], pa.uint64())).match({"x": 2**63 - 1}) == []


@pytest.mark.parametrize(
    ("column", "holds", "fails"),
    [
        (pa.array([True]), True, False),
        (pa.array([5], pa.uint8()), 5, 6),
        (pa.array([0.5], pa.float32()), 0.5, 0.25),
        (pa.array([Decimal("0.50")]), 0.5, 0.25),
        (pa.array(["a"]).dictionary_encode(), "a", "b"),
        (pa.array(["a"], pa.large_string()), "a", "b"),
        (pa.array(["a"], pa.string_view()), "a", "b"),
        (pa.array([date(2024, 2, 29)]), date(2024, 2, 29), date(2024, 3, 1)),
        (pa.array([0], pa.timestamp("s", "America/New_York")), datetime(1970, 1, 1),
         datetime(1970, 1, 2, tzinfo=UTC)),
        (pa.array([0], pa.timestamp("ns")), datetime(1970, 1, 1), datetime(1970, 1, 2)),
    ],
    ids=lambda v: str(v.type) if isinstance(v, pa.Array) else "",
)  # fmt: skip
def test_constants_of_every_column_type(column, holds, fails):
    m = one("=", column)
    assert m.match({"x": holds}) == [1]
    assert m.match({"x": fails}) == []
    assert matches(m.expression(1), {"x": holds})


@pytest.mark.parametrize(
    "spelling", ["not  in", "NOT IN", " Not\tIn ", "IN", "between", "NOT BETWEEN", "==", "!="]
)
def test_operators_in_any_spelling(spelling):
    word = " ".join(spelling.upper().split())
    values = [3, 7] if "IN" in word or "BETWEEN" in word else [3]
    m = one(spelling, values=pa.array([values]))
    text = {
        "IN": "x IN (3, 7)",
        "NOT IN": "x NOT IN (3, 7)",
        "BETWEEN": "x BETWEEN 3 AND 7",
        "NOT BETWEEN": "x NOT BETWEEN 3 AND 7",
        "==": "x = 3",
        "!=": "x <> 3",
    }[word]
    for x in (2, 3, 5, 7, 8):
        assert m.match({"x": x}) == ([1] if matches(mw.parse(text), {"x": x}) else [])


def test_categories_that_no_row_has_are_no_subscriptions():
    frame = pd.DataFrame(
        {
            "id": pd.Categorical(["c", "b", "a", "b"]),
            "attribute": pd.Categorical(["x", "y", "x", "x"]),
            "operator": pd.Categorical(["=", "=", "<", ">"]),
            "value": [1, 2, 3, 0],
        }
    )
    m = mw.Matcher()
    report = m.add_many(frame[frame.id != "a"])
    assert (report.count, report.errors) == (2, [])
    assert m.match({"x": 1, "y": 2}) == ["c", "b"]
    assert m.match({"x": 5}) == []
    assert m.match({}) == []


@pytest.mark.parametrize("form", [lambda t: t, lambda t: t.to_pandas(), pl.from_arrow])
def test_arrow_pandas_and_polars(form):
    m = mw.Matcher()
    rows = table(id=[1, 2, 1], attribute=["x", "x", "s"], operator=[">", "<", "LIKE"],
                 value=["a", "a", "b%"])  # fmt: skip
    assert m.add_many(form(rows)).count == 2
    assert m.match({"x": "b", "s": "bc"}) == [1]
    assert m.match({"x": ""}) == [2]


BAD_ROWS = [
    ("x", "~", [1]),
    ("x", None, [1]),
    ("x", "=", []),
    ("x", "=", [1, 2]),
    ("x", "BETWEEN", [1]),
    ("x", "BETWEEN", [1, 2, 3]),
    ("x", "IN", []),
    ("x", "IS NULL", [1]),
    ("s", "=", [1]),
    ("x", "LIKE", [1]),
    (None, "=", [1]),
    ("x", "IN", [1, None]),
]


@pytest.mark.parametrize("bad", BAD_ROWS, ids=range(len(BAD_ROWS)))
def test_a_bad_row_refuses_its_subscription_and_no_other(bad):
    name, operator, values = bad
    m = mw.Matcher(schema={"s": "string"})
    rows = table(
        id=["good", "bad", "bad", "last"],
        attribute=["x", "x", name, "x"],
        operator=["=", ">", operator, "<"],
        values=pa.array([[1], [0], values, [2]], pa.list_(pa.int64())),
    )
    report = m.add_many(rows)
    assert report.count == 2
    assert [each.id for each in report.errors] == ["bad"]
    assert isinstance(report.errors[0].error, mw.MatchwoodError)
    assert m.match({"x": 1}) == ["good", "last"]
    check(m)


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_rows_without_an_id_are_refused_and_no_other(kind):
    m = mw.Matcher()
    ids = pa.array([None, 1, None, 2], pa.int64()).cast(kind)
    rows = table(id=ids, attribute=["x"] * 4, operator=["=", "=", ">", "<"], value=[1, 1, 0, 2])
    assert [each.id for each in m.add_many(rows).errors] == [None]
    assert [int(id_) for id_ in m.match({"x": 1})] == [1, 2]
    check(m)


def test_a_taken_id_and_a_clash_are_reported():
    m = mw.Matcher(schema={"x": "number"})
    m.add("taken", "x = 1")
    rows = table(id=["taken", "new"], attribute=["x", "x"], operator=["=", "="], value=[1, 1])
    assert [each.id for each in m.add_many(rows).errors] == ["taken"]
    clash = table(id=["a", "b"], attribute=["y", "x"], operator=["=", "="], value=["v", "v"])
    assert [(e.id, type(e.error)) for e in m.add_many(clash).errors] == [("b", mw.SchemaError)]
    assert m.match({"x": 1, "y": "v"}) == ["taken", "new", "a"]


@pytest.mark.parametrize(
    "columns",
    [
        {"id": [1], "attribute": ["x"], "operator": ["="]},
        {"id": [1], "attribute": ["x"], "value": [1]},
        {"attribute": ["x"], "operator": ["="], "value": [1]},
        {"id": [1], "attribute": [5], "operator": ["="], "value": [1]},
    ],
    ids=range(4),
)
def test_tables_without_their_columns_are_refused_whole(columns):
    m = mw.Matcher()
    with pytest.raises(mw.SubscriptionError, match="expected"):
        m.add_many(pa.table(columns))
    assert len(m) == 0
    assert dict(m.schema) == {}


@pytest.mark.parametrize("chunks", [0, 1, 3])
def test_chunked_and_empty_tables(chunks):
    rows = table(id=[1, 2], attribute=["x", "y"], operator=["=", ">"], value=[1, 2])
    pieces = [rows.set_column(0, "id", pa.array([10 * i + 1, 10 * i + 2])) for i in range(chunks)]
    whole = pa.concat_tables(pieces) if pieces else rows.slice(0, 0)
    m = mw.Matcher()
    assert m.add_many(whole).count == 2 * chunks
    assert m.match({"x": 1, "y": 3}) == [10 * i + k for i in range(chunks) for k in (1, 2)]


def test_many_subscriptions_without_a_text_cost_no_text():
    n = 20_000
    m = mw.Matcher()
    rows = table(
        id=[i // 2 for i in range(2 * n)],
        attribute=["x", "y"] * n,
        operator=[">=", "<"] * n,
        value=[i % 100 for i in range(2 * n)],
    )
    assert m.add_many(rows).count == n
    expected = [i for i in range(n) if (2 * i) % 100 <= 10 and (2 * i + 1) % 100 > 20]
    assert m.match({"x": 10, "y": 20}) == expected
    assert str(m.expression(7)) == "x >= 14 AND y < 15"
    assert m.stats()["predicates"] == 100


def test_constants_of_the_pools_survive_a_table():
    for kind, values in POOL.items():
        usable = [v for v in values if kind != "number" or isinstance(v, int)]
        m = mw.Matcher(schema={"x": kind})
        rows = table(id=list(range(len(usable))), attribute=["x"] * len(usable),
                     operator=["="] * len(usable), value=usable)  # fmt: skip
        assert m.add_many(rows).errors == []
        for value in usable:
            expected = [i for i, c in enumerate(usable) if matches(mw.attr("x") == c, {"x": value})]
            assert m.match({"x": value}) == expected


@pytest.mark.parametrize("encoded", [False, True])
def test_attributes_of_the_context_need_one_context_for_all_rows_of_an_id(encoded: bool):
    contexts = pa.array(["ann", None, "ann", None, "ann", "bob", None])
    rows = table(
        id=[2, 1, 2, 1, 3, 3, 4],
        attribute=["x", "x", "ctx.n", "y", "x", "ctx.n", "ctx.n"],
        operator=["=", "=", "<", "=", "=", "<", "<"],
        value=[1, 1, 5, 1, 1, 5, 5],
    ).append_column("context", contexts.dictionary_encode() if encoded else contexts)
    m = mw.Matcher()
    report = m.add_many(rows)
    assert [(each.id, type(each.error)) for each in report.errors] == [
        (3, mw.SubscriptionError),
        (4, mw.SchemaError),
    ]
    m.set_context("ann", {"n": 3})
    assert m.match({"x": 1, "y": 1}) == [2, 1]
    m.set_context("ann", {"n": 6})
    assert m.match({"x": 1, "y": 1}) == [1]
