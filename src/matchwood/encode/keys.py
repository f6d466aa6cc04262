"""Values to keys: for each type, int64 keys that keep the order of its values.

| type      | key                                    | values between two keys          |
|-----------|----------------------------------------|----------------------------------|
| bool      | 0, 1                                   | none                             |
| int       | the integer                            | none: `x > 1.5` is `x >= 2`      |
| date      | days since 1970-01-01                  | none                             |
| timestamp | microseconds since then, UTC           | none                             |
| float     | IEEE bits, negative ones flipped       | none                             |
| number    | label in an ordered dictionary         | share the key of their gap       |
|           | (ints, floats, decimals: see `exact`)  |                                  |
| string    | label in an ordered dictionary         | share the key of their gap       |

`number` takes ints, floats and decimals alike and compares them exactly.  64 bits cannot hold all
int64s and all doubles at once, so it goes through a dictionary; declare `int` or `float` to have
direct keys.

NaN is the largest number and equals itself, -0.0 equals 0.0: as in Spark.

All types stand in this one long file, each a few lines: what they share, and where they differ,
shows only side by side.

A literal becomes a triple (ge, le, side): see `encode.merge_kernels.Leaves`.  An event's value
becomes one key.  What does not fit raises `WrongValue`; the caller knows the attribute and says the
rest.
"""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_FLOOR, Decimal
from typing import Any

import numpy as np

from matchwood.encode.dictionary import OrderedDictionary, Relabelling
from matchwood.encode.exact import Exact
from matchwood.encode.merge_kernels import ABOVE, BELOW, EXACT
from matchwood.lang.literals import LiteralError, held
from matchwood.lang.moments import read_date, read_timestamp

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = date(1970, 1, 1).toordinal()
MICROSECOND = timedelta(microseconds=1)
DAY_MICROSECONDS = 86_400_000_000
_UNITS = {
    "as": 1, "fs": 10**3, "ps": 10**6, "ns": 10**9, "us": 10**12, "ms": 10**15, "s": 10**18,
    "m": 60 * 10**18, "h": 3600 * 10**18, "D": 86_400 * 10**18, "W": 604_800 * 10**18,
}  # fmt: skip
"""NumPy's units of time in attoseconds."""

Literal = tuple[int, int, int]
Values = list[Any] | np.ndarray
"""Constants: Python values, or an array of int64 or float64."""


class WrongValue(ValueError):
    """A value that its type does not take; the text says what is wrong with it."""


class _NotANumber:
    """NaN as a dictionary constant: above every number, equal to itself."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return self is not other

    def __repr__(self) -> str:
        return "nan"

    def __reduce__(self) -> str:
        return "NAN"


NAN = _NotANumber()


class Keys(ABC):
    """One attribute's mapping from values to keys."""

    type: str

    @abstractmethod
    def literals(self, values: Values) -> np.ndarray:
        """Triples, int64[n, 3], for the constants of subscriptions; dictionaries learn them."""

    def take_relabelling(self) -> Relabelling | None:
        """What learning constants moved, once; only dictionaries ever move anything."""
        return None

    @abstractmethod
    def key(self, value: Any) -> int:
        """The key of an event's value."""


class OrdinalKeys(Keys):
    """bool, int, date, timestamp: the key is a count of something."""

    def __init__(self, type_: str) -> None:
        self.type = type_
        self._ordinal = _ORDINALS[type_]
        self._event_ordinal = _EVENT_ORDINALS[type_]

    def literals(self, values: Values) -> np.ndarray:
        if self.type == "int" and _are_ints(values):
            return _exact(np.asarray(values, np.int64))
        plain = values.tolist() if isinstance(values, np.ndarray) else values
        return np.array([_literal_at(*self._ordinal(value)) for value in plain], np.int64)

    def key(self, value: Any) -> int:
        return self._event_ordinal(value)


class FloatKeys(Keys):
    """float: the bits of the double, made to sort as integers."""

    type = "float"

    def literals(self, values: Values) -> np.ndarray:
        plain = values.tolist() if isinstance(values, np.ndarray) else values
        if set(map(type, plain)) == {float}:
            return _exact(float_keys(np.asarray(values, np.float64)))
        return np.array([_float_literal(value) for value in plain], np.int64)

    def key(self, value: Any) -> int:
        if type(value) is float or (type(value) is int and -(2**53) <= value <= 2**53):
            return float_key(value)
        value = plain_number(value)
        if isinstance(value, int) and float(value) != value:
            raise WrongValue(f"{value}, which a 64-bit float would round")
        return float_key(float(value))


class DictionaryKeys(Keys):
    """number and string: the key is a label in an ordered dictionary."""

    def __init__(self, type_: str) -> None:
        self.type = type_
        self._dictionary: OrderedDictionary | None = OrderedDictionary()
        self._load: Callable[[], OrderedDictionary] | None = None
        self._event_value = _EVENT_VALUES[type_]

    @property
    def dictionary(self) -> OrderedDictionary:
        if self._dictionary is None:
            assert self._load is not None
            self._dictionary = self._load()
        return self._dictionary

    @property
    def n_constants(self) -> int:
        """How many constants there are."""
        return len(self._load if self._dictionary is None else self._dictionary)  # type: ignore[arg-type]

    @property
    def is_read(self) -> bool:
        """Whether the dictionary is in memory; one of a snapshot is read when it is needed."""
        return self._dictionary is not None

    def load_later(self, load: Callable[[], OrderedDictionary]) -> None:
        """Read the dictionary of a snapshot when it is first needed."""
        self._dictionary, self._load = None, load

    def literals(self, values: Values) -> np.ndarray:
        return _exact(self.labels(values))

    def labels(self, values: Values) -> np.ndarray:
        """Labels of constants, which learn those that are new: the only column of `literals`."""
        is_plain = _are_ints(values) or set(map(type, values)) == {str}
        constants = values.tolist() if isinstance(values, np.ndarray) else values
        if not is_plain:
            constants = [_constant(value) for value in constants]
        self.dictionary.add(constants)
        labels = map(self.dictionary.label_of.__getitem__, constants)
        return np.fromiter(labels, np.int64, len(constants))

    def take_relabelling(self) -> Relabelling | None:
        return self.dictionary.take_relabelling()

    def key(self, value: Any) -> int:
        return self.dictionary.key(self._event_value(value))


OBJECT = "object"
"""The type of a context's value that has fields: it is present, and compares with nothing."""


class ObjectKeys(Keys):
    """object: one key, that of being there."""

    type = OBJECT

    def literals(self, values: Values) -> np.ndarray:
        raise AssertionError("an object has no constants")

    def key(self, value: Any) -> int:
        if not isinstance(value, Mapping):
            raise WrongValue(describe(value))
        return 0


def keys_for(type_: str) -> Keys:
    """A fresh mapping for a type."""
    if type_ == OBJECT:
        return ObjectKeys()
    if type_ in _ORDINALS:
        return OrdinalKeys(type_)
    return FloatKeys() if type_ == "float" else DictionaryKeys(type_)


def float_key(value: float) -> int:
    """The bits of a double as an integer that sorts as the doubles do.

    >>> float_key(-1.5) < float_key(-0.0) == float_key(0.0) < float_key(5e-324)
    True
    >>> float_key(math.inf) < float_key(math.nan)
    True
    """
    if value != value:
        value = math.nan  # every NaN has the same key
    bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
    return bits if bits >= 0 else bits ^ INT_MAX


def float_keys(values: np.ndarray) -> np.ndarray:
    """`float_key` of a whole array."""
    is_nan = np.isnan(values)
    bits: np.ndarray = (np.where(is_nan, 0.0, values) + 0.0).view(np.int64)
    bits[bits < 0] ^= INT_MAX
    bits[is_nan] = float_key(math.nan)
    return bits


def float_of_key(key: int) -> float:
    """The double that a key stands for."""
    value: float = struct.unpack("<d", struct.pack("<q", key if key >= 0 else key ^ INT_MAX))[0]
    return value


def float_place(value: int | float | Exact) -> tuple[int, int]:
    """The first double from a number on and the last up to it, as keys: the same for a double.

    >>> low, high = float_place(2**53 + 1)
    >>> low - high, float_of_key(low) - float_of_key(high)
    (1, 2.0)
    """
    if isinstance(value, Exact):
        key = float_key(value.nearest)
        return (key + 1, key) if value.is_above_nearest else (key, key - 1)
    ge, le, _ = _float_literal(value)
    return ge, le


def plain_number(value: Any) -> int | float:
    """An int of 64 bits or a float, from anything that is exactly one."""
    number = exact_number(value)
    if isinstance(number, Exact):
        raise WrongValue(f"{describe(value)}, which a 64-bit float would round")
    return number


def exact_number(value: Any) -> int | float | Exact:
    """An event's number: an int of 64 bits or a float where it is one, else an exact decimal."""
    if isinstance(value, Decimal):
        return _exact_decimal(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise WrongValue(describe(value))
    if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
        if value.bit_length() > 1023:
            raise WrongValue(f"{describe(value)}, which no 64-bit float holds")
        return _exact_decimal(Decimal(value))
    return value


def _exact_decimal(value: Decimal) -> int | float | Exact:
    if value.is_snan() or (value.is_finite() and value.adjusted() > 307):
        raise WrongValue(f"{describe(value)}, which no 64-bit float holds")
    if not value.is_finite():
        return float(value)
    if INT_MIN <= value <= INT_MAX and value == value.to_integral_value():
        return int(value)
    found = held(value, float(value))
    return Exact(found) if isinstance(found, Decimal) else found


def describe(value: Any) -> str:
    """A value as error messages show it: its type, and the start of its text."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - an int of 5,000 digits, someone's own __repr__
        return type(value).__name__
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


def read_literal_problem(type_: str, text: Any) -> str | None:
    """Why a string cannot be read as a date or timestamp; None when it can."""
    try:
        read_date(text) if type_ == "date" else read_timestamp(text)
    except LiteralError as error:
        return str(error)
    return None


def _constant(value: Any) -> Any:
    """A constant as the dictionary holds it: one NaN, ints of 64 bits, floats, exact decimals."""
    if isinstance(value, Decimal):
        return _event_number(value)
    if INT_MIN <= value <= INT_MAX:
        return value
    return NAN if value != value else _nearest_float(value)


def _nearest_float(value: float | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _are_ints(values: Values) -> bool:
    """Whether all values are ints of 64 bits."""
    if isinstance(values, np.ndarray):
        return values.dtype == np.int64
    is_int = set(map(type, values)) == {int}
    return is_int and min(values) >= INT_MIN and max(values) <= INT_MAX


def _exact(keys: np.ndarray) -> np.ndarray:
    """The triples of constants that are keys themselves."""
    triples = np.full((len(keys), 3), EXACT, np.int64)
    triples[:, 0] = triples[:, 1] = keys
    return triples


def _float_literal(value: int | float | Decimal) -> Literal:
    nearest = _nearest_float(value)
    key = float_key(nearest)
    # Beside doubles, a decimal constant is the nearest one; an int is not: see `exact`.
    if isinstance(value, (float, Decimal)) or nearest == value:
        return key, key, EXACT
    # An int between two doubles: between `key` and its neighbour on the other side.
    return (key, key - 1, EXACT) if nearest > value else (key + 1, key, EXACT)


def _literal_at(ordinal: int | float, exact: bool) -> Literal:
    """A literal among ordinal keys, given its floor and whether the floor is the literal itself."""
    if ordinal == math.inf or ordinal > INT_MAX:
        return 0, 0, ABOVE
    if ordinal == -math.inf or ordinal < INT_MIN:
        return 0, 0, BELOW
    floor = int(ordinal)
    if exact:
        return floor, floor, EXACT
    return (0, 0, ABOVE) if floor == INT_MAX else (floor + 1, floor, EXACT)


def _int_literal(value: int | float | Decimal) -> tuple[int | float, bool]:
    if isinstance(value, Decimal):
        floor = int(value.to_integral_value(ROUND_FLOOR))
        return floor, floor == value
    if isinstance(value, float):
        if value != value or math.isinf(value):
            return (-math.inf if value < 0 else math.inf), False
        return math.floor(value), value.is_integer()
    return value, True


def _timestamp_literal(value: datetime | date | str) -> tuple[int, bool]:
    if isinstance(value, str):
        value = read_timestamp(value)
    return _timestamp(value), True


def _date_literal(value: datetime | date | str) -> tuple[int, bool]:
    if isinstance(value, str):
        value = read_date(value)
    if isinstance(value, datetime):
        days, rest = divmod(_timestamp(value), DAY_MICROSECONDS)
        return days, rest == 0
    return value.toordinal() - EPOCH_DAY, True


def _timestamp(value: datetime | date) -> int:
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return (aware - EPOCH) // MICROSECOND
    return (value.toordinal() - EPOCH_DAY) * DAY_MICROSECONDS


def _event_bool(value: Any) -> int:
    if value is True or value is False:
        return int(value)
    if isinstance(value, np.bool_):
        return int(value)
    raise WrongValue(describe(value))


def _event_int(value: Any) -> int:
    number = plain_number(value)
    if isinstance(number, int):
        return number
    raise WrongValue(describe(value))


def _numpy_ticks(value: np.datetime64, unit: str) -> int | None:
    """A NumPy moment in microseconds or days, rounded down; None where it does not fit 64 bits."""
    numpy_unit, count = np.datetime_data(value.dtype)
    if np.isnat(value):
        raise WrongValue(describe(value))
    if numpy_unit in ("Y", "M"):  # as days, which NumPy counts in 64 bits without looking
        days = value.astype("datetime64[D]")
        if days.astype(value.dtype) != value:
            return None
        value, numpy_unit, count = days, "D", 1
    ticks = int(value.astype(np.int64)) * count * _UNITS[numpy_unit] // _UNITS[unit]
    return ticks if INT_MIN <= ticks <= INT_MAX else None


def _event_timestamp(value: Any) -> int:
    if isinstance(value, np.datetime64):
        ticks = _numpy_ticks(value, "us")
        if ticks is None:
            raise WrongValue(f"{describe(value)}, which does not fit 64 bits of microseconds")
        return ticks
    if isinstance(value, date) and value == value:  # pandas' NaT differs from itself
        return int(_timestamp(value))
    raise WrongValue(describe(value))


def _event_date(value: Any) -> int:
    if isinstance(value, np.datetime64) and np.datetime_data(value.dtype)[0] == "D":
        ticks = _numpy_ticks(value, "D")
        if ticks is not None:
            return ticks
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.toordinal() - EPOCH_DAY
    raise WrongValue(describe(value))


def _event_number(value: Any) -> Any:
    if type(value) is float:
        return value if value == value else NAN
    if type(value) is int and INT_MIN <= value <= INT_MAX:
        return value
    value = exact_number(value)
    return value if value == value else NAN


def _event_string(value: Any) -> str:
    if not isinstance(value, str):
        raise WrongValue(describe(value))
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise WrongValue(f"{describe(value)}, which holds a lone surrogate") from None
    return value


_ORDINALS: dict[str, Callable[[Any], tuple[int | float, bool]]] = {
    "bool": lambda value: (int(value), True),
    "int": _int_literal,
    "timestamp": _timestamp_literal,
    "date": _date_literal,
}
_EVENT_ORDINALS: dict[str, Callable[[Any], int]] = {
    "bool": _event_bool,
    "int": _event_int,
    "timestamp": _event_timestamp,
    "date": _event_date,
}
_EVENT_VALUES: dict[str, Callable[[Any], Any]] = {
    "number": _event_number,
    "string": _event_string,
}
