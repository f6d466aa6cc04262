"""Whole Arrow columns to keys, without a Python object per value.

Each function takes an array without nulls and returns the keys and, where some values do not fit, a
mask of the bad ones (None: all fit).  Strings and decimals go through Arrow's dictionary encoding,
so that every distinct value is looked up once, by a kernel; decimals of more than 18 digits and
strings that are no UTF-8 in Python.
"""

from __future__ import annotations

from fractions import Fraction
from math import isinf
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.arrow.values import python_values
from matchwood.encode.column_kernels import place_numbers, place_strings
from matchwood.encode.dictionary import OrderedDictionary
from matchwood.encode.exact import Exact
from matchwood.encode.keys import (
    DAY_MICROSECONDS,
    INT_MAX,
    INT_MIN,
    NAN,
    DictionaryKeys,
    FloatKeys,
    Keys,
    WrongValue,
    exact_number,
    float_keys,
    float_place,
)
from matchwood.encode.number_labels import NumberLabels, number_labels
from matchwood.kernel.arrays import offsets_of
from matchwood.lang.literals import decimal_of

FLOAT_KEYS = FloatKeys()

NARROW = 18
"""Decimal digits that 64 bits hold."""

ColumnKeys = tuple[np.ndarray, np.ndarray | None]


def is_double(kind: pa.DataType) -> bool:
    """Whether a column holds doubles, dictionaries of them among them."""
    if pa.types.is_dictionary(kind):
        return is_double(kind.value_type)
    return bool(pa.types.is_floating(kind))


def column_keys(keys: Keys | None, column: pa.Array) -> ColumnKeys:
    """Keys of a column for an attribute; an attribute without a type only asks for presence."""
    if keys is None:
        return np.zeros(len(column), np.int64), None
    if pa.types.is_dictionary(column.type):
        distinct, bad = column_keys(keys, column.dictionary)
        codes = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return distinct[codes], None if bad is None else bad[codes]
    if pa.types.is_decimal(column.type):
        return _decimal_column(keys, column)
    reader = _READERS.get(keys.type)
    result = reader(keys, column) if reader is not None else None
    return (
        (np.zeros(len(column), np.int64), np.ones(len(column), bool)) if result is None else result
    )


def _int_column(keys: Keys, column: pa.Array) -> ColumnKeys | None:
    return _integers(column) if pa.types.is_integer(column.type) else None


def _integers(column: pa.Array) -> ColumnKeys:
    if column.type == pa.uint64():
        values = column.to_numpy(zero_copy_only=False)
        bad = values > INT_MAX
        return values.astype(np.int64), bad if bad.any() else None
    return column.cast(pa.int64()).to_numpy(zero_copy_only=False), None


def _bool_column(keys: Keys, column: pa.Array) -> ColumnKeys | None:
    if not pa.types.is_boolean(column.type):
        return None
    return column.to_numpy(zero_copy_only=False).astype(np.int64), None


def _date_column(keys: Keys, column: pa.Array) -> ColumnKeys | None:
    if not pa.types.is_date(column.type):
        return None
    if column.type == pa.date64():  # milliseconds, not always at midnight
        return column.cast(pa.int64()).to_numpy(zero_copy_only=False) // 86_400_000, None
    return column.cast(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64), None


def _timestamp_column(keys: Keys, column: pa.Array) -> ColumnKeys | None:
    if pa.types.is_date(column.type):
        days, _ = _date_column(keys, column) or (np.empty(0, np.int64), None)
        return _microseconds(days, DAY_MICROSECONDS)
    if not pa.types.is_timestamp(column.type):
        return None
    ticks = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    per_tick = {"s": 1_000_000, "ms": 1_000, "us": 1}.get(column.type.unit)
    if per_tick is None:
        return ticks // 1_000, None  # nanoseconds, rounded down
    return _microseconds(ticks, per_tick)


def _microseconds(ticks: np.ndarray, per_tick: int) -> ColumnKeys:
    """Ticks of a coarser unit; those that do not fit 64 bits of microseconds are bad."""
    most = INT_MAX // per_tick
    bad = (ticks > most) | (ticks < -most - (per_tick == 1))
    return ticks * per_tick, bad if bad.any() else None


def _float_column(keys: Keys, column: pa.Array) -> ColumnKeys | None:
    if pa.types.is_integer(column.type):
        integers, bad = _integers(column)
        floats = integers.astype(np.float64)
        # 2^63 itself does not fit int64, so compare with care at the top.
        rounded = (floats >= 2.0**63) | (
            np.where(floats >= 2.0**63, 0, floats).astype(np.int64) != integers
        )
        if rounded.any():
            bad = rounded if bad is None else bad | rounded
        return float_keys(floats), bad
    if not pa.types.is_floating(column.type):
        return None
    return float_keys(_doubles(column)), None


def float_places(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """`float_place` of every value of a column of numbers."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type):
        keys = float_keys(_doubles(column))
        return keys, keys
    if pa.types.is_integer(column.type):
        integers, _ = _integers(column)
        keys, rounded = _float_column(FLOAT_KEYS, column) or (np.empty(0, np.int64), None)
        if rounded is None:
            return keys, keys
        plain = integers.tolist()
    else:
        plain = [exact_number(value) for value in column.to_pylist()]
    places = np.array([float_place(value) for value in plain], np.int64).reshape(-1, 2)
    return places[:, 0].copy(), places[:, 1].copy()


def _doubles(column: pa.Array) -> np.ndarray:
    values: np.ndarray = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values


def integer_keys(keys: Keys, values: np.ndarray) -> np.ndarray | None:
    """Keys of ints of 64 bits; None where an attribute of this type cannot take all of them."""
    if keys.type == "number" and isinstance(keys, DictionaryKeys):
        arrays = keys.dictionary.kept(number_labels)
        return _search(values, arrays.int_ceil, arrays.int_exact, arrays)
    return values if keys.type == "int" else None


def _number_column(keys: Keys, column: pa.Array) -> ColumnKeys | None:
    assert isinstance(keys, DictionaryKeys)
    arrays = keys.dictionary.kept(number_labels)
    if pa.types.is_integer(column.type):
        values, bad = _integers(column)
        found = integer_keys(keys, values)
        assert found is not None
        if bad is not None:  # beyond 64 bits with a sign: the others are below zero now
            found[bad] = _large(keys, column.filter(pa.array(bad)))
        return found, None
    if not pa.types.is_floating(column.type):
        return None
    values = _doubles(column)
    found = _search(values, arrays.float_ceil, arrays.float_exact, arrays)
    found[np.isnan(values)] = arrays.nan_key
    return found, None


def _search(
    values: np.ndarray, ceil: np.ndarray, exact: np.ndarray, arrays: NumberLabels
) -> np.ndarray:
    """Key of each value: the label of an equal constant, else the gap above the last lower one."""
    labels = arrays.labels
    if len(labels) == 0:  # no constant at all, or NaN alone, which is above every value
        return np.full(len(values), arrays.gap, np.int64)
    keys = np.empty(len(values), np.int64)
    place_numbers(values, ceil, exact, labels, keys)
    return keys


def _string_column(keys: Keys, column: pa.Array) -> ColumnKeys | None:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    encoded = pc.dictionary_encode(column)
    distinct, bad = _distinct_strings(keys, encoded.dictionary)
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return distinct[codes], None if bad is None else bad[codes]


def _distinct_strings(keys: Keys, words: pa.Array) -> ColumnKeys:
    assert isinstance(keys, DictionaryKeys)
    try:
        words.validate(full=True)
    except pa.ArrowInvalid:  # not UTF-8
        return _each(keys, words)
    _, offsets, data = words.buffers()
    width = np.int64 if pa.types.is_large_string(words.type) else np.int32
    last = words.offset + len(words) + 1
    start = np.frombuffer(offsets, width)[words.offset : last].astype(np.int64)
    table = keys.dictionary.kept(string_table)
    found = np.empty(len(words), np.int64)
    known = _bytes_of(table.texts), offsets_of(table.lengths), table.labels
    place_strings(_bytes_of(data), start, *known, found)
    return found, None


def _bytes_of(buffer: pa.Buffer | bytes | None) -> np.ndarray:
    """A buffer as an array that is only read, empty where there is none."""
    found = np.frombuffer(buffer or b"\0", np.uint8)
    found.flags.writeable = False
    return found


class StringTable(NamedTuple):
    """The constants of a string dictionary, ascending."""

    labels: np.ndarray
    lengths: np.ndarray
    texts: bytes


def string_table(dictionary: OrderedDictionary) -> StringTable:
    """The arrays of a dictionary."""
    given = dictionary.values
    joined = "".join(given)
    lengths = dictionary.measures()
    if lengths is None:
        texts = given if joined.isascii() else [each.encode() for each in given]
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    return StringTable(dictionary.labels(), lengths, joined.encode())


def _decimal_column(keys: Keys, column: pa.Array) -> ColumnKeys:
    """Each distinct decimal once; without a Python object each where 64 bits hold its digits."""
    encoded = pc.dictionary_encode(column)
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    words = encoded.dictionary
    if isinstance(keys, DictionaryKeys) and keys.type == "number" and len(words) > keys.n_constants:
        return _decimals(keys, words)[codes], None
    distinct, bad = _each(keys, words)
    return distinct[codes], None if bad is None else bad[codes]


def _decimals(keys: DictionaryKeys, words: pa.Array) -> np.ndarray:
    """Keys of decimals: those of few digits, then the others one by one."""
    width = words.type.byte_width // 8
    parts = np.frombuffer(
        words.buffers()[1], np.int64, width * len(words), words.offset * 8 * width
    )
    parts = parts.reshape(-1, width)
    digits = parts[:, 0].copy()
    most = 10**NARROW - 1
    is_narrow = (digits >= -most) & (digits <= most)
    is_narrow &= (parts[:, 1:] == (digits >> 63)[:, None]).all(axis=1)
    found = _scaled(keys, digits, Fraction(10) ** words.type.scale, 0, (-most, most))
    if not is_narrow.all():
        found[~is_narrow] = _each(keys, words.filter(pa.array(~is_narrow)))[0]
    return found


def _large(keys: DictionaryKeys, column: pa.Array) -> np.ndarray:
    """Keys of integers from 2^63 on."""
    if len(column) <= keys.n_constants:
        return _each(keys, column)[0]
    values = column.to_numpy(zero_copy_only=False).astype(np.int64) - INT_MIN
    return _scaled(keys, values, Fraction(1), 2**63, (0, INT_MAX))


def _scaled(
    keys: DictionaryKeys,
    values: np.ndarray,
    factor: Fraction,
    offset: int,
    bounds: tuple[int, int],
) -> np.ndarray:
    """Keys of numbers that become such values, in bounds, times a factor and less an offset."""
    arrays = keys.dictionary.kept(number_labels)
    least, most = bounds
    ceil = np.empty(len(arrays.labels), np.int64)
    exact = np.zeros(len(arrays.labels), bool)
    constants = [each for each in keys.dictionary.values if each is not NAN]
    n = 0
    for constant in constants:
        if isinstance(constant, float) and isinf(constant):
            scaled = Fraction(most + 1 if constant > 0 else least - 1)
        elif isinstance(constant, float):
            scaled = Fraction(decimal_of(constant)) * factor - offset  # see `exact`
        else:
            value = constant.value if isinstance(constant, Exact) else constant
            scaled = Fraction(value) * factor - offset
        if scaled > most:
            break  # no value reaches it, nor those above
        above = -(-scaled.numerator // scaled.denominator)
        ceil[n], exact[n] = max(above, least), above == scaled and above >= least
        n += 1
    return _search(values, ceil[:n], exact[:n], arrays)


def _each(keys: Keys, column: pa.Array) -> ColumnKeys:
    """One by one, for values that no array holds exactly."""
    found = np.zeros(len(column), np.int64)
    bad = np.zeros(len(column), bool)
    for i, value in enumerate(python_values(column)):
        try:
            found[i] = keys.key(value)
        except WrongValue:
            bad[i] = True
    return found, bad if bad.any() else None


_READERS = {
    "bool": _bool_column,
    "int": _int_column,
    "date": _date_column,
    "timestamp": _timestamp_column,
    "float": _float_column,
    "number": _number_column,
    "string": _string_column,
}
