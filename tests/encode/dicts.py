"""What columns are asked, and how their answers are compared with those of dicts."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

import matchwood as mw

EXPRESSIONS = {
    "bool": ["x", "NOT x", "x IS NULL", "x IS NOT NULL", "x < TRUE"],
    "int": ["x = 5", "x > 1.5", f"x >= {2**53 + 1}", "x IS NULL", f"x = {2**63 - 1}", "x < 0"],
    "float": ["x = 0.5", "x > 1", f"x >= {2**53 + 1}", "x IS NULL", "x = double('NaN')", "x < 0"],
    "number": [
        "x = 5",
        "x > 1.5",
        f"x = {2**53 + 1}",
        "x IS NULL",
        "x = 0.5",
        "x > 1e300",
        "x = double('NaN')",
        f"x < {2**53 + 1}",
        "x < -0.5",
    ],
    "string": [
        "x = 'ab'",
        "x LIKE '%b%'",
        "x LIKE 'a%'",
        "x IS NULL",
        "x NOT LIKE '_b'",
        "x > 'b'",
    ],
    "timestamp": [
        "x > TIMESTAMP '1970-01-02'",
        "x = TIMESTAMP '1970-01-01'",
        "x IS NULL",
        "x < TIMESTAMP '1969-12-31 23:59:59.999999'",
    ],
    "date": [
        "x > DATE '1970-01-02'",
        "x = DATE '1970-01-01'",
        "x IS NULL",
        "x < DATE '1970-01-01'",
    ],
}

HALVES = [0.5, -1.5, None, math.nan, math.inf, 2.0]
WORDS = ["ab", None, "b", "", "xbx", "ab"]


def matcher(kind: str) -> mw.Matcher:
    m = mw.Matcher(schema={"x": kind})
    m.add_many((text, text) for text in EXPRESSIONS[kind])
    assert len(m) == len(EXPRESSIONS[kind])
    return m


def says_what_dicts_say(kind: str, column: Any, values: list[Any]) -> None:
    """A column gives the answers, and the errors, that its values give one by one."""
    m = matcher(kind)
    frame = pa.table({"x": column}) if isinstance(column, (pa.Array, pa.ChunkedArray)) else column
    by_column, by_dict = m.match_many(frame), m.match_many([{"x": value} for value in values])
    assert list(by_column) == list(by_dict)
    assert sorted(by_column.errors) == sorted(by_dict.errors)
    for error in by_column.errors.values():
        assert f"'x': expected {kind}" in str(error)
