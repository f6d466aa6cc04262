"""Generated calls of every function, over one small table whose columns have all types."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

COLUMNS: dict[str, pa.DataType] = {
    "i": pa.int64(), "j": pa.int64(), "x": pa.float64(), "y": pa.float64(),
    "c": pa.decimal128(10, 2), "s": pa.string(), "t": pa.string(), "b": pa.bool_(), "p": pa.bool_(),
    "d": pa.date32(), "e": pa.date32(), "ts": pa.timestamp("us", "UTC"),
    "tags": pa.list_(pa.string()), "nums": pa.list_(pa.int64()),
    "m": pa.map_(pa.string(), pa.int64()),
}  # fmt: skip
INTS = [
    0,
    1,
    -1,
    2,
    3,
    7,
    10,
    -12,
    99,
    1000,
    2**31,
    -(2**31),
    2**40,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
]
FLOATS = [0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 1e-7, 3.14159, 1e10, -1e18, 1e300]
FLOATS += [math.nan, math.inf, -math.inf]
DECIMALS = [
    Decimal(text) for text in ("0.00", "1.00", "-1.50", "2.50", "0.01", "19.99", "12345.67")
]
STRINGS = [
    "",
    " ",
    "a",
    "A",
    "ab",
    "abc",
    " ab ",
    "aXb",
    "é",
    "É",
    "ß",
    "😀a",
    "日本語",
    "a\nb",
    "a%",
]
STRINGS += [
    "12",
    " 7 ",
    "-3",
    "1.5",
    "1e3",
    "true",
    "NO",
    "2024-02-29",
    "2024-02-29 12:30:00",
    "x1y22",
]
DATES = [
    date(2024, 2, 29),
    date(2023, 12, 31),
    date(1970, 1, 1),
    date(1999, 5, 17),
    date(2024, 1, 31),
]
MOMENTS = [
    datetime(2024, 2, 29, 12, 30, 15, 123456),
    datetime(1970, 1, 1),
    datetime(1969, 12, 31, 23),
]
MOMENTS += [datetime(2023, 12, 31, 23, 59, 59, 999999), datetime(2000, 1, 1, 0, 0, 1)]
LISTS = [[], ["a"], ["a", "b"], ["b", None], [None], ["abc", "a", "é"]]
NUMBER_LISTS = [[], [1], [1, 2, 3], [3, None, 1], [None], [10, -1]]
MAPS = [{}, {"a": 1}, {"a": 1, "b": None}, {"b": -3, "é": 2**40, "": 7}, {"abc": 0}]
POOLS: dict[str, list[Any]] = {
    "i": INTS, "j": INTS[:9], "x": FLOATS, "y": FLOATS[:9], "c": DECIMALS, "s": STRINGS, "t": STRINGS,  # noqa: E501
    "b": [True, False], "p": [True, False], "d": DATES, "e": DATES,
    "ts": [each.replace(tzinfo=UTC) for each in MOMENTS], "tags": LISTS, "nums": NUMBER_LISTS,
    "m": MAPS,
}  # fmt: skip


def events(rng: Random, n: int) -> list[dict[str, Any]]:
    """Rows of the table; a tenth of the values are NULL."""
    return [
        {name: None if rng.random() < 0.1 else rng.choice(pool) for name, pool in POOLS.items()}
        for _ in range(n)
    ]


class Calls:
    """Makes texts of calls; each method gives a text of one type.

    nesting  how often an argument is a call itself, from 0 to 1
    """

    def __init__(self, rng: Random, nesting: float = 0) -> None:
        self.rng = rng
        self.nesting = nesting
        self._depth = 0

    def pick(self, *texts: str) -> str:
        return self.rng.choice(texts)

    def nested(self, kind: str) -> str | None:
        """A call that gives a type, or None if the argument shall be none."""
        if self._depth >= 3 or self.rng.random() >= self.nesting:
            return None
        self._depth += 1
        text = CALLS[self.rng.choice(GIVES[kind].split())](self)
        self._depth -= 1
        return f"({text})"

    def small(self) -> str:
        return str(self.rng.randrange(-4, 9))

    def integer(self) -> str:
        return self.nested("integer") or self.pick(
            "i", "j", "j", "length(s)", "size(nums)", self.small(), "year(d)", "j"
        )

    def double(self) -> str:
        return self.nested("double") or self.pick("x", "y", "y", "2.5D", "0.1D", "sqrt(y)")

    def decimal(self) -> str:
        return self.pick("c", "1.5", "0.25", "c + 1", "100.01")

    def number(self) -> str:
        nested = self.nested("number")
        return nested or self.pick(self.integer(), self.double(), self.decimal())

    def string(self) -> str:
        return self.nested("string") or self.pick(
            "s", "t", "s", "'a'", "' ab '", "upper(s)", "concat(s, t)", "'é'"
        )

    def boolean(self) -> str:
        return self.nested("boolean") or self.pick(
            "b", "p", f"{self.number()} > 1", "s = t", "d < e", "isnull(s)", "startswith(s, 'a')"
        )

    def day(self) -> str:
        nested = self.nested("day")
        return nested or self.pick("d", "e", "DATE '2024-03-31'", "date_add(d, 3)")

    def days(self) -> str:
        n = self.rng.randrange(-70, 70)
        return self.pick(f"INTERVAL {n} DAY", f"INTERVAL '{n}' DAYS", f"INTERVAL -'{n}' day",
                         f"INTERVAL {n} weeks", "INTERVAL '30 days'")  # fmt: skip

    def interval(self) -> str:
        """Days and times; `days` alone are another type."""
        n, hour, minute = (self.rng.randrange(most) for most in (800, 24, 60))
        sign = self.pick("", "-")
        return self.pick(
            f"INTERVAL {sign}{n} HOURS", f"INTERVAL '{sign}{n}' MINUTE",
            f"INTERVAL {sign}{n}.5 SECOND",
            f"INTERVAL {sign}{n} day {hour} hours",
            f"INTERVAL {n} millisecond {sign}{hour} minutes",
            f"INTERVAL '{sign}{n} {hour}:{minute:02d}:04.25' DAY TO SECOND",
            f"INTERVAL '{sign}{n}:{minute}' HOUR TO MINUTE", f"INTERVAL '{n} day {minute} seconds'",
            f"INTERVAL {sign}'{n} {hour:02d}' DAY TO HOUR", self.days(),
            f"(INTERVAL {n} DAY - INTERVAL {hour} HOUR)",
            f"- INTERVAL '{n}:{minute}.000001' MINUTE TO SECOND",
        )  # fmt: skip

    def months(self) -> str:
        n, month = self.rng.randrange(30), self.rng.randrange(12)
        sign = self.pick("", "-")
        return self.pick(
            f"INTERVAL {sign}{n} MONTHS", f"INTERVAL '{sign}{n}' YEAR", f"INTERVAL '{month} month'",
            f"INTERVAL '{sign}{n}-{month}' YEAR TO MONTH",
            f"INTERVAL {n} years {sign}{month} months",
        )  # fmt: skip

    def moment(self) -> str:
        return self.nested("moment") or self.pick(
            "ts", "ts", "TIMESTAMP '2024-01-01 05:06:07.5Z'", "cast(d AS timestamp)"
        )


def _type_pair(c: Calls) -> tuple[str, str]:
    maker = c.rng.choice((c.integer, c.double, c.string, c.day, c.boolean))
    return maker(), maker()


def _compare(op: str) -> Callable[[Calls], str]:
    def call(c: Calls) -> str:
        left, right = _type_pair(c)
        return f"({left}) {op} ({right})"

    return call


def _case(c: Calls) -> str:
    a, b = _type_pair(c)
    return f"CASE WHEN {c.boolean()} THEN {a} WHEN {c.boolean()} THEN {b} END"


def _cast(c: Calls) -> str:
    source, kinds = c.rng.choice((
        (c.integer, "int bigint double string boolean decimal(12,3)"),
        (c.double, "int bigint double boolean decimal(30,4)"),
        (c.decimal, "int bigint double string boolean decimal(9,1)"),
        (c.string, "int bigint double string boolean decimal(10,2) date timestamp"),
        (c.day, "string date timestamp"),
        (c.moment, "string date timestamp"),
        (c.boolean, "int bigint double string boolean"),
    ))  # fmt: skip
    word = c.pick("cast", "try_cast")
    return f"{word}({source()} AS {c.rng.choice(kinds.split())})"


PATTERNS = ["a%", "%a%", "_b", "%", "", "a_b", "A%", "%b", "é%"]
REGEXES = [
    "a",
    "^a",
    "b$",
    "^a.*b$",
    "[a-c]+",
    "(a|b)c?",
    r"\\d+",
    r"^\\w{1,3}$",
    "a{2}",
    "[^a]",
    ".",
]
REGEXES += ["(?i)AB", "^$", "x[0-9]?y+", r"\\s", "^(ab|a)(c|bcd)?$", "(a*)*b"]

CALLS: dict[str, Callable[[Calls], str]] = {
    **{op: _compare(op) for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")},
    "+": lambda c: f"{c.number()} + {c.number()}",
    "-": lambda c: f"{c.number()} - {c.number()}",
    "*": lambda c: f"{c.number()} * {c.number()}",
    "/": lambda c: f"{c.pick(c.integer(), c.double())} / {c.pick(c.integer(), c.double(), '1.5')}",
    "%": lambda c: f"{c.pick(c.integer(), c.double())} % {c.pick(c.integer(), c.double(), '1.5')}",
    "div": lambda c: f"{c.integer()} DIV {c.integer()}",
    "||": lambda c: f"{c.string()} || {c.pick(c.string(), c.integer(), 'b')}",
    "[]": lambda c: c.pick("nums[0]", "tags[0]", "m['a']", "m['b']",
                           f"array(i, j)[{c.pick('0', '1', '2')}]",
                           "array(s, 'a')[0]", "array(x, 1.5D)[1]", "array(d, e)[0]"),
    "and": lambda c: f"{c.boolean()} AND {c.boolean()}",
    "or": lambda c: f"({c.boolean()} OR {c.boolean()})",
    "not": lambda c: f"NOT ({c.boolean()})",
    "case": _case,
    "cast": _cast,
    "in": lambda c: f"{c.integer()} IN ({c.integer()}, {c.small()}, {c.pick('NULL', '3')})",
    "negative": lambda c: f"negative({c.number()})",
    "positive": lambda c: f"positive({c.number()})",
    "abs": lambda c: f"abs({c.number()})",
    "floor": lambda c: f"floor({c.number()})",
    "ceil": lambda c: f"ceil({c.number()})",
    "round": lambda c: f"round({c.number()}, {c.rng.randrange(-2, 4)})",
    "sqrt": lambda c: f"sqrt({c.number()})",
    "sign": lambda c: f"sign({c.number()})",
    "isnan": lambda c: f"isnan({c.double()})",
    "greatest": lambda c: f"greatest({', '.join(_type_pair(c))})",
    "least": lambda c: f"least({', '.join(_type_pair(c))})",
    "lower": lambda c: f"lower({c.string()})",
    "upper": lambda c: f"upper({c.string()})",
    "length": lambda c: f"length({c.string()})",
    "trim": lambda c: f"trim({c.string()})",
    "ltrim": lambda c: f"ltrim({c.string()})",
    "rtrim": lambda c: f"rtrim({c.string()})",
    "substr": lambda c: f"substr({c.string()}, {c.small()}, {c.small()})",
    "left": lambda c: f"left({c.string()}, {c.small()})",
    "right": lambda c: f"right({c.string()}, {c.small()})",
    "concat": lambda c: f"concat({c.string()}, {c.pick(c.string(), c.integer(), 'b', 'd')})",
    "replace": lambda c: f"replace({c.string()}, {c.string()}, {c.string()})",
    "translate": lambda c: f"translate({c.string()}, {c.string()}, {c.string()})",
    "startswith": lambda c: f"startswith({c.string()}, {c.string()})",
    "endswith": lambda c: f"endswith({c.string()}, {c.string()})",
    "contains": lambda c: f"contains({c.string()}, {c.string()})",
    "instr": lambda c: f"instr({c.string()}, {c.string()})",
    "locate": lambda c: f"locate({c.string()}, {c.string()})",
    "lpad": lambda c: f"lpad({c.string()}, {c.small()}, {c.string()})",
    "rpad": lambda c: f"rpad({c.string()}, {c.small()}, {c.string()})",
    "repeat": lambda c: f"repeat({c.string()}, {c.small()})",
    "reverse": lambda c: f"reverse({c.pick(c.string(), 'tags', 'nums')})",
    "like": lambda c: f"{c.pick('s', 't')} LIKE '{c.rng.choice(PATTERNS)}'",
    "rlike": lambda c: f"{c.pick('s', 't')} RLIKE '{c.rng.choice(REGEXES)}'",
    "year": lambda c: f"year({c.pick(c.day(), c.moment())})",
    "quarter": lambda c: f"quarter({c.pick(c.day(), c.moment())})",
    "month": lambda c: f"month({c.pick(c.day(), c.moment())})",
    "day": lambda c: f"day({c.pick(c.day(), c.moment())})",
    "dayofweek": lambda c: f"dayofweek({c.pick(c.day(), c.moment())})",
    "weekday": lambda c: f"weekday({c.pick(c.day(), c.moment())})",
    "dayofyear": lambda c: f"dayofyear({c.pick(c.day(), c.moment())})",
    "weekofyear": lambda c: f"weekofyear({c.pick(c.day(), c.moment())})",
    "hour": lambda c: f"hour({c.moment()})",
    "minute": lambda c: f"minute({c.moment()})",
    "second": lambda c: f"second({c.moment()})",
    "date_add": lambda c: f"date_add({c.pick(c.day(), c.moment())}, {c.small()})",
    "date_sub": lambda c: f"date_sub({c.day()}, {c.small()})",
    "datediff": lambda c: f"datediff({c.day()}, {c.pick(c.day(), c.moment())})",
    "add_months": lambda c: f"add_months({c.day()}, {c.small()})",
    "last_day": lambda c: f"last_day({c.day()})",
    "make_date": lambda c: f"make_date(20{c.rng.randrange(10, 30)}, length(s) + {c.small()}, 29)",
    "trunc": lambda c: f"trunc({c.day()}, '{c.pick('year', 'MM', 'quarter', 'WEEK', 'mon', 'no')}')",  # noqa: E501
    "date_trunc": lambda c: f"date_trunc('{c.rng.choice(TRUNCS)}', {c.moment()})",
    "to_date": lambda c: f"to_date({c.pick(c.day(), c.moment())})",
    "unix_seconds": lambda c: f"unix_seconds({c.moment()})",
    "coalesce": lambda c: f"coalesce({', '.join(_type_pair(c))})",
    "nullif": lambda c: f"nullif({', '.join(_type_pair(c))})",
    "if": lambda c: f"if({c.boolean()}, {', '.join(_type_pair(c))})",
    "nvl2": lambda c: f"nvl2({c.pick('s', 'i', 'd')}, {', '.join(_type_pair(c))})",
    "isnull": lambda c: f"isnull({c.number()})",
    "array_contains": lambda c: c.pick(
        f"array_contains(tags, {c.string()})", f"array_contains(nums, {c.integer()})"
    ),
    "arrays_overlap": lambda c: c.pick(
        f"arrays_overlap(tags, array({c.string()}, {c.string()}))",
        f"arrays_overlap(nums, array({c.integer()}, {c.small()}))",
    ),
    "size": lambda c: c.pick("size(tags)", "size(nums)", "size(m)", f"size(array({c.number()}))"),
    "array_size": lambda c: c.pick("array_size(tags)", "array_size(nums)"),
    "array": lambda c: c.pick(
        f"array({c.integer()}, {c.integer()})", f"tags = array({c.string()}, {c.string()})",
        f"nums < array({c.integer()})",
    ),
    "element_at": lambda c: c.pick("element_at(nums, 1)", "element_at(tags, -1)",
                                   "element_at(m, 'b')",
                                   f"element_at(array(i, j, 3), {c.pick('1', '2', '-1', '-3', '4')})",  # noqa: E501
                                   "element_at(array(s, t), 2)"),
    "map_contains_key": lambda c: f"map_contains_key(m, {c.pick(c.string(), 's', 't')})",
    "array_min": lambda c: c.pick("array_min(nums)", "array_min(tags)"),
    "array_max": lambda c: c.pick("array_max(nums)", "array_max(tags)"),
    "exists": lambda c: c.pick(f"exists(nums, v -> v > {c.small()})", "exists(tags, v -> v = s)"),
    "moment+interval": lambda c: c.pick(
        f"{c.moment()} {c.pick('+', '-')} {c.pick(c.interval(), c.months())}",
        f"{c.interval()} + {c.moment()}", f"{c.moment()} + j * {c.interval()}",
    ),
    "day+interval": lambda c: c.pick(
        f"{c.day()} {c.pick('+', '-')} {c.pick(c.interval(), c.days(), c.months())}",
        f"{c.pick(c.interval(), c.days(), c.months())} + {c.day()}",
        f"{c.day()} {c.pick('+', '-')} {c.small()}",
    ),
    "text+interval": lambda c: c.pick(
        f"'{c.rng.choice(MOMENT_TEXTS)}' {c.pick('+', '-')} {c.interval()} < {c.moment()}",
        f"cast({c.pick('d', 'ts')} AS string) {c.pick('+', '-')} {c.interval()}",
    ),
    "moment-moment": lambda c: c.pick(
        f"{c.moment()} - {c.pick(c.moment(), c.day())}", f"{c.day()} - {c.pick(c.moment(), c.day())}",  # noqa: E501
        f"{c.interval()} {c.pick('+', '-')} {c.interval()}",
        f"{c.moment()} - '{c.rng.choice(MOMENT_TEXTS)}'", f"- ({c.moment()} - {c.moment()})",
        f"abs({c.moment()} - {c.moment()})", f"coalesce({c.day()} - {c.day()}, {c.interval()})",
    ),
    "interval<interval": lambda c: c.pick(
        f"{c.moment()} - {c.moment()} {c.pick('<', '=', '>=', '<=>')} {c.interval()}",
        f"{c.day()} - {c.day()} {c.pick('<', '=', '<>')} {c.pick(c.interval(), c.days())}",
        f"{c.moment()} - {c.moment()} BETWEEN {c.interval()} AND {c.days()}",
        f"{c.months()} > CASE WHEN {c.boolean()} THEN {c.months()} ELSE {c.months()} * j END",
        f"greatest({c.months()}, {c.months()}) = if({c.boolean()}, {c.months()}, {c.months()})",
        f"{c.day()} - {c.day()} IN ({c.days()}, {c.interval()})",
    ),
    "forall": lambda c: c.pick(f"forall(nums, v -> v > {c.small()})", "forall(tags, v -> v < s)"),
}  # fmt: skip
"""A call of each function, and of each operator."""
MOMENT_TEXTS = ["2024-02-29", "2024-02-29 12:30:00", "2023-12-31T23:59:59.999Z", "2024-01-31 1:2:3"]
TRUNCS = ["YEAR", "quarter", "MONTH", "week", "DD", "HOUR", "minute", "SECOND", "MILLISECOND", "no"]
GIVES = {
    "integer": "length instr locate year month day dayofweek weekday dayofyear weekofyear hour "
    "minute datediff unix_seconds size array_size quarter div",
    "double": "sqrt sign",
    "number": "+ - * negative positive abs floor ceil",
    "string": "lower upper trim ltrim rtrim substr left right concat replace translate lpad rpad "
    "repeat ||",
    "boolean": "= <> < <= > >= <=> and or not in like rlike isnan isnull startswith endswith "
    "contains array_contains arrays_overlap exists forall map_contains_key",
    "day": "date_add date_sub add_months last_day trunc to_date",
    "moment": "date_trunc moment+interval",
}
"""Calls by the type that they give."""
