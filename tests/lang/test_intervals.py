"""Intervals: how they are written, what they are added to, and that a matcher answers with them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood as mw
from matchwood.errors import ParseError
from matchwood.lang.general import read_scalar
from matchwood.lang.intervals import FIELDS, MICROSECONDS, MONTHS, Interval, Span
from matchwood.lang.lower import settled
from matchwood.lang.scalars import Lit

SIZES = {"YEAR": 12, "MONTH": 1, "DAY": 86_400, "HOUR": 3_600, "MINUTE": 60, "SECOND": 1}


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    kind = draw(st.sampled_from((MONTHS, MICROSECONDS)))
    last = draw(st.integers(0, len(FIELDS[kind]) - 1))
    span = Span(kind, draw(st.integers(0, last)), last)
    size = SIZES[FIELDS[kind][last]]
    if kind == MONTHS:
        return Interval(size * draw(st.integers(-(2**30) // size, 2**30 // size)), span)
    if FIELDS[kind][last] == "SECOND":
        return Interval(draw(st.integers(1 - 2**63, 2**63 - 1)), span)
    size *= 1_000_000
    return Interval(size * draw(st.integers((1 - 2**63) // size + 1, (2**63 - 1) // size)), span)


@given(value=intervals())
def test_the_text_of_an_interval_reads_as_the_same_one_of_the_same_type(value):
    found = read_scalar(str(value))
    assert isinstance(found, Lit)
    assert found.value == value
    assert found.value.type == value.type


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("ts > TIMESTAMP '2026-02-01' - INTERVAL 1 DAY", "ts > TIMESTAMP '2026-01-31 00:00:00Z'"),
        ("d > DATE '2024-01-31' + INTERVAL 1 MONTH", "d > DATE '2024-02-29'"),
        ("d > DATE '2024-01-31' + INTERVAL 1 HOUR", "d > TIMESTAMP '2024-01-31 01:00:00Z'"),
        ("d + INTERVAL 3 MONTHS >= DATE '2026-01-01'",
         "d + INTERVAL '3' MONTH >= DATE '2026-01-01'"),
        ("ts - INTERVAL 1 day -2 hours > b", "ts - INTERVAL '0 22' DAY TO HOUR > b"),
        ("ts - INTERVAL '1 day 2 hours' > b", "ts - INTERVAL '1 02' DAY TO HOUR > b"),
        ("ts - INTERVAL 1 week > b", "ts - INTERVAL '7' DAY > b"),
        ("- INTERVAL 1 DAY + d > b", "INTERVAL '-1' DAY + d > b"),
        ("b - a BETWEEN INTERVAL 1 HOUR AND INTERVAL '1 02:03:04' DAY TO SECOND",
         "b - a >= INTERVAL '1' HOUR AND b - a <= INTERVAL '1 02:03:04' DAY TO SECOND"),
        ("b - a IN (INTERVAL 1 DAY, INTERVAL 25 HOURS)",
         "b - a IN (INTERVAL '1' DAY, INTERVAL '25' HOUR)"),
        ("INTERVAL 1 DAY = INTERVAL 24 HOURS", "TRUE"),
        ("interval > 3", "interval > 3"),
        ("interval - 1 > 3", "interval - 1 > 3"),
        ("interval -1 > 3", "interval - 1 > 3"),
    ],
)  # fmt: skip
def test_an_expression_with_intervals_is_printed_and_reads_back(text, printed):
    assert str(mw.parse(text)) == printed
    assert mw.parse(printed) == mw.parse(text)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("DATE '2024-01-31' + INTERVAL 1 DAY", date),
        ("DATE '2024-01-31' + INTERVAL '1 00' DAY TO HOUR", datetime),
        ("INTERVAL 1 MONTH + DATE '2024-01-31'", date),
        ("DATE '2024-01-31' + greatest(INTERVAL 1 DAY, INTERVAL 1 HOUR)", datetime),
        ("DATE '2024-01-31' + 2 * INTERVAL 1 DAY", datetime),
        ("TIMESTAMP '2024-01-31' - INTERVAL 1 YEAR", datetime),
        ("'2024-01-31' + INTERVAL 1 HOUR", str),
    ],
)
def test_the_fields_of_an_interval_tell_the_type_of_the_sum(text, type_):
    found = settled(read_scalar(text))
    assert isinstance(found, Lit)
    assert type(found.value) is type_


HOUR = datetime(2026, 2, 1, 9, 30, tzinfo=UTC)
TEXTS = [
    "sent + INTERVAL '2' HOUR < TIMESTAMP '2026-02-01 12:00:00Z'",
    "sent + INTERVAL 2 HOURS < read",
    "read - sent > INTERVAL '1' HOUR",
    "NOT read - sent > INTERVAL '1' HOUR",
    "read - sent IS NULL",
    "day + INTERVAL 1 MONTH = DATE '2026-02-28'",
    "day + 1 = DATE '2026-02-01'",
    "read BETWEEN sent AND sent + INTERVAL 1 DAY",
]
EVENTS: list[dict[str, Any]] = [
    {"sent": HOUR, "read": HOUR + timedelta(hours=3), "day": date(2026, 1, 31)},
    {"sent": HOUR, "read": HOUR + timedelta(hours=1), "day": date(2026, 1, 28)},
    {"sent": HOUR + timedelta(days=9), "read": None, "day": None},
    {"sent": None, "read": HOUR, "day": date(2026, 2, 1)},
]
EXPECTED = [
    [TEXTS[i] for i in found]
    for found in ([0, 1, 2, 5, 6, 7], [0, 3, 5, 7], [4], [4])
]  # fmt: skip


def matcher(**options: Any) -> mw.Matcher:
    m = mw.Matcher(**options)
    for text in TEXTS:
        m.add(text, text)
    return m


@pytest.mark.parametrize("index", ["auto", "scan", "be_tree", "a_tree"])
def test_a_matcher_adds_intervals_in_every_way_that_events_come(index, tmp_path):
    m = matcher(index=index)
    table = pa.Table.from_pylist(EVENTS)
    for _ in range(2):
        assert [m.match(each) for each in EVENTS] == EXPECTED
        assert m.match_many(EVENTS * 40).to_pylist() == EXPECTED * 40
        assert m.match_many(table).to_pylist() == EXPECTED
    for event, found in zip(EVENTS, EXPECTED, strict=True):
        for text in TEXTS:
            assert m.explain(text, event).matches == (text in found)
    m.save(tmp_path / "s")
    assert [mw.Matcher.load(tmp_path / "s").match(each) for each in EVENTS] == EXPECTED


def test_texts_of_times_are_moved_and_their_difference_takes_casts():
    m = matcher()
    m.add("cast", "cast(read AS timestamp) - cast(sent AS timestamp) > INTERVAL 1 HOUR")
    event = {"sent": "2026-02-01T09:30:00Z", "read": "2026-02-01 12:30:00", "day": "2026-01-31"}
    expected = [TEXTS[0], TEXTS[1], "cast"]
    for _ in range(2):
        assert m.match(event) == expected
        assert m.match_json(json.dumps(event)) == expected
    assert m.stats()["unknown"]["read - sent > INTERVAL '1' HOUR"] > 0
    assert m.match({"sent": "soon"}) == []  # as Spark's cast, it fails
    found = m.match_many([{"sent": "soon"}])
    assert "'soon'" in str(found.warnings[0][0])


@pytest.mark.parametrize(
    "event",
    [{"sent": 5, "read": 7}, {"sent": True}, {"sent": timedelta(hours=1)}, {"sent": ["x"]},
     {"sent": datetime(9999, 12, 31, 23, tzinfo=UTC)}],
)  # fmt: skip
def test_values_that_cannot_be_moved_leave_it_unknown(event):
    m = mw.Matcher()
    m.add(1, "sent + INTERVAL 2 HOURS < TIMESTAMP '2026-02-01'")
    m.add(2, "NOT sent + INTERVAL 2 HOURS < TIMESTAMP '2026-02-01'")
    m.add(3, "read - sent > 1")
    assert m.match(event) == ([3] if "read" in event else [])


@pytest.mark.parametrize(
    "text",
    ["x > INTERVAL 1 YEAR 2 DAYS", "x > INTERVAL '1-12' YEAR TO MONTH", "x + INTERVAL 1 > y",
     "x > INTERVAL '1 24:00:00' DAY TO SECOND", "x > INTERVAL '1 02:03' DAY TO SECOND",
     "x > INTERVAL '1 02:03:04' DAYS TO SECOND", "x > INTERVAL '14' QUARTER", "INTERVAL 1 DAY",
     "INTERVAL 1 HOUR - TIMESTAMP '2026-01-01' > x", "x < ctx.y + INTERVAL 1 DAY",
     "DATE '2026-01-01' + 1.5 > x", "INTERVAL 1 DAY + INTERVAL 1 MONTH > x",
     "cast(INTERVAL 1 DAY AS string) = x", "x > INTERVAL '' DAY", "x > INTERVAL ''"],
)  # fmt: skip
def test_what_spark_refuses_or_is_not_taken_is_refused(text):
    with pytest.raises(ParseError):
        mw.parse(text)
