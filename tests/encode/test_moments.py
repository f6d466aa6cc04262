"""Dates and timestamps in every unit: the order of the moments is kept, or the event is refused.

Moments finer than a microsecond are rounded down, as Spark does; what 64 bits of microseconds
cannot hold is an EventError of that event alone.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import matchwood as mw

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CONSTANTS = ["0001-01-01", "1969-12-31 23:59:59.999999", "1970-01-01", "2024-01-01", "9999-12-31"]
OPS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "=": lambda a, b: a == b,
    ">": lambda a, b: a > b,
}
DAY = 86_400_000_000
PER_TICK = {"s": 10**6, "ms": 10**3, "us": 1}
INT64 = st.integers(-(2**63), 2**63 - 1)
WIDE = st.one_of(INT64, st.integers(-(10**6), 10**6), st.sampled_from([2**63 - 1, -(2**63)]))


def moment(text: str) -> int:
    found = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return (found - EPOCH) // timedelta(microseconds=1)


def matcher() -> mw.Matcher:
    m = mw.Matcher(schema={"t": "timestamp"})
    for text in CONSTANTS:
        for op in OPS:
            m.add(f"{op} {text}", f"t {op} TIMESTAMP '{text}'")
    return m


MATCHER = matcher()


def expected(microseconds: int) -> list[str] | None:
    """The subscriptions that hold; None where the moment does not fit."""
    if not -(2**63) <= microseconds < 2**63:
        return None
    return [
        f"{op} {text}"
        for text in CONSTANTS
        for op, holds in OPS.items()
        if holds(microseconds, moment(text))
    ]


def check(events: Any, microseconds: list[int]) -> None:
    found = MATCHER.match_many(events)
    wanted = [expected(each) for each in microseconds]
    assert list(found) == [each or [] for each in wanted]
    assert set(found.errors) == {row for row, each in enumerate(wanted) if each is None}
    for error in found.errors.values():
        assert "'t': expected timestamp" in str(error)


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=5))
@example([110_000_000, 0, -110_000_000, 106_751_991, 106_751_992, 2**31 - 1, -(2**31)])
def test_days_of_date32_keep_their_order_or_are_refused(days):
    check(pa.table({"t": pa.array(days, pa.date32())}), [day * DAY for day in days])


@given(st.lists(WIDE, min_size=1, max_size=5))
@example([2**63 - 1, -(2**63), 0, 86_400_000])
def test_milliseconds_of_date64_are_their_day_or_are_refused(ticks):
    days = [tick // 86_400_000 for tick in ticks]
    check(pa.table({"t": pa.array(ticks, pa.date64())}), [day * DAY for day in days])


@pytest.mark.parametrize("zone", [None, "UTC", "-08:00", "Asia/Tokyo"])
@pytest.mark.parametrize("unit", [*PER_TICK, "ns"])
@given(ticks=st.lists(WIDE, min_size=1, max_size=5))
@example(ticks=[2**63 - 1, -(2**63), 0, -1, 1, 999, 1000, -999, -1000, -1001])
def test_timestamps_of_every_unit_keep_their_order_or_are_refused(unit, zone, ticks):
    column = pa.array(ticks, pa.timestamp(unit, zone))
    exact = [tick // 1000 if unit == "ns" else tick * PER_TICK[unit] for tick in ticks]
    check(pa.table({"t": column}), exact)


NUMPY = {"as": -12, "fs": -9, "ps": -6, "ns": -3, "us": 0, "ms": 3, "s": 6}
SECONDS = {"m": 60, "h": 3600, "D": 86_400, "W": 604_800}


@pytest.mark.parametrize("unit", [*NUMPY, *SECONDS])
@given(ticks=st.lists(WIDE.filter(lambda each: each != -(2**63)), min_size=1, max_size=5))
def test_numpy_moments_of_every_unit_keep_their_order_or_are_refused(unit, ticks):
    if unit in SECONDS:
        exact = [tick * SECONDS[unit] * 10**6 for tick in ticks]
    else:
        power = NUMPY[unit]
        exact = [tick * 10**power if power >= 0 else tick // 10**-power for tick in ticks]
    check([{"t": np.datetime64(tick, unit)} for tick in ticks], exact)


@pytest.mark.parametrize("unit", ["Y", "M"])
def test_numpy_years_and_months_are_their_first_day(unit):
    texts = ["0001", "1969", "1970", "2024", "9999"]
    days = [date(int(text), 1, 1).toordinal() - date(1970, 1, 1).toordinal() for text in texts]
    events = [{"t": np.datetime64(text, unit)} for text in texts]
    check(events, [day * DAY for day in days])
    check([{"t": np.datetime64(2**62, unit)}], [2**70])


def test_nanoseconds_are_rounded_down_everywhere_alike():
    exact = [999, 1000, 1001, 1999, -1, -1000, -1001]
    wanted = [each // 1000 for each in exact]
    check([{"t": np.datetime64(each, "ns")} for each in exact], wanted)
    check([{"t": pd.Timestamp(each)} for each in exact], wanted)
    check(pa.table({"t": pa.array(exact, pa.timestamp("ns"))}), wanted)
    check(pd.DataFrame({"t": np.array(exact, "datetime64[ns]")}), wanted)


WITHOUT_PANDAS = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pandas":
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
import pyarrow as pa
import matchwood as mw
m = mw.Matcher()
m.add("past", "unix_seconds(t) = -1")
m.add("equal", "coalesce(t, u) = TIMESTAMP '1970-01-01 00:00:00.000001'")
m.add("listed", "array_contains(l, TIMESTAMP '1970-01-01 00:00:00.000001')")
ticks = [-1, 1999, None, 1000]
lists = pa.array([[1], [None, 1999], None, [1000]], pa.list_(pa.timestamp("ns", "UTC")))
table = pa.table({"t": pa.array(ticks, pa.timestamp("ns")), "l": lists})
found = m.match_many(table)
assert not found.warnings and not found.errors, (found.warnings, found.errors)
both = ["equal", "listed"]
assert found.to_pylist() == [["past"], both, [], both], found.to_pylist()
"""


def test_computed_attributes_have_nanoseconds_rounded_down_without_pandas_too():
    done = subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_datetimes_at_the_limits_of_python():
    far_east, far_west = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))
    first, last = datetime.min, datetime.max
    offset = 3600 * 10**6
    events = [first, last, first.replace(tzinfo=far_east), last.replace(tzinfo=far_west)]
    low, high = moment("0001-01-01"), moment("9999-12-31 23:59:59.999999")
    wanted = [low, high, low - 14 * offset, high + 12 * offset]
    check([{"t": each} for each in events], wanted)
    midnight = moment("9999-12-31")
    check([{"t": date.min}, {"t": date.max}], [low, midnight])


def test_dates_beyond_python_keep_their_order():
    m = mw.Matcher(schema={"d": "date"})
    m.add("before", "d < DATE '2024-01-01'")
    m.add("after", "d > DATE '2024-01-01'")
    days = [110_000_000, -110_000_000]
    wanted = [["after"], ["before"]]
    assert list(m.match_many(pa.table({"d": pa.array(days, pa.date32())}))) == wanted
    assert list(m.match_many([{"d": np.datetime64(day, "D")} for day in days])) == wanted
