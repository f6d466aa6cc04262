"""The columns of a table of predicates as arrays: codes of words, constants in row order."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.arrow.tables import readable
from matchwood.encode.arrow.values import is_text, python_values
from matchwood.encode.leaves import ABSENT, OPERATORS
from matchwood.encode.merge_kernels import BETWEEN, IN, NEGATED, PRESENT
from matchwood.engine.input.predicate_texts import LIKE
from matchwood.kernel.arrays import offsets_of, slices
from matchwood.lang.literals import INT_MAX, INT_MIN

OPERATOR_OF = {
    **OPERATORS,
    "==": OPERATORS["="],
    "!=": OPERATORS["<>"],
    "IN": IN,
    "NOT IN": IN | NEGATED,
    "BETWEEN": BETWEEN,
    "NOT BETWEEN": BETWEEN | NEGATED,
    "IS NULL": ABSENT,
    "IS NOT NULL": PRESENT,
    "LIKE": LIKE,
    "NOT LIKE": LIKE | NEGATED,
}
UNKNOWN = 255
"""The code of a word that is no operator."""


def subscription_rows(column: pa.ChunkedArray) -> tuple[list[Any], np.ndarray, np.ndarray | None]:
    """The ids in order of appearance, where the rows of each begin, and the order of rows that
    brings them together (None where they come so).
    """
    if pa.types.is_integer(column.type) and not column.null_count:
        ids = column.to_numpy()
        if (ids[1:] >= ids[:-1]).all():  # as generators and sorted files have them: no hashing
            first = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])[: len(ids)])
            return ids[first].tolist(), np.append(first, len(ids)), None
    encoded = _distinct(column)
    expression = encoded.indices.to_numpy(zero_copy_only=False)
    counts = np.bincount(expression, minlength=len(encoded.dictionary))
    is_sorted = bool((expression[1:] >= expression[:-1]).all())
    order = None if is_sorted else np.argsort(expression, kind="stable")
    return python_values(encoded.dictionary), offsets_of(counts), order


def _distinct(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """A column as codes of its distinct values, null among them, in order of first appearance."""
    if pa.types.is_dictionary(column.type):  # it may hold values that no row has
        column = column.cast(column.type.value_type)
    return pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")


def attribute_codes(column: pa.ChunkedArray) -> tuple[pa.DictionaryArray, np.ndarray]:
    """Attributes as codes, and which rows have one; a row without spoils its subscription alone."""
    is_named = column.is_valid().to_numpy(zero_copy_only=False)
    if column.null_count:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_null(column.type):
            column = column.cast(pa.string())
        if is_text(column.type):
            column = column.fill_null("")
    return _words(column), is_named


def _words(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """A column as codes; a dictionary is taken as it is, words that no row uses do no harm."""
    if not pa.types.is_dictionary(column.type):
        return _distinct(column)
    words = column.unify_dictionaries().combine_chunks()
    has_null = column.null_count or words.dictionary.null_count
    return _distinct(column) if has_null else words


def operator_codes(column: pa.ChunkedArray) -> np.ndarray:
    if column.null_count and pa.types.is_null(column.type):
        column = column.cast(pa.string())
    encoded = _words(column)
    codes = [
        OPERATOR_OF.get(" ".join(name.upper().split()), UNKNOWN)
        for name in map(str, python_values(encoded.dictionary))
    ]
    return np.array(codes, np.uint8)[encoded.indices.to_numpy(zero_copy_only=False)]


def context_codes(table: pa.Table) -> tuple[list[Any], np.ndarray]:
    """The contexts that rows name, and which of them each row does; -1, the last, is none."""
    column = _column(table, "context")
    if column is None:
        return [], np.empty(0, np.int32)
    if not pa.types.is_dictionary(column.type):
        column = pc.dictionary_encode(column)
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return [*python_values(column.dictionary), None], codes


def constants(table: pa.Table) -> tuple[np.ndarray, Any]:
    """How many constants each row has, and all of them in row order."""
    scalar = _column(table, "value")
    lists = _column(table, "values")
    if lists is None:
        assert scalar is not None
        present = scalar.is_valid().to_numpy(zero_copy_only=False)
        return present.astype(np.int64), _plain(scalar.drop_null())
    sizes = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    flat = _plain(lists.flatten())
    if scalar is None:
        return sizes, flat
    single = scalar.is_valid().to_numpy(zero_copy_only=False) & (sizes == 0)
    total = sizes + single
    merged = np.empty(int(total.sum()), object)
    starts = np.cumsum(total) - total
    merged[slices(starts, sizes)] = _objects(flat)
    merged[starts[single]] = _objects(_plain(scalar.filter(pa.array(single))))
    return total, _narrowed(merged)


def _column(table: pa.Table, name: str) -> pa.Array | None:
    if name not in table.column_names:
        return None
    column = table.column(name).combine_chunks()
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _plain(array: pa.Array) -> np.ndarray:
    """Constants as int64 or float64 where that is exact, else as Python objects."""
    array = readable(array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_struct(array.type):
        merged = np.empty(len(array), object)
        for field in array.flatten():
            at = np.flatnonzero(field.is_valid().to_numpy(zero_copy_only=False))
            merged[at] = _objects(_plain(field.drop_null()))
        return merged
    if array.null_count:  # a null in a list: refused with its subscription, further down
        return _objects(python_values(array))
    if pa.types.is_integer(array.type) and array.type != pa.uint64():
        return array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(array.type):
        return array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return _objects(python_values(array))


def _objects(values: Any) -> np.ndarray:
    merged = np.empty(len(values), object)
    merged[:] = values.tolist() if isinstance(values, np.ndarray) else values
    return merged


def _narrowed(merged: np.ndarray) -> np.ndarray:
    """As one numeric type where all constants have it."""
    kinds = {type(value) for value in merged.tolist()}
    if kinds == {int} and are_plain(merged):
        return merged.astype(np.int64)
    return merged.astype(np.float64) if kinds == {float} else merged


def are_plain(values: Any) -> bool:
    """Whether no constant is a decimal or an int of more than 64 bits."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return True
    kinds = set(map(type, values))  # without a step of Python for each: there are many
    if any(issubclass(kind, Decimal) for kind in kinds):
        return False
    ints = [value for value in values if type(value) is int] if int in kinds else []
    return not ints or (min(ints) >= INT_MIN and max(ints) <= INT_MAX)


def is_exact(value: Any) -> bool:
    return isinstance(value, Decimal) or (type(value) is int and not INT_MIN <= value <= INT_MAX)
