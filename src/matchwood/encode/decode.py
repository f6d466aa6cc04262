"""From integers back to a tree, to show an encoded expression as text.

The result means the same as its source; it need not look the same (`NOT a` has become a comparison,
merged predicates stay merged).
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.exact import Exact
from matchwood.encode.expression_kernels import ALWAYS, CONJUNCTION, NEVER
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.keys import (
    EPOCH,
    EPOCH_DAY,
    INT_MAX,
    INT_MIN,
    MICROSECOND,
    NAN,
    DictionaryKeys,
    FloatKeys,
    float_key,
    float_of_key,
)
from matchwood.encode.kinds import split
from matchwood.lang import nodes
from matchwood.lang.literals import NAN as NAN_VALUE

Interval = tuple[int, int]

_DOMAINS = {
    "bool": (0, 1),
    "float": (float_key(-math.inf), float_key(math.nan)),
    "date": (date.min.toordinal() - EPOCH_DAY, date.max.toordinal() - EPOCH_DAY),
    "timestamp": tuple(
        [(each.replace(tzinfo=UTC) - EPOCH) // MICROSECOND for each in (datetime.min, datetime.max)]
    ),
}
"""First and last key that is a value's, where not every key is."""


def decode(table: ExpressionTable, attributes: Attributes, slot: int) -> nodes.Expr:
    """The expression in a slot."""
    kind = table.layout.kind[slot]
    if kind in (ALWAYS, NEVER):
        return nodes.TRUE if kind == ALWAYS else nodes.FALSE
    code = table.code_of(slot).tolist()
    if kind == CONJUNCTION:
        return _joined(nodes.And, [decode_predicate(table, attributes, pred) for pred in code])
    done: list[nodes.Expr] = []
    for token in reversed(code):
        if token >= 0:
            done.append(decode_predicate(table, attributes, token))
        else:
            n = (-token - 1) // 2
            operands = [done.pop() for _ in range(n)]
            done.append(_joined(nodes.And if token % 2 else nodes.Or, operands))
    return done[0]


def decode_predicate(table: ExpressionTable, attributes: Attributes, pred: int) -> nodes.Expr:
    """The expression that says what one predicate of the table says."""
    attribute = attributes.all[table.predicates.layout.attr[pred]]
    intervals = table.predicates.intervals(pred)
    if attribute.is_derived:
        return _derived(attributes, attribute, intervals)
    name, kind = split(attribute.name)
    if intervals == ((INT_MIN, INT_MAX),) and kind is not None:
        return nodes.IsNull(name, negated=True, kind=_asked(kind))
    if name != attribute.name:
        attribute = replace(attribute, name=name)
    if intervals == ((INT_MIN, INT_MAX),):
        return nodes.IsNull(attribute.name, negated=True)
    points = [lo for lo, hi in intervals if lo == hi]
    if len(points) == len(intervals) and _are_values(attribute, points):
        return _members(attribute, points, negated=False)
    holes = _holes(intervals)
    if holes is not None and _are_values(attribute, holes):
        return _members(attribute, holes, negated=True)
    return _joined(nodes.Or, [_range(attribute, lo, hi) for lo, hi in intervals])


def _derived(
    attributes: Attributes, derived: Attribute, intervals: tuple[Interval, ...]
) -> nodes.Expr:
    name, kind = split(attributes.all[derived.source].name)
    if derived.term is not None:
        reference = attributes.all[derived.term.context].name
        return nodes.Relation(
            name, derived.term.op, reference.removeprefix("ctx."), derived.term.offset
        )
    if derived.pattern is None:
        return nodes.IsNull(name, kind=None if kind is None else _asked(kind))
    fits, fails = (any(lo <= key <= hi for lo, hi in intervals) for key in (1, 0))
    if fits and fails:  # LIKE or not LIKE: any string
        return nodes.Like(name, "%")
    return nodes.Like(name, derived.pattern, negated=fails)


def _asked(kind: str) -> str:
    """The kind of constants that look at values of an internal kind."""
    return "date" if kind == "day" else kind


def _holes(intervals: tuple[Interval, ...]) -> list[int] | None:
    """The single keys that are missing from the whole, if that is all that is missing."""
    if intervals[0][0] != INT_MIN or intervals[-1][1] != INT_MAX:
        return None
    gaps = [(a[1] + 1, b[0] - 1) for a, b in pairwise(intervals)]
    return [lo for lo, _ in gaps] if all(lo == hi for lo, hi in gaps) else None


def _members(attribute: Attribute, keys: list[int], negated: bool) -> nodes.Expr:
    values = [_value(attribute, key) for key in keys]
    if len(values) == 1:
        return nodes.Comparison(attribute.name, "<>" if negated else "=", values[0])
    return nodes.In(attribute.name, tuple(values), negated)


def _range(attribute: Attribute, lo: int, hi: int) -> nodes.Expr:
    """lo <= key <= hi as comparisons; an end that is no value's key is a strict bound beside it."""
    if lo == hi and _has_value(attribute, lo):
        return nodes.Comparison(attribute.name, "=", _value(attribute, lo))
    bounds: list[nodes.Expr] = []
    first, last = _domain(attribute)
    if lo > first:
        is_value = _has_value(attribute, lo)
        bound = _value(attribute, lo if is_value else min(lo - 1, last))
        bounds.append(nodes.Comparison(attribute.name, ">=" if is_value else ">", bound))
    if hi < last:
        is_value = _has_value(attribute, hi)
        bound = _value(attribute, hi if is_value else max(hi + 1, first))
        bounds.append(nodes.Comparison(attribute.name, "<=" if is_value else "<", bound))
    if not bounds and attribute.base_id >= 0:
        return nodes.IsNull(attribute.name, negated=True, kind=_asked(attribute.type or "string"))
    return _joined(nodes.And, bounds) if bounds else nodes.IsNull(attribute.name, negated=True)


def _are_values(attribute: Attribute, keys: list[int]) -> bool:
    return all(_has_value(attribute, key) for key in keys)


def _has_value(attribute: Attribute, key: int) -> bool:
    if isinstance(attribute.keys, DictionaryKeys):
        return attribute.keys.dictionary.value_of(key) is not None
    if isinstance(attribute.keys, FloatKeys):  # no other NaN and no -0.0 has a key of its own
        return float_key(float_of_key(key)) == key
    first, last = _domain(attribute)
    return first <= key <= last


def _domain(attribute: Attribute) -> tuple[int, ...]:
    kind = "float" if isinstance(attribute.keys, FloatKeys) else attribute.type or ""
    return _DOMAINS.get(kind, (INT_MIN, INT_MAX))


def _value(attribute: Attribute, key: int) -> nodes.Value:
    if isinstance(attribute.keys, DictionaryKeys):
        value = attribute.keys.dictionary.value_of(key)
        if isinstance(value, Exact):
            return value.value
        return NAN_VALUE if value is NAN else value
    if attribute.type == "bool":
        return bool(key)
    if isinstance(attribute.keys, FloatKeys):
        return float_of_key(key)
    if attribute.type == "timestamp":
        return EPOCH + timedelta(microseconds=key)
    if attribute.type == "date":
        return date.fromordinal(key + EPOCH_DAY)
    return key


def _joined(kind: type[nodes.And] | type[nodes.Or], operands: list[nodes.Expr]) -> nodes.Expr:
    return operands[0] if len(operands) == 1 else kind(tuple(operands))
