"""Elements: values as sequences of small numbers whose order is that of the values (section 4.5).

    byte     sign, 3 bits, 4 bits            -5  ->  - 7 11
    int32    sign, 31 bits as 8 digits       as the paper: nine elements
    int64    sign, 63 bits as 16 digits
    float64  sign, exponent (3), mantissa (13 digits)
    string   characters in UTF-8, two elements each

Digits have 4 bits; signs are 0 for - and 1 for +.  Negative integers keep their complement's
digits, negative floats have their digits inverted, so that they rise with the value.
"""

from __future__ import annotations

import struct

import numpy as np

BYTE, INT32, INT64, FLOAT64, STRING = "byte", "int32", "int64", "float64", "string"
_BITS = {BYTE: 8, INT32: 32, INT64: 64}


def elements(value: int | float | str, kind: str) -> np.ndarray:
    """The elements of a value.

    >>> elements(-5, "byte").tolist()
    [0, 7, 11]
    >>> len(elements(7, "int32")), len(elements("ab", "string"))
    (9, 4)
    """
    if kind == STRING:
        data = np.frombuffer(str(value).encode("utf-8"), np.uint8)
        return np.stack([data >> 4, data & 15], axis=1).ravel()
    if kind == FLOAT64:
        bits = struct.unpack("<Q", struct.pack("<d", float(value) + 0.0))[0]
        if bits >> 63:
            bits = ~bits & (2**63 - 1)
            return _digits(0, bits, 63)
        return _digits(1, bits, 63)
    n = _BITS[kind]
    bits = int(value) & (2**n - 1)
    return _digits(1 - (bits >> (n - 1)), bits & (2 ** (n - 1) - 1), n - 1)


def _digits(sign: int, rest: int, bits: int) -> np.ndarray:
    shifts = range(4 * ((bits - 1) // 4), -1, -4)
    return np.array([sign, *[rest >> shift & 15 for shift in shifts]], np.uint8)
