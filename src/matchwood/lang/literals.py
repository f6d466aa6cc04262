r"""The values that literals stand for: strings and numbers (`moments` has dates and timestamps).

Strings follow Spark: doubled quotes, `\n \t \r \b \0 \Z`, `\ooo` (octal, up to `\177`), `\uXXXX`,
`\UXXXXXXXX`; `\%` and `\_` keep their backslash for LIKE; any other backslash is dropped.

Numbers are exact.  Decimal notation without a fraction is an int, also `20.0`.  A fraction, an
exponent or the suffix D or F makes a float.  A float stands for the shortest decimal that reads
back as it (`decimal_of`); decimal notation that is no such decimal and no int of 64 bits, because
it has too many digits, is a Decimal.  A fraction so close to an integer that a float would be that
integer is refused.
"""

from __future__ import annotations

import re
import struct
from decimal import Decimal
from math import isinf

from matchwood.lang.tokens import STRING

NAN = float("nan")
"""The one NaN of all trees: Python compares it by identity, so trees that hold it are equal."""

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
MAX_NUMBER = 400
"""Longest numeric literal in characters: the largest float in full has 309 digits."""

_RANGES = {"L": 2**63, "S": 2**15, "Y": 2**7}
_ESCAPE = r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))"
_UNESCAPE = {
    "'": re.compile(_ESCAPE + "|''", re.DOTALL),
    '"': re.compile(_ESCAPE + '|""', re.DOTALL),
}
_SHORT = {
    "0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": r"\%", "_": r"\_",
}  # fmt: skip
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([eE][-+]?[0-9]+)?(BD|[DFLSY])?", re.I)


class LiteralError(ValueError):
    """A literal that stands for no value; the parser adds the position."""


def string(token: str) -> str:
    """The value of a string literal, quotes included."""
    if token[0] in "rR":
        return token[2:-1]
    if not STRING.fullmatch(token):
        raise LiteralError(
            f"expected a closing {token[0]} for this string, found the end of the text: "
            rf"close it, and write a quote inside it as {token[0] * 2} or \{token[0]}"
        )
    quote, body = token[0], token[1:-1]
    if "\\" in body or quote in body:
        try:
            body = _UNESCAPE[quote].sub(_unescape, body)
            if _SURROGATE.search(body):  # a pair of \uXXXX is one character, as in Java
                body = body.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except (UnicodeDecodeError, ValueError, OverflowError):
            raise LiteralError(
                "expected Unicode characters, found an escape that is none: "
                r"\uXXXX and \UXXXXXXXX take a character up to 0010FFFF, no lone surrogate"
            ) from None
    return body


def _unescape(found: re.Match[str]) -> str:
    short, wide, octal, plain = found.groups()
    if plain is not None:
        return _SHORT.get(plain, plain)
    if octal is not None:
        return chr(int(octal, 8))
    if short is None and wide is None:
        return found.group()[0]
    return chr(int(short or wide, 16))


def decimal_of(value: float) -> Decimal:
    """What a finite double stands for beside decimals: itself if whole, else its shortest decimal.

    It keeps the order of doubles, and their order among integers.

    >>> decimal_of(0.1), decimal_of(2.0**60)
    (Decimal('0.1'), Decimal('1152921504606846976'))
    """
    return Decimal(value) if value.is_integer() else Decimal(repr(value))


def held(exact: Decimal, nearest: float) -> float | Decimal:
    """A decimal as the double that stands for it, `nearest`, if there is one; else as it is."""
    return nearest if decimal_of(nearest) == exact else exact


def as_offset(value: int | float | Decimal) -> int | float:
    """A number as it is added to a context's value: an int of 64 bits or a double."""
    return float(value) if isinstance(value, Decimal) else value


def number(text: str) -> int | float | Decimal:
    """The value of a numeric literal with its sign, exactly, or LiteralError."""
    if len(text) > MAX_NUMBER:
        raise LiteralError(
            f"expected a number of at most {MAX_NUMBER} characters, found {len(text)}"
        )
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise LiteralError(
            f"expected a number such as 20, 19.99 or 1e3, found {text[:40]}: "
            "put back-ticks around a name that starts with a digit"
        )
    digits, exponent, suffix = found.groups()
    suffix = (suffix or "").upper()
    if suffix in _RANGES:
        return _ranged(text, digits, exponent, suffix)
    if suffix in ("D", "F") or (exponent and not suffix):
        return _floating(text, float(digits + (exponent or "")), suffix)
    return _exact(text, digits, exponent)


def _ranged(text: str, digits: str, exponent: str | None, suffix: str) -> int:
    bound = _RANGES[suffix]
    if exponent or "." in digits or not -bound <= int(digits) < bound:
        raise LiteralError(
            f"expected an integer from {-bound} to {bound - 1} before the suffix {suffix}, "
            f"found {text}: leave the suffix out"
        )
    return int(digits)


def _floating(text: str, value: float, suffix: str) -> float:
    if isinf(value):
        raise LiteralError(f"expected a number up to 1.8e308, found {text}: it cannot be held")
    if suffix == "F" and value != _single(value):
        raise LiteralError(
            f"expected a number that 32 bits hold exactly before the suffix F, found {text}: "
            "leave the suffix out"
        )
    return value


def _single(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf")


def _exact(text: str, digits: str, exponent: str | None) -> int | float | Decimal:
    """Decimal notation: an int of 64 bits, else what `held` says of it."""
    if exponent and abs(int(exponent[1:])) > MAX_NUMBER:
        raise LiteralError(
            f"expected an exponent up to {MAX_NUMBER}, found {text}: it cannot be held"
        )
    exact = Decimal(digits + (exponent or ""))
    numerator, denominator = exact.as_integer_ratio()
    if denominator == 1 and INT_MIN <= numerator <= INT_MAX:
        return numerator
    try:
        value = numerator / denominator
    except OverflowError:
        value = float("inf")
    if isinf(value) or (denominator != 1 and value.is_integer()):
        raise LiteralError(
            f"expected a number that 64 bits hold, found {text[:40]}, which would be rounded "
            f"to {value}: it cannot be held, write fewer digits"
        )
    return held(exact, value)
