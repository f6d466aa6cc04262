r"""Texts in every spelling the language has, and events that tell them apart."""

from __future__ import annotations

from datetime import UTC, date, datetime

COLUMNS = {
    "i": "int",
    "f": "float",
    "s": "string",
    "b": "bool",
    "c": "bool",
    "t": "timestamp",
    "d": "date",
    "user.age": "int",
    "odd name": "int",
}
EVENTS = [
    {"i": 5, "f": 0.5, "s": "abc", "b": True, "c": False, "user.age": 30, "odd name": 1},
    {"i": -5, "f": 1e3, "s": "a'b", "b": False, "c": True, "t": datetime(2024, 2, 29, tzinfo=UTC)},
    {"i": 0, "f": 0.1, "s": "a\\b", "b": True, "c": True, "d": date(2024, 2, 29), "user.age": 18},
    {"i": 1, "f": -0.0, "s": "a%b", "c": False, "t": datetime(2024, 2, 29, 12, 30, 0, 5, UTC)},
    {"i": 2**53 + 1, "f": float("nan"), "s": "A\tb", "b": False, "d": date(1970, 1, 1)},
    {"i": 127, "f": 5.0, "s": "é", "t": datetime(1970, 1, 1, tzinfo=UTC), "odd name": 7},
    {"s": "", "b": True, "t": datetime(2024, 2, 29, 10, 30, 0, 5, UTC), "d": date(2024, 1, 1)},
    {"s": 'say "x"', "i": 20, "f": 19.99, "c": True, "user.age": 17},
    {"s": "a\x00b\x1a", "f": 2.5, "i": 3, "t": datetime(1999, 12, 31, 23, 59, 59, 999_999, UTC)},
    {},
]

TEXTS = r'''
i = 5
i == 5
i <> 5
i != 5
i !> 5
i !< 5
5 < i
5 = i
20 >= i
i = -5
i = - 5
i = +5
i=5
i>=-5
i = 5L
i = 5S
i = 127Y
i = 5.0
i = 5.
i < 5.5
i > .5
i < 1e3
i < 1E3
i > 5e-1
i < 1.5D
i < 1.5BD
i < 2.5F
f = 0.1
f = .1
f = 1e-1
f = 0.1D
f = 1000
f = 1E+3
f > -0.0
f = 0
f = -0.0
f > 1e308
i BETWEEN 1 AND 5
i NOT BETWEEN 1 AND 5
NOT i BETWEEN 1 AND 5
i BETWEEN -5 AND 5 AND b
i IN (5)
i IN (5, NULL, -5)
i NOT IN (5, -5)
NOT i IN (5, -5)
i not in (5, null)
i IN (1.5, 5)
i = NULL
NULL <> i
i IN (NULL)
i NOT IN (NULL)
i BETWEEN 1 AND NULL
i BETWEEN NULL AND 1
i NOT BETWEEN NULL AND 1
s LIKE NULL
s NOT LIKE NULL
s = 'abc'
s = "abc"
s = 'a''b'
s = 'a\'b'
s = "a'b"
s = 'say "x"'
s = "say ""x"""
s = "say \"x\""
s = 'a\\b'
s = r'a\b'
s = R"a\b"
s = 'a\b'
s = 'a\qb'
s = 'a\%b'
s = 'a%b'
s = '\u0061bc'
s = '\u00e9'
s = '\U000000e9'
s = '\101\tb'
s = 'A\tb'
s = 'a\0b\Z'
s = ''
s LIKE 'a%'
s LIKE 'a\%b'
s LIKE 'a\\%b'
s LIKE r'a\%b'
s LIKE 'a\\\\b'
s LIKE r'a\\b'
s LIKE '%b'
s LIKE '_'
s LIKE 'a_b'
s NOT LIKE 'a_b'
NOT s LIKE 'a_b'
s LIKE 'a/%b' ESCAPE '/'
s LIKE 'a|_b' ESCAPE '|'
s LIKE ''
s < 'abd'
'abd' > s
b
NOT b
NOT NOT b
!b
b = TRUE
b = false
b <> True
b > false
b IN (true, NULL)
b IS NULL
b IS NOT NULL
b and c
b AND NOT c
NOT b AND c
NOT b OR c
NOT (b OR c)
b OR c AND i = 5
b AND c OR i = 5
(b OR c) AND i = 5
b OR NOT c AND i > 0 OR s = 'abc'
TRUE
FALSE
NULL
NOT NULL
NULL AND b
NULL OR b
TRUE AND b
d = DATE '2024-02-29'
d = date'2024-02-29'
d = DATE "2024-02-29"
d >= DATE '2024'
d < DATE '2024-2'
d <> DATE '1970-01-01'
d IN (DATE '1970-01-01', DATE '2024-01-01')
d BETWEEN DATE '2024-01-01' AND DATE '2024-12-31'
t = TIMESTAMP '2024-02-29'
t = TIMESTAMP '2024-02-29 00:00:00'
t = TIMESTAMP '2024-02-29T12:30:00.000005'
t = TIMESTAMP '2024-02-29 12:30:00.000005Z'
t = TIMESTAMP '2024-02-29 12:30:00.000005+02:00'
t = TIMESTAMP '2024-02-29 12:30:00.000005 UTC'
t < TIMESTAMP '2000-01-01'
t <= TIMESTAMP '1999-12-31 23:59:59.999999'
t >= TIMESTAMP '1999-12-31 23:59:59.9999999'
t = DATE '2024-02-29'
t > DATE '2024-02-29'
t BETWEEN DATE '2024-02-29' AND TIMESTAMP '2024-02-29 11:00:00'
t IN (DATE '1970-01-01', TIMESTAMP '2024-02-29 00:00:00')
t = '2024-02-29'
t <= '2024-02-29 10:30:00.000005'
t > '2024-02-29T12:30:00+02:00'
t IN ('2024-02-29', '1970-01-01')
t BETWEEN '1970-01-01' AND '2000'
d = '2024-02-29'
d >= '2024'
d <> '2024-2-29'
d NOT IN ('2024-02-29', NULL)
d < TIMESTAMP '2024-02-29 00:00:00.000001'
d = TIMESTAMP '2024-02-29 00:00:00'
user.age >= 18
user . age >= 18
`user`.`age` >= 18
user.`age` >= 18
`odd name` = 1
`i` = 5
i = 5 -- a comment
i /* a /* nested */ comment */ = 5
/* first */ i = 5
'''.strip().split("\n")
