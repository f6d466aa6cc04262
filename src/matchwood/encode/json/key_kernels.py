"""Values on a tape of JSON documents to keys: the last step from text to an encoded event.

What becomes of a value depends on its path and on its *class*: BOOLEAN, WHOLE (an integer),
FRACTION (a double), TEXT, or NESTED (a list or an object).

Layout of the plan   (P paths, T tables of numbers, U tables of strings)
    presence   int32[P]     the attribute that every value but null supplies with key 0, NONE
    action     uint8[P, C]  what a class of values becomes
    target     int32[P, C]  the attribute that it supplies
    table      int32[P, C]  which table it is looked up in
    n_unknown  int32[P, C]  kinds of predicates on this path that such a value leaves unknown
    absent     int32[K]     paths whose absence some subscription asks for
    absence    int32[K]     the attribute that supplies it

    numbers: see `columns.NumberLabels`; table t has `number_start[t]:number_start[t + 1]`
    label, float_ceil, is_float, int_ceil, is_int;  int_count int64[T] constants that integers reach
    gap        int64[T]     the key where a table has no constant

    strings: table u has `string_start[u]:string_start[u + 1]`, ascending
    string_label int64[];  text_start int64[] slice of `texts`, uint8[]: UTF-8, and PADDING
    shared     int64[U]     bytes that all constants of a table begin with
    word       int64[]      the eight bytes behind these, in an order that keeps that of texts
    place      int32[2^k]   constants by hash of (table, text), see id_table_kernels
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.json.walk_kernels import (
    COPIED,
    DOUBLE,
    FALSE,
    INTEGER,
    LIST,
    NONE,
    OBJECT,
    STRING,
    TRUE,
    name_hash,
)
from matchwood.kernel.byte_kernels import are_same, hash_bytes, tail_word
from matchwood.kernel.id_table_kernels import EMPTY, first_cell, next_cell, put_id
from matchwood.kernel.jit import inlined, kernel, reversed_bytes, word_at
from matchwood.kernel.sort_kernels import first_not_below, last_not_above

BOOLEAN, WHOLE, FRACTION, TEXT, NESTED = range(5)
N_CLASSES = 5

NOTHING, BY_HAND, AS_IS, AS_FLOAT, AS_NUMBER, AS_STRING = range(6)
"""A value supplies nothing; is left to Python; is its own key; has the key of a float, of a number
or of a string."""

CLASS_OF = np.zeros(8, np.int64)
for _kinds, _class in (
    ((FALSE, TRUE), BOOLEAN),
    ((INTEGER,), WHOLE),
    ((DOUBLE,), FRACTION),
    ((STRING, COPIED), TEXT),
    ((LIST, OBJECT), NESTED),
):
    for _kind in _kinds:
        CLASS_OF[_kind] = _class

SIGN_MASK = np.int64(2**63 - 1)
LOWEST, HIGHEST = np.int64(-(2**63)), np.int64(2**63 - 1)
EXACT_INTEGER = 2**53


class Plan(NamedTuple):
    """See the module's docstring."""

    presence: np.ndarray
    action: np.ndarray
    target: np.ndarray
    table: np.ndarray
    n_unknown: np.ndarray
    absent: np.ndarray
    absence: np.ndarray
    number_start: np.ndarray
    label: np.ndarray
    float_ceil: np.ndarray
    is_float: np.ndarray
    int_ceil: np.ndarray
    is_int: np.ndarray
    int_count: np.ndarray
    gap: np.ndarray
    string_start: np.ndarray
    string_label: np.ndarray
    text_start: np.ndarray
    texts: np.ndarray
    shared: np.ndarray
    word: np.ndarray
    cell: np.ndarray


@inlined
def _text_hash(table, texts, begin, end):
    return name_hash(table, hash_bytes(texts, begin, end))


@inlined
def _ordered_word(texts, begin, end):
    """The first eight bytes of `texts[begin:end]` as an int64 that is smaller for smaller texts."""
    word = tail_word(texts, begin, end - begin) if end - begin < 8 else word_at(texts, begin)
    return reversed_bytes(np.int64(word)) ^ LOWEST


@kernel
def fill_strings(plan):
    """Enter all string constants into the empty table of places, and write their words."""
    for table in range(len(plan.string_start) - 1):
        for i in range(plan.string_start[table], plan.string_start[table + 1]):
            begin, end = plan.text_start[i], plan.text_start[i + 1]
            put_id(plan.cell, _text_hash(table, plan.texts, begin, end), i)
            plan.word[i] = _ordered_word(plan.texts, begin + plan.shared[table], end)


@inlined
def _compare(plan, i, texts, begin, end):
    """Below, at or above 0 as constant i is below, equal to or above a text."""
    start = plan.text_start[i]
    length = plan.text_start[i + 1] - start
    for k in range(min(length, end - begin)):
        if plan.texts[start + k] != texts[begin + k]:
            return np.int64(plan.texts[start + k]) - np.int64(texts[begin + k])
    return np.int64(length - (end - begin))


@inlined
def _first_above(plan, table, texts, begin, end):
    """The first constant of a table that is above a text, which is no constant; last: none."""
    first, last = plan.string_start[table], plan.string_start[table + 1]
    start, shared = plan.text_start[first], plan.shared[table]
    if end - begin < shared or not are_same(plan.texts, start, texts, begin, shared):
        return first if _compare(plan, first, texts, begin, end) > 0 else last
    key = _ordered_word(texts, begin + shared, end)
    low = first_not_below(plan.word, first, last, key)
    if low == last or plan.word[low] != key:
        return low
    high = last if key == HIGHEST else first_not_below(plan.word, low, last, key + 1)
    while low < high:  # all of these have the same eight bytes
        middle = (low + high) >> 1
        if _compare(plan, middle, texts, begin, end) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _string_key(plan, table, texts, begin, end):
    """The label of an equal constant, else the key of the gap that a text falls into."""
    first, last = plan.string_start[table], plan.string_start[table + 1]
    if first == last:
        return np.int64(0)
    at = first_cell(plan.cell, _text_hash(table, texts, begin, end))
    while plan.cell[at] != EMPTY:
        i = np.int64(plan.cell[at])
        start = plan.text_start[i]
        if first <= i < last and plan.text_start[i + 1] - start == end - begin:
            if are_same(plan.texts, start, texts, begin, end - begin):
                return plan.string_label[i]
        at = next_cell(plan.cell, at)
    above = _first_above(plan, table, texts, begin, end)
    return plan.string_label[first] - 1 if above == first else plan.string_label[above - 1] + 1


@inlined
def _key_between(ceil, is_exact, label, value, first, last):
    """The key of a number among constants first..last: see `column_kernels.place_numbers`."""
    low = last_not_above(ceil, first - 1, last, value)
    if low < first:
        return label[first] - 1
    return label[low] + np.int64(not (is_exact[low] and ceil[low] == value))


@inlined
def number_key(plan, table, kind, value, double):
    first, last = plan.number_start[table], plan.number_start[table + 1]
    if first == last:
        return plan.gap[table]
    if kind == DOUBLE:
        return _key_between(plan.float_ceil, plan.is_float, plan.label, double, first, last)
    last = first + plan.int_count[table]
    return _key_between(plan.int_ceil, plan.is_int, plan.label, value, first, last)


@inlined
def float_key(bits):
    """See `keys.float_key`; JSON has no NaN."""
    if bits == ~SIGN_MASK:
        return np.int64(0)  # -0.0
    return bits if bits >= 0 else bits ^ SIGN_MASK


@inlined
def _key_of(plan, path, kind, value, end, data, copied, scratch):
    """The key of a value whose action is not NOTHING nor BY_HAND, and whether there is one."""
    of = CLASS_OF[kind]
    action = plan.action[path, of]
    table = plan.table[path, of]
    if action == AS_STRING:
        texts = copied if kind == COPIED else data
        return _string_key(plan, table, texts, value, end), True
    if kind == FALSE or kind == TRUE:
        return np.int64(kind == TRUE), True
    scratch.bits[0] = value
    if action == AS_NUMBER:
        return number_key(plan, table, np.int64(kind), value, scratch.double[0]), True
    if action == AS_IS:
        return value, True
    if kind == INTEGER:
        if value > EXACT_INTEGER or value < -EXACT_INTEGER:
            return np.int64(0), False
        scratch.double[0] = np.float64(value)
    return float_key(scratch.bits[0]), True


@inlined
def encode_values(plan, tape, values, data, entries, n, scratch):
    """Write the entries of one document from n on; the end of them, or NONE: left to Python.

    entries `attr` and `key`, and `seen`, int64[P]: the document that last had a path
    values  the document's slice of the tape, begin and end, and a number that no other one has
    """
    begin, end, document = values
    for i in range(begin, end):
        path, kind = tape.path[i], tape.kind[i]
        of = CLASS_OF[kind]
        action = plan.action[path, of]
        if action == BY_HAND:
            return np.int64(NONE)
        entries.seen[path] = document
        if plan.presence[path] != NONE:
            entries.attr[n], entries.key[n] = plan.presence[path], 0
            n += 1
        if action != NOTHING:
            key, is_found = _key_of(
                plan, path, kind, tape.value[i], tape.end[i], data, tape.copied, scratch
            )
            if not is_found:
                return np.int64(NONE)
            entries.attr[n], entries.key[n] = plan.target[path, of], key
            n += 1
    for k in range(len(plan.absent)):
        if entries.seen[plan.absent[k]] != document:
            entries.attr[n], entries.key[n] = plan.absence[k], 1
            n += 1
    return n
