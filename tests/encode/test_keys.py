"""Keys keep the order of their type, and say exactly what a value is."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import matchwood as mw
from matchwood.encode.keys import (
    INT_MAX,
    INT_MIN,
    DictionaryKeys,
    WrongValue,
    float_key,
    float_of_key,
    keys_for,
)
from matchwood.lang.nodes import Comparison
from naive import compare
from strategies import POOL, TYPES

INT64 = st.integers(INT_MIN, INT_MAX)
NEAR_2_53 = st.integers(2**53 - 3, 2**53 + 3)
FLOATS = st.floats(allow_nan=True)
ANY_VALUE: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int": st.one_of(INT64, NEAR_2_53),
    "float": FLOATS,
    "number": st.one_of(INT64, FLOATS, NEAR_2_53, NEAR_2_53.map(float), st.integers(-3, 3)),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
    "date": st.dates(),
}
EVERY_TYPE = pytest.mark.parametrize("kind", TYPES)


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


# ── order ───────────────────────────────────────────────────────────────────────────────────────


@EVERY_TYPE
@given(data=st.data())
def test_keys_of_constants_keep_the_order_of_values(kind, data):
    values = st.one_of(ANY_VALUE[kind], st.sampled_from(POOL[kind]))
    v, w = data.draw(values), data.draw(values)
    keys = keys_for(kind)
    (v_key, _, _), (w_key, _, _) = keys.literals([v, w]).tolist()
    assert sign(v_key - w_key) == sign(compare(v, w))


@EVERY_TYPE
@given(data=st.data())
def test_the_key_of_an_event_lies_where_the_value_does(kind, data):
    values = st.one_of(ANY_VALUE[kind], st.sampled_from(POOL[kind]))
    constants = data.draw(st.lists(values, min_size=1, max_size=6))
    value = data.draw(values)
    keys = keys_for(kind)
    literals = keys.literals(constants).tolist()
    key = keys.key(value)
    for constant, (label, _, _) in zip(constants, literals, strict=True):
        assert sign(key - label) == sign(compare(value, constant))


@given(v=FLOATS)
def test_a_float_comes_back_from_its_key(v):
    back = float_of_key(float_key(v))
    assert math.isnan(back) if math.isnan(v) else back == v


@given(v=FLOATS, w=INT64)
@example(v=float(2**53), w=2**53 + 1)
@example(v=float(2**63), w=INT_MAX)
@example(v=-float(2**63), w=INT_MIN)
def test_an_int_constant_divides_the_floats_exactly(v, w):
    """`x >= w` on a float attribute holds from the first double that is not below w."""
    [(ge, le, _)] = keys_for("float").literals([w]).tolist()
    key = keys_for("float").key(v)
    assert (key >= ge) is (math.isnan(v) or v >= w)
    assert (key <= le) is (not math.isnan(v) and v <= w)


@given(v=INT64, w=st.floats(allow_nan=False))
@example(v=INT_MAX, w=float(2**63))
@example(v=INT_MIN, w=-float(2**63))
@example(v=2**53 + 1, w=float(2**53))
def test_a_float_constant_divides_the_ints_exactly(v, w):
    m = mw.Matcher(schema={"x": "int"})
    for op in ("<", "<=", "=", "<>", ">=", ">"):
        m.add(op, Comparison("x", op, w))
    expected = {"<": v < w, "<=": v <= w, "=": v == w, "<>": v != w, ">=": v >= w, ">": v > w}
    assert m.match({"x": v}) == [op for op, holds in expected.items() if holds]


# ── number ──────────────────────────────────────────────────────────────────────────────────────


@given(constants=st.lists(ANY_VALUE["number"], min_size=1, max_size=5), v=ANY_VALUE["number"])
def test_number_compares_ints_and_floats_by_their_exact_value(constants, v):
    keys = keys_for("number")
    labels = [label for label, _, _ in keys.literals(constants).tolist()]
    for constant, label in zip(constants, labels, strict=True):
        if any(x != x or math.isinf(x) for x in (constant, v)):
            continue
        exact = Fraction(v) - Fraction(constant)
        assert sign(keys.key(v) - label) == (exact > 0) - (exact < 0)


def test_nan_equals_itself_and_is_above_everything():
    for kind in ("float", "number"):
        keys = keys_for(kind)
        nan, inf = keys.literals([math.nan, math.inf])
        assert keys.key(math.nan) == keys.key(-math.nan) == keys.key(np.float32("nan")) == nan[0]
        assert nan[0] > inf[0] > keys.key(1e308)


def test_nan_is_above_infinity_before_either_is_a_constant():
    keys = keys_for("number")
    (label, _, _), *_ = keys.literals([math.inf])
    assert keys.key(math.nan) > label
    assert keys.key(-math.inf) < label


def test_minus_zero_equals_zero():
    for kind, zeros in (("float", [0.0, -0.0, 0, Decimal("-0")]), ("number", [0, 0.0, -0.0])):
        keys = keys_for(kind)
        keys.literals([0.0])
        assert len({keys.key(zero) for zero in zeros}) == 1


SCALARS = [
    (np.int8(5), 5),
    (np.uint64(5), 5),
    (np.int64(2**62), 2**62),
    (np.float16(0.5), 0.5),
    (np.float32(0.1), float(np.float32(0.1))),
    (np.float64(0.1), 0.1),
    (Decimal("5.00"), 5),
    (Decimal("0.1"), 0.1),
    (Decimal(2**62), 2**62),
    (Decimal("NaN"), math.nan),
    (Decimal("-Infinity"), -math.inf),
]


@pytest.mark.parametrize(("scalar", "plain"), SCALARS, ids=repr)
def test_scalars_of_other_libraries_are_the_numbers_they_are(scalar, plain):
    keys = keys_for("number")
    keys.literals([plain, 0])
    assert keys.key(scalar) == keys.key(plain)


REFUSED = [
    ("bool", 1),
    ("bool", "true"),
    ("bool", np.array([True, False])),
    ("int", 1.0),
    ("int", True),
    ("int", 2**63),
    ("int", -(2**63) - 1),
    ("int", np.uint64(2**63)),
    ("float", 2**53 + 1),
    ("float", False),
    ("number", True),
    ("number", np.bool_(True)),
    ("number", "1"),
    ("number", 10**5_000),
    ("number", 1j),
    ("number", np.array([1, 2])),
    ("number", Decimal("sNaN")),
    ("number", Decimal("1E+999999999")),
    ("number", [1]),
    ("string", b"a"),
    ("string", 1),
    ("string", "\ud800"),
    ("timestamp", "2024-01-01"),
    ("timestamp", 5),
    ("timestamp", np.int64(5)),
    ("timestamp", np.float64(5)),
    ("timestamp", np.datetime64("NaT")),
    ("timestamp", np.array(["2024-01-01"], "datetime64[us]")),
    ("date", datetime(2024, 1, 1)),
    ("date", "2024-01-01"),
    ("date", 5),
]


@pytest.mark.parametrize(("kind", "value"), REFUSED, ids=range(len(REFUSED)))
def test_values_of_another_type_are_refused_and_named(kind, value):
    with pytest.raises(WrongValue) as caught:
        keys_for(kind).key(value)
    assert 0 < len(str(caught.value)) < 200


# ── moments ─────────────────────────────────────────────────────────────────────────────────────


def test_a_moment_is_the_same_in_every_zone_and_without_one_it_is_utc():
    key = keys_for("timestamp").key
    noon = datetime(2024, 2, 29, 12, tzinfo=UTC)
    elsewhere = noon.astimezone(timezone(timedelta(hours=-7, minutes=-30)))
    assert key(noon) == key(elsewhere) == key(noon.replace(tzinfo=None))
    assert key(date(2024, 2, 29)) == key(noon) - 12 * 3600 * 10**6


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_numpy_moments_of_every_unit(unit):
    key = keys_for("timestamp").key
    assert key(np.datetime64("2024-02-29T12:00:00", unit)) == key(datetime(2024, 2, 29, 12))


def test_the_first_and_the_last_moment_have_keys():
    key = keys_for("timestamp").key
    east, west = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))
    first, last = datetime.min.replace(tzinfo=east), datetime.max.replace(tzinfo=west)
    assert key(first) < key(datetime.min) < key(datetime.max) < key(last)
    assert keys_for("date").key(date.max) - keys_for("date").key(date.min) == 3_652_058


def test_reading_events_teaches_a_dictionary_nothing():
    for kind in ("number", "string"):
        keys = keys_for(kind)
        assert isinstance(keys, DictionaryKeys)
        known = POOL[kind][:5]
        keys.literals(known)
        before = keys.dictionary.labels().tolist(), list(keys.dictionary.values)
        for value in POOL[kind]:
            keys.key(value)
        assert (keys.dictionary.labels().tolist(), list(keys.dictionary.values)) == before
