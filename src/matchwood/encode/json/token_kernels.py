"""Tokens of JSON text: white space, strings, numbers, words; checked as `json.loads` checks them.

Each part reads `data[at:end]` from the first byte of a token and returns where the token ends, or
ODD where exact code has to decide: text that may be an error, and text that is right but rare
(numbers beyond what one rounding step can read, lone surrogates, NaN).

`number` is scratch for one number: NEGATIVE is 0 or 1, DIGITS its decimal digits as an integer,
EXPONENT the power of ten that they are multiplied with, IS_DOUBLE whether `json.loads` makes a
float of it, IS_BIG whether DIGITS overflowed.
"""

from __future__ import annotations

import numpy as np

from matchwood.kernel.byte_search import first_special
from matchwood.kernel.jit import inlined

ODD = -1
"""Leave this document to exact code."""

NEGATIVE, DIGITS, EXPONENT, IS_DOUBLE, IS_BIG = range(5)
N_NUMBER = 5

QUOTE, BACKSLASH, COMMA, COLON, DOT = 34, 92, 44, 58, 46
BRACE, BRACE_END, BRACKET, BRACKET_END = 123, 125, 91, 93
MINUS, PLUS, ZERO, NINE, LOWER_E, UPPER_E, LOWER_U = 45, 43, 48, 57, 101, 69, 117
SPACE, TAB, NEWLINE, RETURN = 32, 9, 10, 13
LOWER_T, LOWER_F, LOWER_N = 116, 102, 110
FIRST_PRINTABLE, FIRST_WIDE = 32, 128

MAX_DIGITS = 18
"""Decimal digits that always fit an int64."""
MAX_EXPONENT = 999
"""Larger exponents are left to exact code; the limit keeps the sum from overflowing."""

POWERS = 10.0 ** np.arange(23)
"""The powers of ten that a double holds exactly."""
EXACT_DIGITS = 2**53
"""Integers up to here are doubles: one multiplication or division by a power rounds once."""

ESCAPES = np.zeros(256, np.uint8)
"""The byte that an escaped letter stands for; 0 where it stands for none."""
for _letter, _byte in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    ESCAPES[_letter] = _byte

_TRUE, _FALSE, _NULL = (
    np.frombuffer(_word, np.uint8).copy() for _word in (b"true", b"false", b"null")
)


@inlined
def byte_at(data, at):
    """A byte of the text; a position that may be signed would be compared with 0 first."""
    return data[np.uint64(at)]


@inlined
def skip_space(data, at, end):
    """The first byte from `at` on that is no white space."""
    while at < end and byte_at(data, at) <= SPACE:
        if (
            byte_at(data, at) != SPACE
            and byte_at(data, at) != NEWLINE
            and byte_at(data, at) != RETURN
            and byte_at(data, at) != TAB
        ):
            break
        at += 1
    return at


@inlined
def wide_end(data, at, end):
    """The end of one character of several UTF-8 bytes; ODD where it is none, or a surrogate."""
    first = np.int64(byte_at(data, at))
    if first < 0xC2 or first > 0xF4:
        return np.int64(ODD)
    n = 1 + (first >= 0xE0) + (first >= 0xF0)
    if at + n >= end:
        return np.int64(ODD)
    second = np.int64(byte_at(data, at + 1))
    low, high = 0x80, 0xBF
    if first == 0xE0:
        low = 0xA0
    elif first == 0xED:
        high = 0x9F  # above: surrogates
    elif first == 0xF0:
        low = 0x90
    elif first == 0xF4:
        high = 0x8F
    if second < low or second > high:
        return np.int64(ODD)
    for k in range(2, n + 1):
        if byte_at(data, at + k) & 0xC0 != 0x80:
            return np.int64(ODD)
    return np.int64(at + n + 1)


@inlined
def hex_value(data, at, end):
    """The number that four hexadecimal digits stand for, or ODD."""
    if at + 4 > end:
        return np.int64(ODD)
    value = np.int64(0)
    for k in range(at, at + 4):
        byte = np.int64(byte_at(data, k))
        if ZERO <= byte <= NINE:
            digit = byte - ZERO
        elif 97 <= byte <= 102:
            digit = byte - 87
        elif 65 <= byte <= 70:
            digit = byte - 55
        else:
            return np.int64(ODD)
        value = value * 16 + digit
    return value


@inlined
def plain_end(data, at, end):
    """The first byte from `at` on that is no printable ASCII, a quote or a backslash; or `end`.

    Sixteen bytes at a time, those behind `end` among them.
    """
    while at < end and at + 16 <= len(data):
        n = first_special(data, at)
        if n < 16:
            return min(np.int64(at + n), np.int64(end))
        at += 16  # not n: the next bytes are read before it is known
    while at < end and (
        byte_at(data, at) != QUOTE
        and byte_at(data, at) != BACKSLASH
        and FIRST_PRINTABLE <= byte_at(data, at) < FIRST_WIDE
    ):
        at += 1
    return min(np.int64(at), np.int64(end))


@inlined
def skip_string(data, at, end):
    """The byte after a string that begins at `at`, and whether it has escapes."""
    at += 1
    has_escapes = False
    while at < end:
        at = plain_end(data, at, end)
        if at >= end:
            break
        byte = byte_at(data, at)
        if byte == QUOTE:
            return np.int64(at + 1), has_escapes
        if byte >= FIRST_WIDE:
            at = wide_end(data, at, end)
            if at == ODD:
                break
        elif byte == BACKSLASH:
            has_escapes = True
            if at + 1 >= end:
                break
            letter = byte_at(data, at + 1)
            if letter == LOWER_U:
                code = hex_value(data, at + 2, end)
                if code == ODD or 0xD800 <= code <= 0xDFFF:
                    if code == ODD or code >= 0xDC00:
                        break
                    if (
                        at + 7 >= end
                        or byte_at(data, at + 6) != BACKSLASH
                        or byte_at(data, at + 7) != LOWER_U
                    ):
                        break
                    low = hex_value(data, at + 8, end)
                    if low < 0xDC00 or low > 0xDFFF:
                        break
                    at += 6
                at += 6
            elif ESCAPES[letter] != 0:
                at += 2
            else:
                break
        else:
            break
    return np.int64(ODD), has_escapes


@inlined
def unescape(data, at, end, out, n):
    """Write `data[at:end]`, a string that `skip_string` accepted, to `out[n:]`; the end of it."""
    while at < end:
        byte = byte_at(data, at)
        if byte != BACKSLASH:
            out[n] = byte
            n += 1
            at += 1
            continue
        letter = byte_at(data, at + 1)
        if letter != LOWER_U:
            out[n] = ESCAPES[letter]
            n += 1
            at += 2
            continue
        code = hex_value(data, at + 2, end)
        at += 6
        if 0xD800 <= code <= 0xDBFF:
            code = 0x10000 + ((code - 0xD800) << 10) + hex_value(data, at + 2, end) - 0xDC00
            at += 6
        n = _write_utf8(code, out, n)
    return np.int64(n)


@inlined
def _write_utf8(code, out, n):
    if code < 0x80:
        out[n] = code
        return n + 1
    if code < 0x800:
        out[n] = 0xC0 | code >> 6
        out[n + 1] = 0x80 | code & 0x3F
        return n + 2
    if code < 0x10000:
        out[n] = 0xE0 | code >> 12
        out[n + 1] = 0x80 | code >> 6 & 0x3F
        out[n + 2] = 0x80 | code & 0x3F
        return n + 3
    out[n] = 0xF0 | code >> 18
    out[n + 1] = 0x80 | code >> 12 & 0x3F
    out[n + 2] = 0x80 | code >> 6 & 0x3F
    out[n + 3] = 0x80 | code & 0x3F
    return n + 4


@inlined
def read_integer(data, at, end):
    """The end of a number of up to MAX_DIGITS digits without point and exponent, and the number.

    ODD where something else begins, which may be another number.
    """
    is_negative = byte_at(data, at) == MINUS
    first = np.int64(at) + np.int64(is_negative)
    at, value = first, np.int64(0)
    while at < end and ZERO <= byte_at(data, at) <= NINE and at < first + MAX_DIGITS:
        value = value * 10 + (np.int64(byte_at(data, at)) - ZERO)
        at += 1
    if at == first or at >= end or (byte_at(data, first) == ZERO and at > first + 1):
        return np.int64(ODD), value
    byte = byte_at(data, at)
    if ZERO <= byte <= NINE or byte == DOT or byte == LOWER_E or byte == UPPER_E:
        return np.int64(ODD), value
    return at, -value if is_negative else value


@inlined
def _read_digits(data, at, end, number):
    """Digits from `at` on, added to `number`; where they end."""
    while at < end and ZERO <= byte_at(data, at) <= NINE:
        if number[DIGITS] >= 10 ** (MAX_DIGITS - 1):
            number[IS_BIG] = 1
        else:
            number[DIGITS] = number[DIGITS] * 10 + (np.int64(byte_at(data, at)) - ZERO)
        at += 1
    return np.int64(at)


@inlined
def read_number(data, at, end, number):
    """The end of a number, which is left in `number`; ODD where none begins."""
    number[:] = 0
    if byte_at(data, at) == MINUS:
        number[NEGATIVE] = 1
        at += 1
    begin = at
    at = _read_digits(data, at, end, number)
    if at == begin or (byte_at(data, begin) == ZERO and at > begin + 1):
        return np.int64(ODD)
    if at < end and byte_at(data, at) == DOT:
        number[IS_DOUBLE] = 1
        begin = at + 1
        at = _read_digits(data, begin, end, number)
        if at == begin:
            return np.int64(ODD)
        number[EXPONENT] = begin - at
    if at < end and (byte_at(data, at) == LOWER_E or byte_at(data, at) == UPPER_E):
        number[IS_DOUBLE] = 1
        at += 1
        sign = 1
        if at < end and (byte_at(data, at) == MINUS or byte_at(data, at) == PLUS):
            sign = -1 if byte_at(data, at) == MINUS else 1
            at += 1
        begin = at
        exponent = np.int64(0)
        while at < end and ZERO <= byte_at(data, at) <= NINE:
            exponent = min(exponent * 10 + (np.int64(byte_at(data, at)) - ZERO), MAX_EXPONENT)
            at += 1
        if at == begin:
            return np.int64(ODD)
        number[EXPONENT] += sign * exponent
    return np.int64(at)


@inlined
def is_exact(number):
    """Whether `integer_of` or `double_of` give what `json.loads` gives."""
    if number[IS_BIG]:
        return False
    if not number[IS_DOUBLE]:
        return True
    return number[DIGITS] <= EXACT_DIGITS and -len(POWERS) < number[EXPONENT] < len(POWERS)


@inlined
def integer_of(number):
    return -number[DIGITS] if number[NEGATIVE] else number[DIGITS]


@inlined
def double_of(number):
    value = np.float64(number[DIGITS])
    if number[EXPONENT] < 0:
        value /= POWERS[-number[EXPONENT]]
    else:
        value *= POWERS[number[EXPONENT]]
    return -value if number[NEGATIVE] else value


@inlined
def _ends_word(data, at, end, word):
    """The end of a word that begins at `at`, or ODD where another one stands."""
    if at + len(word) > end:
        return np.int64(ODD)
    for k in range(len(word)):
        if byte_at(data, at + k) != word[k]:
            return np.int64(ODD)
    return np.int64(at + len(word))


@inlined
def skip_word(data, at, end):
    """The end of `true`, `false` or `null`; ODD for other words (`json.loads` takes NaN)."""
    if byte_at(data, at) == LOWER_T:
        return _ends_word(data, at, end, _TRUE)
    if byte_at(data, at) == LOWER_F:
        return _ends_word(data, at, end, _FALSE)
    return _ends_word(data, at, end, _NULL)
