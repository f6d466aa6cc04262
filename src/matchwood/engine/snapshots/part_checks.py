"""What the arrays of a snapshot's tables must be, so that no kernel reads outside of them.

Indexes say the same of their own layouts (`Index.check`).  Together with `settings.py` these checks
make a forged snapshot an error or a matcher with other answers, never a crash.
"""

from __future__ import annotations

import codecs
from itertools import pairwise
from typing import Any

import numpy as np

from matchwood.encode.dictionary import HIGHEST_LABEL, LOWEST_LABEL
from matchwood.encode.expression_kernels import CONJUNCTION, NEVER, TREE
from matchwood.kernel.arrays import slices
from matchwood.kernel.checks import Column, check, check_slices, expect

Arrays = dict[str, np.ndarray]
INT, FLOAT, NAN_KIND, TEXT, DECIMAL = range(5)
"""Kinds of constants."""

_PREDICATES = {
    "attr": Column("int32", "P", -1, "A"),
    "lo": Column("int64", "P"),
    "hi": Column("int64", "P"),
    "n_intervals": Column("int32", "P"),
    "interval_start": Column("int64", "P"),
    "refs": Column("int32", "P"),
    "interval_lo": Column("int64", "I"),
    "interval_hi": Column("int64", "I"),
}
_EXPRESSIONS = {
    "kind": Column("uint8", "S", CONJUNCTION, NEVER + 1),
    "start": Column("int64", "S"),
    "size": Column("int32", "S", 0),
    "code": Column("int32", "N", None, "P"),
}
_SUBSCRIPTIONS = {"order": Column("int64", "S"), "id_int": Column("int64", "S")}
_TEXTS = {
    "text_start": Column("int64", "S"),
    "text_size": Column("int32", "S", -1),
    "text_bytes": Column("uint8", "B"),
}
_CONSTANTS = {
    "attr": Column("int32", "K", 0, "A"),
    "label": Column("int64", "K", LOWEST_LABEL, HIGHEST_LABEL + 1),
    "kind": Column("uint8", "K", INT, DECIMAL + 1),
    "int": Column("int64", "K"),
    "float": Column("float64", "K"),
}
_CONTEXT = {"slot_row": Column("int32", "S", -1, "R"), "keys": Column("int64", ("R", "C"))}
_MERGED = {"slot": Column("int32", "M", 0, "S"), "attr": Column("int32", "M", 0, "A")}
_KINDS = {"string": {TEXT}, "number": {INT, FLOAT, NAN_KIND, DECIMAL}}


def check_tables(settings: dict[str, Any], arrays: Arrays) -> None:
    """Compare the arrays of all tables with what their kernels take for granted."""
    n_attributes = len(settings["attributes"])
    sizes = check(arrays, _PREDICATES, "predicate_", A=n_attributes)
    n_predicates = sizes["P"]
    sizes = check(arrays, _EXPRESSIONS, "expression_", P=n_predicates)
    _check_predicates(arrays)
    _check_expressions(arrays)
    n = sizes["S"]
    check(arrays, _SUBSCRIPTIONS, "subscription_", S=n)
    order = arrays["subscription_order"]
    expect((order == np.arange(n)).all(), "subscription_order", "slots as they were added")
    check_texts(arrays, "subscription_", n)
    if "subscription_id_text_start" in arrays:
        check_texts(arrays, "subscription_id_", n)
    _check_fields(arrays, n)
    _check_constants(settings, arrays, n_attributes)
    if "merged_slot" in arrays:
        check(arrays, _MERGED, "merged_", S=n, A=n_attributes)
    if "context" in settings:
        context = settings["context"]
        given = {"S": n, "R": len(context["ids"]), "C": len(context["columns"])}
        check(arrays, _CONTEXT, "context_", **given)


def _check_fields(arrays: Arrays, n: int) -> None:
    """What subscriptions have beside; before version 3 nothing."""
    names = [name for name in ("added", "priority", "expires") if f"subscription_{name}" in arrays]
    check(arrays, {name: Column("int64", "S") for name in names}, "subscription_", S=n)
    for name in ("attributes", "payload"):
        if f"subscription_{name}_text_start" in arrays:
            check_texts(arrays, f"subscription_{name}_", n)


def _check_predicates(arrays: Arrays) -> None:
    """Intervals inside the arena, and as many references as expressions have."""
    attr, n_intervals = arrays["predicate_attr"], arrays["predicate_n_intervals"]
    used = attr >= 0
    if not used.all():
        n_intervals = np.where(used, n_intervals, 1)
    if len(n_intervals):
        expect(n_intervals.min() >= 1, "predicate_n_intervals", "one interval at least")
    several = np.flatnonzero(n_intervals > 1)
    start, size = arrays["predicate_interval_start"][several], n_intervals[several]
    check_slices("predicate_interval_start", start, size, len(arrays["predicate_interval_lo"]))
    is_set = arrays["predicate_lo"] <= arrays["predicate_hi"]
    expect((is_set | ~used).all(), "predicate_lo", "sets that are not empty")
    total = int(size.sum())
    expect(total <= len(arrays["predicate_interval_lo"]), "predicate_n_intervals", "sets apart")
    at = slices(start, size)
    lo, hi = arrays["predicate_interval_lo"][at], arrays["predicate_interval_hi"][at]
    expect((lo <= hi).all(), "predicate_interval_lo", "intervals that are not empty")
    last = np.cumsum(size, dtype=np.int64) - 1
    first = last - size + 1
    is_last = np.zeros(len(lo), bool)
    is_last[last] = True
    expect((is_last[:-1] | (hi[:-1] < lo[1:])).all(), "predicate_interval_lo", "sets in order")
    is_hull = (arrays["predicate_lo"][several] == lo[first]) & (
        arrays["predicate_hi"][several] == hi[last]
    )
    expect(is_hull.all(), "predicate_lo", "the ends of each set")


def _check_expressions(arrays: Arrays) -> None:
    """Codes inside the array, well-formed, of predicates in use, each counted once."""
    kind, size, code = (arrays[f"expression_{name}"] for name in ("kind", "size", "code"))
    start = arrays["expression_start"]
    holds = (kind == CONJUNCTION) | (kind == TREE)
    expect(((size > 0) == holds).all(), "expression_size", "code exactly where there is any")
    check_slices("expression_start", start, size, len(code))
    total = int(size.sum(dtype=np.int64))
    expect(total <= len(code), "expression_size", "codes apart")
    joined = code if _is_joined(start, size, len(code)) else code[slices(start, size)]
    leaves = joined[joined >= 0] if len(joined) and joined.min() < 0 else joined
    counted = np.bincount(leaves, minlength=len(arrays["predicate_attr"]))
    expect((counted == arrays["predicate_refs"]).all(), "predicate_refs", "the uses of each")
    is_used = arrays["predicate_attr"] >= 0
    expect(((counted > 0) == is_used).all(), "predicate_attr", "predicates in use")
    _check_conjunctions(arrays, joined, size, kind)
    _check_trees(joined, size, kind)


def _is_joined(start: np.ndarray, size: np.ndarray, n_code: int) -> bool:
    """Whether codes lie one after the other, in the order of slots, with nothing in between."""
    ends = np.cumsum(size, dtype=np.int64)
    is_whole = int(ends[-1]) == n_code if len(ends) else n_code == 0
    return bool(is_whole and ((start == ends - size) | (size == 0)).all())


def _check_conjunctions(
    arrays: Arrays, joined: np.ndarray, size: np.ndarray, kind: np.ndarray
) -> None:
    """Predicates only, their attributes ascending."""
    of_conjunction = np.repeat(kind == CONJUNCTION, size)
    expect((joined[of_conjunction] >= 0).all(), "expression_code", "predicates of conjunctions")
    if len(joined) < 2:
        return
    attr = arrays["predicate_attr"][np.maximum(joined, 0)]
    is_first = np.zeros(len(joined) + 1, bool)
    is_first[np.cumsum(size, dtype=np.int64)] = True
    ascends = (attr[1:] > attr[:-1]) | is_first[1:-1] | ~of_conjunction[1:]
    expect(ascends.all(), "expression_code", "predicates by attribute")


def _check_trees(joined: np.ndarray, size: np.ndarray, kind: np.ndarray) -> None:
    """Prefix codes: every operator has two operands at least, and exactly those follow."""
    is_tree = kind == TREE
    if not is_tree.any():
        return
    code = joined[np.repeat(is_tree, size)].astype(np.int64)
    operands = np.where(code < 0, (-code - 1) // 2, 0)
    expect((operands[code < 0] >= 2).all(), "expression_code", "operators of two or more")
    ends = np.cumsum(size[is_tree], dtype=np.int64)
    first = ends - size[is_tree]
    expect((code[first] < 0).all(), "expression_code", "trees that begin with an operator")
    open_ = np.cumsum(operands - 1)  # operands still to come, each tree leaving -1 behind
    expected = -np.arange(1, len(ends) + 1)
    expect((open_[ends - 1] == expected).all(), "expression_code", "all operands of a tree")
    inside = np.ones(len(code), bool)
    inside[ends - 1] = False
    before = np.repeat(expected + 1, size[is_tree])
    expect((open_ >= before)[inside].all(), "expression_code", "no more operands of a tree")


def check_texts(arrays: Arrays, prefix: str, n: int) -> None:
    """Texts inside their bytes, and UTF-8, each of them."""
    check(arrays, _TEXTS, prefix, S=n)
    start, size = arrays[f"{prefix}text_start"], arrays[f"{prefix}text_size"]
    data = arrays[f"{prefix}text_bytes"]
    check_slices(f"{prefix}text_start", start, size, len(data))
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for first in range(0, len(data), 2**22):
            decoder.decode(data[first : first + 2**22].tobytes())
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        expect(False, f"{prefix}text_bytes", "UTF-8")
    has_text = size > 0
    ends = np.concatenate([start[has_text], start[has_text] + size[has_text]])
    inside = data[ends[ends < len(data)]]
    expect(((inside & 0xC0) != 0x80).all(), f"{prefix}text_start", "whole characters")


def _check_constants(settings: dict[str, Any], arrays: Arrays, n_attributes: int) -> None:
    """Constants by attribute, of its type, their labels ascending; values when they are read."""
    n = check(arrays, _CONSTANTS, "constant_", A=n_attributes)["K"]
    check_texts(arrays, "constant_", n)
    attr, label, kind = (arrays[f"constant_{name}"] for name in ("attr", "label", "kind"))
    is_same = attr[1:] == attr[:-1]
    expect(((attr[1:] > attr[:-1]) | is_same).all(), "constant_attr", "attributes ascending")
    expect(((label[1:] > label[:-1]) | ~is_same).all(), "constant_label", "labels ascending")
    has_text = (kind == TEXT) | (kind == DECIMAL)
    expect((has_text == (arrays["constant_text_size"] >= 0)).all(), "constant_kind", "texts")
    is_nan = np.isnan(arrays["constant_float"])
    expect(not is_nan.any(), "constant_float", "numbers")
    types = [each["type"] for each in settings["attributes"]]
    first = np.flatnonzero(np.concatenate([np.ones(min(n, 1), bool), ~is_same]))
    for begin, end in pairwise([*first.tolist(), n]):
        allowed = _KINDS.get(types[int(attr[begin])] or "", set())
        expect(set(np.unique(kind[begin:end]).tolist()) <= allowed, "constant_kind", "its type")
