"""Parts that read one word, name, sign or constant of a text.

A constant is a slice of the bytes and a kind; what it means is worked out by Python, once for each
distinct one (`texts/bulk`).  Where there is none, or one that is not read here (an exponent, a
back-slash), its end is NOTHING, and the text is left to the parser.
"""

from __future__ import annotations

import numpy as np

from matchwood.encode.merge_kernels import EQ, GE, GT, LE, LT, NEGATED
from matchwood.kernel.jit import inlined, part

NAME, WHOLE, NUMBER, TEXT, PREFIX_END, DOUBLED, DATE, TIMESTAMP, TRUE, FALSE = range(10)
"""What a slice is: WHOLE has digits alone, at most 18; PREFIX_END is what comes after a prefix;
DOUBLED is a text with doubled quotes; TRUE and FALSE have no bytes."""
FAMILY = np.array([0, 1, 1, 2, 2, 2, 3, 4, 5, 5])
"""By kind: constants of one family may be together in a list or as bounds."""

NOTHING = -1

BLANK, DIGIT, START, REST = 1, 2, 4, 8
CLASS = np.zeros(256, np.uint8)
for _bytes, _class in (
    (b" \t\n\r\f\v", BLANK), (b"0123456789", DIGIT | REST), (b"_", START | REST),
    (b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", START | REST),
):  # fmt: skip
    for _byte in _bytes:
        CLASS[_byte] |= _class


def _packed(word: bytes) -> int:
    return int.from_bytes(word, "little")


W_AND, W_OR, W_IN, W_LIKE, W_BETWEEN, W_IS, W_NOT, W_NULL = map(
    _packed, (b"and", b"or", b"in", b"like", b"between", b"is", b"not", b"null")
)
W_TRUE, W_FALSE, W_DATE = map(_packed, (b"true", b"false", b"date"))
TIMESTAMP_WORD = np.frombuffer(b"timestamp", np.uint8)
QUOTE, DOT, COMMA, OPEN, CLOSE, BACKSLASH, MINUS, PLUS = b"'.,()\\-+"
EQUALS, LESS, GREATER, BANG, PERCENT, UNDERLINE = b"=<>!%_"


@inlined
def blanks(data, at, end):
    """The first byte from `at` on that is no blank."""
    while at < end and CLASS[data[at]] == BLANK:
        at += 1
    return at


@inlined
def word_from(data, at, end):
    """The letters from `at` on in lower case, as a number, and where they end; 0: more than 7."""
    word, n = np.int64(0), np.int64(0)
    while at + n < end and CLASS[data[at + n]] & REST:
        if n < 7:
            word |= (np.int64(data[at + n]) | np.int64(32)) << (np.int64(8) * n)
        n += 1
    return np.int64(0) if n > 7 else word, at + n


@inlined
def name_end(data, at, end):
    """Where a dotted name ends; NOTHING where there is none."""
    while at < end and CLASS[data[at]] & START:
        while at < end and CLASS[data[at]] & REST:
            at += 1
        if at >= end or data[at] != DOT:
            return at
        at += 1
    return np.int64(NOTHING)


@inlined
def _string(data, at, end):
    """A string in quotes from `at` on: where it ends, NOTHING where there is none; begin, size,
    kind.
    """
    stop, kind = at + 1, TEXT
    while True:
        while stop < end and data[stop] != QUOTE and data[stop] != BACKSLASH:
            stop += 1
        if stop >= end or data[stop] != QUOTE:
            return np.int64(NOTHING), at, at, kind
        if stop + 1 >= end or data[stop + 1] != QUOTE:
            return stop + 1, at + 1, stop - at - 1, kind
        stop, kind = stop + 2, DOUBLED


@inlined
def _is_timestamp(data, at, stop):
    """Whether the letters from `at` to `stop` are TIMESTAMP."""
    if stop - at != len(TIMESTAMP_WORD):
        return False
    for k in range(len(TIMESTAMP_WORD)):
        if data[at + k] | np.uint8(32) != TIMESTAMP_WORD[k]:
            return False
    return True


@inlined
def _worded_literal(data, at, end):
    """TRUE, FALSE, DATE '...' or TIMESTAMP '...' from `at` on; as `literal`."""
    word, stop = word_from(data, at, end)
    if stop < end and data[stop] == DOT:
        return np.int64(NOTHING), at, at, TRUE
    if word == W_TRUE:
        return stop, at, np.int64(0), TRUE
    if word == W_FALSE:
        return stop, at, np.int64(0), FALSE
    kind = DATE if word == W_DATE else TIMESTAMP
    if kind == DATE or _is_timestamp(data, at, stop):
        at = blanks(data, stop, end)
        if at < end and data[at] == QUOTE:
            stop, begin, size, form = _string(data, at, end)
            if stop >= 0 and form == TEXT:
                return stop, begin, size, kind
    return np.int64(NOTHING), at, at, kind


@part
def literal(data, at, end):
    """A constant from `at` on: where it ends, NOTHING where there is none; begin, size, kind."""
    if at < end and data[at] == QUOTE:
        return _string(data, at, end)
    if at < end and CLASS[data[at]] & START:
        return _worded_literal(data, at, end)
    stop = at + 1 if at < end and (data[at] == MINUS or data[at] == PLUS) else at
    digits = stop
    while stop < end and CLASS[data[stop]] & DIGIT:
        stop += 1
    if stop == digits:
        return np.int64(NOTHING), at, at, NUMBER
    kind = WHOLE if digits == at and stop - at < 19 else NUMBER
    if stop + 1 < end and data[stop] == DOT and CLASS[data[stop + 1]] & DIGIT:
        kind = NUMBER
        stop += 1
        while stop < end and CLASS[data[stop]] & DIGIT:
            stop += 1
    if stop < end and (CLASS[data[stop]] & REST or data[stop] == DOT):
        return np.int64(NOTHING), at, at, NUMBER
    return stop, at, stop - at, kind


@inlined
def symbol(data, at, end):
    """A sign of comparison: its operator, NOTHING where there is none, and where it ends."""
    first = data[at]
    second = data[at + 1] if at + 1 < end else np.uint8(0)
    if first == EQUALS:
        return EQ, at + (2 if second == EQUALS else 1)
    if first == LESS:
        if second == GREATER:
            return EQ | NEGATED, at + 2
        return (LE, at + 2) if second == EQUALS else (LT, at + 1)
    if first == GREATER:
        return (GE, at + 2) if second == EQUALS else (GT, at + 1)
    if first == BANG and second == EQUALS:
        return EQ | NEGATED, at + 2
    return NOTHING, at
