"""Columns say what dicts say: Arrow, pandas and polars against one event at a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood as mw
from encode.dicts import HALVES, WORDS, says_what_dicts_say
from matchwood.encode.number_labels import ceilings, plain_ceilings
from oracle.columns import nested, to_arrow
from strategies import POOL, event, expression, schema, seeds

# ── every type ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@given(seed=seeds())
def test_tables_and_frames_say_what_dicts_say(seed):
    rng = Random(seed)
    types = {n: k for n, k in schema(rng).items() if k != "number"}
    m = mw.Matcher(schema=types)
    for i in range(15):
        m.add(i, expression(rng, types, rng.randint(1, 5)))
    events = [event(rng, types) for _ in range(10)]
    expected = [m.match(each) for each in events]
    assert list(m.match_many([nested(types, each) for each in events])) == expected
    table = to_arrow(types, events, "UTC")
    cut = rng.randint(0, 10)
    chunked = pa.concat_tables([table.slice(0, cut), table.slice(cut, 0), table.slice(cut)])
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    for given_ in (table, chunked, frame, *table.combine_chunks().to_batches()):
        found = m.match_many(given_)
        assert found.errors == {}
        assert list(found) == expected


@given(st.lists(st.one_of(st.none(), st.sampled_from(POOL["number"])), max_size=8), seeds())
def test_numbers_in_columns_of_ints_and_of_doubles(values, seed):
    rng = Random(seed)
    m = mw.Matcher(schema={"x": "number"})
    for i in range(10):
        m.add(i, expression(rng, {"x": "number"}, rng.randint(1, 3)))
    ints = [v if isinstance(v, int) else None for v in values]
    doubles = [v if isinstance(v, float) else None for v in values]
    for column, plain in (
        (pa.array(ints, pa.int64()), ints),
        (pa.array(doubles, pa.float64()), doubles),
    ):
        by_dict = list(m.match_many([{"x": v} for v in plain]))
        assert list(m.match_many(pa.table({"x": column}))) == by_dict


# ── odd columns ─────────────────────────────────────────────────────────────────────────────────

SMALL = [0, 1, 5, None, 100]
MIDNIGHT = 86_400_000
TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

ODD: dict[str, tuple[str, Callable[[], Any], list[Any]]] = {
    "int8": ("number", lambda: pa.array(SMALL, pa.int8()), SMALL),
    "uint8 as int": ("int", lambda: pa.array(SMALL, pa.uint8()), SMALL),
    "uint8 as float": ("float", lambda: pa.array(SMALL, pa.uint8()), SMALL),
    "uint64": ("number", lambda: pa.array([5, 2**53 + 1, None], pa.uint64()), [5, 2**53 + 1, None]),
    "uint64 beyond": ("number", lambda: pa.array([5, 2**63], pa.uint64()), [5, 2**63]),
    "uint64 beyond as int": (
        "int",
        lambda: pa.array([2**63 - 1, 2**64 - 1], pa.uint64()),
        [2**63 - 1, 2**64 - 1],
    ),
    "int64 rounded by float": (
        "float",
        lambda: pa.array([2**53 + 1, 1, 2**63 - 1, -(2**63)]),
        [2**53 + 1, 1, 2**63 - 1, -(2**63)],
    ),
    "float32": ("number", lambda: pa.array(HALVES, pa.float32()), HALVES),
    "float16": ("number", lambda: pa.array(HALVES, pa.float16()), HALVES),
    "float16 as float": ("float", lambda: pa.array(HALVES, pa.float16()), HALVES),
    "float as int": ("int", lambda: pa.array([1.0, None, 2.5]), [1.0, None, 2.5]),
    "bool as number": ("number", lambda: pa.array([True, None]), [True, None]),
    "int as bool": ("bool", lambda: pa.array([1, None]), [1, None]),
    "decimal": (
        "number",
        lambda: pa.array([Decimal("0.50"), None, Decimal("5.00")]),
        [Decimal("0.50"), None, Decimal("5.00")],
    ),
    "decimal256": (
        "number",
        lambda: pa.array([Decimal("1e30"), Decimal(5)], pa.decimal256(40, 2)),
        [Decimal("1e30"), Decimal(5)],
    ),
    "decimal as int": (
        "int",
        lambda: pa.array([Decimal("5.00"), Decimal("0.50")]),
        [Decimal("5.00"), Decimal("0.50")],
    ),
    "dictionary": ("string", lambda: pa.array(WORDS).dictionary_encode(), WORDS),
    "dictionary of ints": ("number", lambda: pa.array(SMALL).dictionary_encode(), SMALL),
    "dictionary of the wrong type": ("number", lambda: pa.array(WORDS).dictionary_encode(), WORDS),
    "dictionary with null inside": (
        "string",
        lambda: pa.DictionaryArray.from_arrays(
            pa.array([0, 1, None, 2]), pa.array(["ab", None, "b"])
        ),
        ["ab", None, None, "b"],
    ),
    "dictionary with values to spare": (
        "string",
        lambda: pa.DictionaryArray.from_arrays(pa.array([1, 1], pa.int8()), pa.array(["x", "ab"])),
        ["ab", "ab"],
    ),
    "sliced dictionary": (
        "string",
        lambda: pa.array(WORDS).dictionary_encode().slice(2),
        WORDS[2:],
    ),
    "large_string": ("string", lambda: pa.array(WORDS, pa.large_string()), WORDS),
    "string_view": ("string", lambda: pa.array(WORDS, pa.string_view()), WORDS),
    "string_view without nulls": (
        "string",
        lambda: pa.array(["ab", "b"], pa.string_view()),
        ["ab", "b"],
    ),
    "string as number": ("number", lambda: pa.array(WORDS), WORDS),
    "string_view as number": ("number", lambda: pa.array(WORDS, pa.string_view()), WORDS),
    "binary": ("string", lambda: pa.array([b"ab", None]), [b"ab", None]),
    "lists": ("number", lambda: pa.array([[1], None, []]), [[1], None, []]),
    "maps": (
        "number",
        lambda: pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
        [[("a", 1)], None],
    ),
    "durations": ("number", lambda: pa.array([5, None], pa.duration("us")), ["five", None]),
    "times": ("timestamp", lambda: pa.array([5, None], pa.time64("us")), ["five", None]),
    "null column": ("number", lambda: pa.nulls(3), [None] * 3),
    "null column of strings": ("string", lambda: pa.nulls(2), [None] * 2),
    "sliced": ("number", lambda: pa.array([9, *SMALL, 9]).slice(1, len(SMALL)), SMALL),
    "sliced strings": ("string", lambda: pa.array(["z", *WORDS, "z"]).slice(1, len(WORDS)), WORDS),
    "chunks": (
        "number",
        lambda: pa.chunked_array([[1, 5], [], [None], [0, 100]]),
        [1, 5, None, 0, 100],
    ),
    "chunks of dictionaries": (
        "string",
        lambda: pa.chunked_array(
            [
                pa.array(["ab", "b"]).dictionary_encode(),
                pa.array(["b", None, "xbx"]).dictionary_encode(),
            ]
        ),
        ["ab", "b", "b", None, "xbx"],
    ),
    "no chunks": ("string", lambda: pa.chunked_array([], pa.string()), []),
    "no rows": ("number", lambda: pa.array([], pa.int64()), []),
    "run ends": (
        "number",
        lambda: pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([5, None])),
        [5, 5, None],
    ),
    "date32": (
        "date",
        lambda: pa.array([date(1970, 1, 1), None, date(1, 1, 1)]),
        [date(1970, 1, 1), None, date(1, 1, 1)],
    ),
    "date64": (
        "date",
        lambda: pa.array([0, 3 * MIDNIGHT, None], pa.date64()),
        [date(1970, 1, 1), date(1970, 1, 4), None],
    ),
    "date64 within the day": (
        "date",
        lambda: pa.array([5, 3 * MIDNIGHT + 7], pa.date64()),
        [date(1970, 1, 1), date(1970, 1, 4)],
    ),
    "dates as timestamps": (
        "timestamp",
        lambda: pa.array([date(1970, 1, 3), None]),
        [date(1970, 1, 3), None],
    ),
    "timestamps as dates": (
        "date",
        lambda: pa.array([datetime(1970, 1, 3), None]),
        [datetime(1970, 1, 3), None],
    ),
    "timestamps as numbers": (
        "number",
        lambda: pa.array([datetime(1970, 1, 3), None]),
        [datetime(1970, 1, 3), None],
    ),
    "nanoseconds as numbers": (
        "number",
        lambda: pa.array([1, None], pa.timestamp("ns")),
        ["1 ns", None],
    ),
    "nanoseconds round down": (
        "timestamp",
        lambda: pa.array([-1, 0, 999, None], pa.timestamp("ns")),
        [
            datetime(1969, 12, 31, 23, 59, 59, 999_999),
            datetime(1970, 1, 1),
            datetime(1970, 1, 1),
            None,
        ],
    ),
    "seconds beyond 64 bits of microseconds": (
        "timestamp",
        lambda: pa.array([2**60, 0, -(2**63), -(2**60)], pa.timestamp("s")),
        ["far", datetime(1970, 1, 1), "far", "far"],
    ),
    "moments nobody can print": (
        "number",
        lambda: pa.array([2**62, None], pa.timestamp("us")),
        ["far", None],
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_column_says_what_its_values_say(name):
    kind, column, values = ODD[name]
    says_what_dicts_say(kind, column(), values)


@pytest.mark.parametrize("unit", TICKS)
@pytest.mark.parametrize("zone", [None, "UTC", "+05:30", "America/New_York"])
def test_timestamps_of_every_unit_and_zone(unit, zone):
    seconds = [0, 86_400, 3 * 86_400, -1, None]
    column = pa.array(
        [None if s is None else s * TICKS[unit] for s in seconds], pa.timestamp(unit, zone)
    )
    moments = [None if s is None else datetime.fromtimestamp(s, UTC) for s in seconds]
    says_what_dicts_say("timestamp", column, moments)


def test_structs_with_nulls_at_every_level():
    m = mw.Matcher()
    texts = ["a.b.c = 1", "a.b.c IS NULL", "a.d = 'x'", "a.d IS NULL", "e > 0"]
    m.add_many((text, text) for text in texts)
    events = [
        {"a": {"b": {"c": 1}, "d": "x"}, "e": 1},
        {"a": {"b": {"c": None}, "d": None}, "e": None},
        {"a": {"b": None, "d": "x"}},
        {"a": None, "e": 1},
        {},
    ]
    inner = pa.struct([("b", pa.struct([("c", pa.int64())])), ("d", pa.string())])
    table = pa.table(
        {
            "a": pa.array([each.get("a") for each in events], inner),
            "e": pa.array([each.get("e") for each in events], pa.int64()),
        }
    )
    expected = [m.match(each) for each in events]
    assert list(m.match_many(table)) == expected
    assert list(m.match_many(table.slice(1, 3))) == expected[1:4]
    assert list(m.match_many(table.slice(1, 1).to_batches()[0])) == expected[1:2]


def test_a_missing_column_is_absent_everywhere():
    m = mw.Matcher(schema={"x": "int", "y": "int"})
    m.add_many([(1, "y IS NULL"), (2, "y IS NULL AND x = 1"), (3, "y > 0")])
    assert list(m.match_many(pa.table({"x": [1, 2]}))) == [[1, 2], [1]]
    assert list(m.match_many(pa.table({"z": [1, 2]}))) == [[1], [1]]


def test_two_columns_for_one_attribute_are_refused():
    m = mw.Matcher(schema={"a.b": "int"})
    m.add(1, "a.b = 1")
    struct = pa.array([{"b": 1}])
    with pytest.raises(mw.EventError, match="found two"):
        m.match_many(pa.table([struct, pa.array([1])], names=["a", "a.b"]))


def test_a_wrong_value_spoils_its_event_alone():
    m = mw.Matcher(schema={"x": "int", "y": "string"})
    m.add_many([(1, "x IS NULL"), (2, "y = 'a'"), (3, "TRUE")])
    found = m.match_many(pa.table({"x": pa.array([None, 1.5, None]), "y": ["a", "a", "b"]}))
    assert list(found) == [[1, 2, 3], [], [1, 3]]
    assert list(found.errors) == [1]


# ── many distinct values ────────────────────────────────────────────────────────────────────────

_NUMBERS = (
    "0.1", "0.5", "5", "-3.25", "0.30000000000000004", "0.1000000000000000055", "7.77", "1e300",
    "-1e300", "99999999999999.9999", "123456789012345678", "-0.0001", "0",
)  # fmt: skip


@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize(
    ("precision", "scale"), [(4, 2), (18, 4), (18, 0), (38, 4), (18, 17), (5, -3)]
)
def test_many_decimals_say_what_dicts_say(precision, scale, is_wide):
    rng = Random(precision + scale)
    m = mw.Matcher(schema={"x": "number"})
    m.add_many([(f"{op} {n}", f"x {op} {n}") for n in _NUMBERS for op in ("=", "<", ">=")])
    m.add("nan", "x = double('NaN') OR x < double('Infinity')")
    units = [rng.randrange(-(10**precision) + 1, 10**precision) for _ in range(60)]
    near = [int(Decimal(n).scaleb(scale)) + d for n in _NUMBERS[:8] for d in (-1, 0, 1)]
    units += [each for each in near if abs(each) < 10**precision]
    if precision > 18:  # of few digits, and those that just have too many for a word
        units += [rng.randrange(-(10**18), 10**18) for _ in range(60)]
        units += [sign * (2**bits + d) for sign in (-1, 1) for bits in (63, 64) for d in (-1, 0, 1)]
        units += [sign * (10**18 + d) for sign in (-1, 1) for d in (-1, 0, 1)]
    values = [Decimal(each).scaleb(-scale) for each in units] + [None]
    rng.shuffle(values)
    kind = pa.decimal256(76, scale) if is_wide else pa.decimal128(precision, scale)
    column = pa.array(values, kind)
    expected = list(m.match_many([{"x": each} for each in values]))
    assert list(m.match_many(pa.table({"x": column}))) == expected
    assert list(m.match_many(pa.table({"x": column.slice(3)}))) == expected[3:]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_many_strings_say_what_dicts_say(kind):
    rng = Random(1)
    letters = "abcß€😀\0 "
    words = ["".join(rng.choices(letters, k=rng.randrange(5))) for _ in range(300)]
    m = mw.Matcher()
    m.add("none", "y = 'a'")
    assert list(m.match_many(pa.table({"x": pa.array(words, kind)}))) == [[]] * len(words)
    for i, word in enumerate(words[:60]):
        if "\0" not in word:
            m.add(i, f"x {('=', '<', '>=')[i % 3]} '{word}'")
    values = [*words, None, ""]
    expected = [m.match({"x": each}) for each in values]
    column = pa.array(values, kind)
    assert list(m.match_many(pa.table({"x": column}))) == expected
    assert list(m.match_many(pa.table({"x": column.slice(7, 200)}))) == expected[7:207]


def test_integers_on_both_sides_of_64_bits_say_what_dicts_say():
    m = mw.Matcher(schema={"x": "number"})
    m.add_many([(n, f"x >= {n}") for n in (5, 2**63 - 1, 2**63, 2**64 - 1)])
    values = [1, 5, 2**63 - 1, 2**63, 2**64 - 1, 7]
    expected = [m.match({"x": each}) for each in values]
    assert list(m.match_many(pa.table({"x": pa.array(values, pa.uint64())}))) == expected


def test_many_integers_beyond_64_bits_say_what_dicts_say():
    rng = Random(1)
    places = [2**63, 2**63 + 1024, 2**64 - 2048, 10**19, 2**64 - 1]
    constants = [str(each + d) for each in places for d in (-1, 0, 1)]
    constants += [
        "1e19",
        "-1e300",
        "1e300",
        "0",
        "-5",
        "10000000000000000000.5",
        "18446744073709550000",
    ]
    m = mw.Matcher(schema={"x": "number"})
    m.add_many([(f"{op} {n}", f"x {op} {n}") for n in constants for op in ("=", "<", ">=")])
    m.add_many([("double", "x <= 9223372036854775808D"), ("infinite", "x < double('Infinity')")])
    values = [each + d for each in places for d in range(-3, 4) if 0 <= each + d < 2**64]
    values += [rng.randrange(2**63, 2**64) for _ in range(60)] + [0, 5, None]
    rng.shuffle(values)
    expected = list(m.match_many([{"x": each} for each in values]))
    column = pa.array(values, pa.uint64())
    assert list(m.match_many(pa.table({"x": column}))) == expected
    assert list(m.match_many(pa.table({"x": column.slice(3)}))) == expected[3:]


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(-5, 5),
    st.floats(allow_nan=False),
    st.sampled_from([2.0**63, -(2.0**63), 2.0**53, 2**53, 2**53 + 1, -0.5, 0.5, 2**62]),
)


@given(st.lists(NUMBERS, max_size=20))
def test_constants_of_numbers_are_the_same_in_a_few_passes(values):
    constants = sorted({float(each): each for each in values if abs(each) < 2**1000}.values())
    quick, slow = plain_ceilings(constants), ceilings(constants)
    if quick is None:
        assert any(type(each) is int and abs(each) >= 2**53 for each in constants)
        return
    for mine, other in zip(quick, slow, strict=True):
        assert mine.dtype == other.dtype
        assert mine.tolist() == other.tolist()
