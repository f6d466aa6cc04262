"""Decimals compare by their exact value: with a dict and with a column, in events and constants.

The oracle is plain arithmetic with fractions.  A constant in decimal notation is the number that is
written; beside a double it is the nearest double, as in Spark.  A double beside a decimal is the
shortest decimal that reads back as that double (0.1 is 0.1), or itself where it is whole.
"""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import matchwood as mw
from matchwood import attr

OPS = ("=", "<>", "<", "<=", ">", ">=")
TINY = Decimal("1E-20")


def shortest(value: float) -> Fraction:
    """The number that a double stands for beside a decimal."""
    return Fraction(value) if value.is_integer() else Fraction(repr(value))


def is_int64(number: Fraction) -> bool:
    return number.denominator == 1 and -(2**63) <= number < 2**63


def order(value: int | float | Decimal, text: str) -> int:
    """-1, 0 or 1: the value beside the constant that a text stands for."""
    if "e" in text:  # a double
        constant = shortest(float(text)) if isinstance(value, Decimal) else Fraction(float(text))
    else:
        constant = Fraction(text)
        if isinstance(value, float) and not is_int64(constant):
            constant = Fraction(float(constant))
    exact = Fraction(value)
    return (exact > constant) - (exact < constant)


def holding(value: int | float | Decimal, text: str) -> list[str]:
    found = order(value, text)
    truth = {"=": found == 0, "<>": found != 0, "<": found < 0, "<=": found <= 0}
    truth |= {">": found > 0, ">=": found >= 0}
    return [op for op in OPS if truth[op]]


def matcher(texts: list[str], **options: Any) -> mw.Matcher:
    m = mw.Matcher(**options)
    for text in texts:
        for op in OPS:
            m.add(f"{text} {op}", f"x {op} {text}")
    return m


def expected(value: int | float | Decimal, texts: list[str]) -> list[str]:
    return [f"{text} {op}" for text in texts for op in holding(value, text)]


# ── the examples that were wrong ────────────────────────────────────────────────────────────────

EXAMPLES = [
    ("1", Decimal("1.00000000000000000001")),
    ("1", Decimal("0.99999999999999999999")),
    ("0.1", Decimal("0.1")),
    ("0.1", Decimal("0.10000000000000000001")),
    ("0.1", Decimal("0.09999999999999999999")),
    ("0.1", 0.1),
    ("1e-1", Decimal("0.1")),
    ("0.10000000000000001", 0.1),
    ("0.10000000000000001", Decimal("0.10000000000000001")),
    ("0.10000000000000000001", Decimal("0.10000000000000000001")),
    ("1234567.123456789012345678", Decimal("1234567.123456789012345678")),
    ("1234567.123456789012345678", Decimal("1234567.123456789012345677")),
    ("18446744073709551615", Decimal("18446744073709551615")),
    ("18446744073709551615", Decimal("18446744073709551614")),
    ("9223372036854775808", Decimal("9223372036854775808")),
    ("9223372036854775807", Decimal("9223372036854775807.5")),
    ("100000000000000000000000", 1e23),
    ("100000000000000000000000", Decimal("1e23")),
    ("99999999999999999999999999999999999999", Decimal("9" * 38)),
    ("0", Decimal("1E-400")),
    ("0", Decimal("-1E-400")),
    ("4611686018427387950", Decimal("4611686018427387950.5")),
    ("4611686018427387951", Decimal("4611686018427387950.5")),
]


@pytest.mark.parametrize(("text", "value"), EXAMPLES)
def test_a_decimal_is_compared_and_never_rounded(text: str, value: Any) -> None:
    texts = ["-7", text, "1e300"]
    assert matcher(texts).match({"x": value}) == expected(value, texts)


@pytest.mark.parametrize(("text", "value"), EXAMPLES)
def test_a_decimal_column_is_compared_and_never_rounded(text: str, value: Any) -> None:
    if not isinstance(value, Decimal) or value.adjusted() < -30:
        return
    m = matcher([text])
    for kind in (pa.decimal128(38, _scale(value)), pa.decimal256(76, _scale(value))):
        found = m.match_many(pa.table({"x": pa.array([value, None], kind)}))
        assert found.errors == {}
        assert list(found) == [expected(value, [text]), []]


def _scale(value: Decimal) -> int:
    return max(0, -int(value.as_tuple().exponent))


# ── the law ─────────────────────────────────────────────────────────────────────────────────────

NEAR = st.sampled_from([
    "0", "1", "-1", "0.1", "-0.1", "0.3", "19.99", "1e-1", "1e23", "4.5e15", "9007199254740992",
    "9007199254740993", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
    "18446744073709551615", "100000000000000000000000", "0.10000000000000001", "2.5e-1",
    "0.1000000000000000055511151231257827", "1234567.123456789012345678", "123456789012345.678",
])  # fmt: skip
WRITTEN = st.decimals(allow_nan=False, allow_infinity=False, places=20, min_value=-10, max_value=10)
CONSTANTS = st.one_of(NEAR, WRITTEN.map(lambda each: format(each, "f")), st.integers().map(str))
STEPS = st.sampled_from([Decimal(0), TINY, -TINY, Decimal("0.5"), Decimal("1E-9"), Decimal(1)])


def can_be_written(text: str) -> bool:
    """Whether the constant is no fraction that would become whole as a double."""
    exact = Fraction(text)
    return "e" in text or exact.denominator == 1 or not float(exact).is_integer()


@given(st.lists(CONSTANTS, min_size=1, max_size=5, unique=True), CONSTANTS, STEPS)
@example(["0.1", "0.10000000000000001"], "0.1", TINY)
@example(["0.1", "0.10000000000000001", "0.1000000000000000055511151231257827"], "0.1", Decimal(0))
@example(["18446744073709551615", "1e19"], "18446744073709551615", Decimal(1))
@example(["4611686018427387950", "4611686018427387904"], "4611686018427387950", Decimal("0.5"))
def test_numbers_of_every_kind_compare_by_their_exact_value(texts, near, step):
    texts = [text for text in texts if can_be_written(text)]
    m = matcher(texts)
    decimal = add(Decimal(near), step)
    doubles = [float(near), float(decimal)]
    ints = [int(decimal)] if is_int64(Fraction(int(decimal))) else []
    for value in (*doubles, *ints):
        assert m.match({"x": value}) == expected(value, texts)
    assert m.match({"x": decimal}) == expected(decimal, texts)
    column = pa.array([decimal], pa.decimal256(76, 35))
    assert list(m.match_many(pa.table({"x": column}))) == [expected(decimal, texts)]


def add(left: Decimal, right: Decimal) -> Decimal:
    """A sum without rounding to the precision of the context."""
    digits = (Fraction(left) + Fraction(right)) * 10**35
    assert digits.denominator == 1
    return Decimal(f"{digits.numerator}E-35")


SMALL = ["1", "0.1", "0.10000000000000001", "0.10000000000000000001", "-0.3", "19.99", "0.3"]


@pytest.mark.parametrize("kind", [pa.decimal128(30, 20), pa.float64()], ids=str)
def test_columns_of_decimals_and_of_doubles_compare_as_in_duckdb(kind):
    exact = [Decimal(text) + step for text in SMALL for step in (Decimal(0), TINY, -TINY)]
    is_decimal = pa.types.is_decimal(kind)
    table = pa.table({"x": pa.array(exact if is_decimal else [float(v) for v in exact], kind)})
    m = matcher(SMALL)
    ids = [f"{text} {op}" for text in SMALL for op in OPS]
    columns = ", ".join(f"x {id_.split()[1]} {id_.split()[0]}" for id_ in ids)
    rows = asked(table, columns)
    expected_ids = [[i for i, truth in zip(ids, row, strict=True) if truth] for row in rows]
    assert list(m.match_many(table)) == expected_ids
    assert [m.match({"x": value}) for value in table["x"].to_pylist()] == expected_ids


def asked(events: pa.Table, columns: str) -> list[tuple[bool, ...]]:
    return duckdb.sql(f"SELECT {columns} FROM events").fetchall()


# ── other doors ─────────────────────────────────────────────────────────────────────────────────


def test_a_decimal_between_two_doubles_is_no_value_of_a_float_attribute():
    m = mw.Matcher(schema={"x": "float"})
    m.add("s", "x = 1")
    assert m.match({"x": Decimal("1")}) == ["s"]
    with pytest.raises(mw.EventError, match="round"):
        m.match({"x": Decimal("1.00000000000000000001")})
    column = pa.array([Decimal("1.00000000000000000001"), Decimal("1.00000000000000000000")])
    found = m.match_many(pa.table({"x": column}))
    assert list(found) == [[], ["s"]]
    assert list(found.errors) == [0]


@pytest.mark.parametrize("as_column", [False, True])
def test_a_decimal_beside_a_context_is_compared_exactly(as_column):
    m = mw.Matcher()
    for op in OPS:
        m.add(op, f"x {op} ctx.y", context="c")
    m.set_context("c", {"y": 0.1})
    for value in ("0.1", "0.10000000000000000001", "0.09999999999999999999"):
        decimal = Decimal(value)
        events = pa.table({"x": pa.array([decimal])}) if as_column else [{"x": decimal}]
        assert list(m.match_many(events)) == [holding(decimal, "0.1")]


def test_a_context_takes_no_decimal_that_it_would_round():
    m = mw.Matcher()
    m.add("s", "x < ctx.y", context="c")
    for values in ({"y": Decimal("1.00000000000000000001")}, {"y": Decimal("0.1"), "z": 1}):
        if "z" in values:
            m.set_context("c", values)
            assert m.match({"x": Decimal("0.09999999999999999999")}) == ["s"]
            assert m.match({"x": Decimal("0.1")}) == []
        else:
            with pytest.raises(mw.EventError):
                m.set_context("c", values)
    column = pa.array([Decimal("0.10000000000000000001")])
    with pytest.raises(mw.EventError):
        m.set_context_many(pa.table({"context": ["c"], "y": column}))


def test_constants_of_a_predicate_table_are_exact_decimals():
    constants = [Decimal("0.10000000000000000001"), Decimal("0.1"), Decimal("18446744073709551615")]
    table = pa.table({
        "id": range(3), "attribute": ["x"] * 3, "operator": ["="] * 3,
        "value": pa.array(constants, pa.decimal256(60, 20)),
    })  # fmt: skip
    m = mw.Matcher()
    assert m.add_many(table).errors == []
    assert [m.match({"x": each}) for each in constants] == [[0], [1], [2]]
    assert m.match({"x": 0.1}) == [0, 1]  # the nearest double of either
    assert str(m.expression(0)) == "x = 0.10000000000000000001"


def test_built_constants_are_exact_and_print_as_they_are():
    x = attr("x")
    for value in (Decimal("0.10000000000000000001"), 2**64 - 1, Decimal(2**64 - 1)):
        m = mw.Matcher()
        m.add("s", x == value)
        m.add("t", str(x == value))
        assert mw.parse(str(x == value)) == (x == value)
        assert m.match({"x": Decimal(value)}) == ["s", "t"]
        assert m.match({"x": Decimal(value) + 1}) == []


def test_exact_constants_survive_save_and_load(tmp_path):
    texts = ["0.10000000000000000001", "18446744073709551615", "0.1"]
    m = matcher(texts)
    m.save(tmp_path / "s")
    m = mw.Matcher.load(tmp_path / "s")
    for text in texts:
        assert m.match({"x": Decimal(text)}) == expected(Decimal(text), texts)


def test_an_explanation_agrees_with_the_match_about_exact_constants():
    texts = ["0.10000000000000000001", "18446744073709551615", "0.1"]
    m = matcher(texts)
    for value in (0.1, Decimal("0.10000000000000000001"), Decimal("0.2"), 1):
        found = set(m.match({"x": value}))
        for text in texts:
            for op in OPS:
                id_ = f"{text} {op}"
                assert m.explain(id_, {"x": value}).matches == (id_ in found), (id_, value)


def test_types_of_int_and_float_take_exact_constants():
    texts = ["0.10000000000000001", "18446744073709551615", "2.50000000000000000001"]
    ints = matcher(texts, schema={"x": "int"})
    floats = matcher(texts, schema={"x": "float"})
    for value in (0, 1, 2, 3, 2**63 - 1):
        assert ints.match({"x": value}) == expected(value, texts)
    for double in (0.1, 0.25, 2.5, float(2**64)):
        assert floats.match({"x": double}) == expected(double, texts)


def test_an_event_of_predicates_may_have_an_exact_constant():
    m = matcher(["0.10000000000000000001", "0.1", "0.2"])
    for text in ("0.10000000000000000001", "0.1"):
        found = m.match(mw.parse(f"x = {text}"))
        assert found == expected(Decimal(text), ["0.10000000000000000001", "0.1", "0.2"])


def test_no_event_names_the_attribute_beside_an_exact_constant():
    m = matcher(["0.10000000000000000001"])
    assert list(m.schema) == ["x"]
    assert m.match({"x\0exact": 5}) == []
    assert m.match({"x\0exact": 5, "x": 0.1}) == expected(0.1, ["0.10000000000000000001"])


@pytest.mark.parametrize("index", ["scan", "be_tree", "a_tree", "pst_bloom", "counting", "k_index"])
def test_every_kind_of_index_takes_exact_constants(index):
    texts = ["0.10000000000000000001", "18446744073709551615", "0.1"]
    m = matcher(texts, index=index)
    for value in (0.1, 1, Decimal("0.1"), Decimal("0.10000000000000000001"), Decimal(2**64)):
        assert m.match({"x": value}) == expected(value, texts)


def test_an_exact_constant_of_a_string_attribute_is_a_clash():
    m = mw.Matcher(schema={"x": "string"})
    m.add("s", "x = 'a'")
    with pytest.raises(mw.SchemaError):
        m.add("t", "x = 0.10000000000000000001")
    m = mw.Matcher()
    m.add("t", "x = 0.10000000000000000001")
    m.add("s", "x = 'a'")  # open: each looks at values of its own kind
    assert m.match({"x": "a"}) == ["s"]
    assert m.match({"x": Decimal("0.10000000000000000001")}) == ["t"]


@pytest.mark.parametrize("text", ["x <> {}", "x = {}", "x < {}", "x >= {}"])
@pytest.mark.parametrize("value", [0.0, 5, -7, 1e300, 2**63 - 1])
def test_nan_as_the_only_constant_is_above_every_number(text: str, value: float) -> None:
    m = mw.Matcher(schema={"x": "number"})
    m.add("nan", text.format("double('NaN')"))
    expected = ["nan"] if text[2] == "<" else []
    column = pa.array([value], pa.float64() if isinstance(value, float) else pa.int64())
    assert [m.match({"x": value}) for _ in range(3)] == [expected] * 3  # the last by compiled code
    assert m.match_many([{"x": value}] * 80).to_pylist() == [expected] * 80
    assert m.match_many(pa.table({"x": column})).to_pylist() == [expected]
    assert m.match_json(json.dumps({"x": value}).encode()) == expected
