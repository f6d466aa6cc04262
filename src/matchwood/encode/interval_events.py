"""Events that carry predicates instead of values (BE-Tree paper, section 3).

An event such as `price BETWEEN 20 AND 30 AND genre = 'classics'` stands for all the values it
allows. A predicate of a subscription holds when it shares a key with the event's set for that
attribute; an attribute that the event does not mention is absent.

The event is first merged on its own, with dictionaries of its own, by the same kernel as a
subscription: `x > 1 AND x < 3` is one set and so is `x = 1 OR x = 5`; an OR over two attributes is
refused.  Its sets are then read as ranges of values that exist (see `domains`): contradictions
show, and strict ends become the next value.  The ends of the ranges are looked up in the
subscriptions' dictionaries; an end that is no constant there touches the gap it falls into.

`x IS NULL` allows no value of x, `x IS NULL OR x > 5` allows both: the event then also has the
attribute that stands for the absence of x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.domains import Range, existing, without_empty_gaps
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.keys import INT_MAX, INT_MIN, NAN, DictionaryKeys, float_place
from matchwood.encode.kinds import MOMENTS, split
from matchwood.encode.leaves import OPERATOR, PATTERN, REFERENCE, LeafBatch
from matchwood.encode.merge_kernels import AND, FALSE, LEAF, TRUE, Workspace, merged
from matchwood.encode.resolve import resolve
from matchwood.encode.schema import Schema
from matchwood.errors import EventError, ExpansionError, SchemaError
from matchwood.forms.nnf import nnf
from matchwood.lang.literals import LiteralError
from matchwood.lang.moments import read_date, read_timestamp
from matchwood.lang.nodes import FALSE as FALSE_NODE
from matchwood.lang.nodes import And, Const, Expr, IsNull, Or, predicates

Interval = tuple[int, int]


class KeySets(NamedTuple):
    """The keys one entry of an event allows, as sorted disjoint intervals."""

    intervals: tuple[Interval, ...]


class _Contradiction(Exception):
    """No value satisfies the event."""

    def __str__(self) -> str:
        return "expected an event that can happen, found a contradiction"


Allowed = dict[str, list[Range]]
"""The values that an event allows, by the name of an attribute."""


def interval_entries(attributes: Attributes, event: Expr) -> dict[int, KeySets]:
    """Key sets by attribute id, derived attributes included."""
    try:
        allowed, maybe_absent = _allowed(attributes, _of_declared(attributes, nnf(event)))
    except (SchemaError, ExpansionError, EventError, _Contradiction) as error:
        raise EventError(f"event {str(event)[:80]!r}: {error}") from None
    entries: dict[int, KeySets] = dict(_any_value(attributes, allowed))
    for name, attribute, ranges in _asked(attributes, allowed):
        if attribute.keys is None:
            entries[attribute.id] = KeySets(((0, 0),))
            if name in maybe_absent and attribute.absence_id >= 0:
                entries[attribute.absence_id] = KeySets(((1, 1),))
            continue
        entries[attribute.id] = _keys(attribute, ranges)
        for pattern in attribute.patterns.values():
            fits = _fits(pattern.regex.fullmatch, ranges)
            entries[pattern.attr_id] = KeySets(((min(fits), max(fits)),))
        if attribute.beside_id >= 0:
            entries[attribute.beside_id] = _derived(attributes.all[attribute.beside_id], ranges)
        exact = attributes.exact(attribute)
        if exact is not None and isinstance(exact.keys, DictionaryKeys):
            entries[exact.id] = _keys(exact, ranges)
        if name in maybe_absent and attribute.absence_id >= 0:
            entries[attribute.absence_id] = KeySets(((1, 1),))
    return entries


def _of_declared(attributes: Attributes, node: Expr) -> Expr:
    """Of a declared attribute what is of no other kind is absent; an open one may be anything."""
    if isinstance(node, (And, Or)):
        return type(node)(tuple([_of_declared(attributes, each) for each in node.operands]))
    if isinstance(node, IsNull) and node.kind is not None:
        if attributes.is_declared(node.name):
            return IsNull(node.name, node.negated)
        if not node.negated:
            raise EventError(
                "expected values, ranges or prefixes in an event, found a test for values of "
                f"another kind: write {node.name} IS NULL, or declare its type with Schema"
            )
    return node


def _asked(
    attributes: Attributes, allowed: Allowed
) -> Iterator[tuple[str, Attribute, list[Range]]]:
    """The attributes of subscriptions that an event has values for, with these values."""
    for name, ranges in allowed.items():
        base, kind = split(name)
        attribute = attributes.by_name.get(base)
        if attribute is None or attribute.is_context:
            continue
        yield base, attribute, ranges
        for each in (kind, _OTHER_MOMENTS.get(kind or "")):
            if each is not None and each in attribute.kinds:
                yield base, attribute.kinds[each], ranges
        if kind == "string":
            for each in attribute.kinds.keys() & set(MOMENTS):
                moments = _moments(attribute.kinds[each], each, ranges)
                if moments:
                    yield base, attribute.kinds[each], moments


def _moments(attribute: Attribute, kind: str, ranges: Sequence[Range]) -> list[Range]:
    """Listed strings that read as dates or timestamps, as keys; a range of strings is none."""
    assert attribute.keys is not None
    found: list[Range] = []
    for each in ranges:
        if each.is_single:
            with suppress(LiteralError):
                read = read_timestamp if kind == "timestamp" else read_date
                key = attribute.keys.key(read(each.low))
                found.append(Range(key, key))
    return sorted(set(found))


def _any_value(attributes: Attributes, allowed: Allowed) -> Iterator[tuple[int, KeySets]]:
    """Entries of open attributes that the event says nothing of but their presence."""
    everything = KeySets(((INT_MIN, INT_MAX),))
    for name in allowed.keys() - {split(each)[0] for each in allowed if split(each)[1]}:
        attribute = attributes.by_name.get(name)
        for each in attribute.kinds.values() if attribute is not None else ():
            exact = attributes.exact(each)
            derived = [pattern.attr_id for pattern in each.patterns.values()]
            derived += [each.beside_id] if each.beside_id >= 0 else []
            derived += [exact.id] if exact is not None else []
            derived += [each.absence_id] if each.absence_id >= 0 else []
            yield from dict.fromkeys((each.id, *derived), everything).items()


_OTHER_MOMENTS = {"date": "timestamp", "timestamp": "date"}
"""Kinds whose keys are the same."""


# ── what the event allows ───────────────────────────────────────────────────────────────────────


def _allowed(known: Attributes, normal: Expr) -> tuple[Allowed, set[str]]:
    """The values allowed, and the names that may also be absent."""
    conjuncts = _conjuncts(normal)
    allowed: Allowed = {}
    maybe_absent: set[str] = set()
    for name in {each for part in conjuncts for each in _asked_absent(part)}:
        mine = [part for part in conjuncts if _names(part) == {name}]
        conjuncts = [part for part in conjuncts if _names(part) != {name}]
        may_be_absent = all(_allows_absence(part) for part in mine)
        try:
            allowed |= _values(known, [_if_present(part) for part in mine])
        except _Contradiction:
            if not may_be_absent:
                raise
            continue  # absent is all that x may be: as if the event did not mention it
        if may_be_absent:
            maybe_absent.add(name)
    for name, ranges in _values(known, conjuncts).items():
        if name in allowed:
            raise EventError(_SEVERAL)
        allowed[name] = ranges
    return allowed, maybe_absent


_SEVERAL = (
    "expected a conjunction of predicates as an event, found OR over several attributes: "
    "match its parts one by one"
)


def _conjuncts(node: Expr) -> list[Expr]:
    if isinstance(node, And):
        return [part for operand in node.operands for part in _conjuncts(operand)]
    return [node]


def _names(node: Expr) -> set[str]:
    return {leaf.name for leaf in predicates(node)}


def _is_absence(node: Expr) -> bool:
    return isinstance(node, IsNull) and not node.negated


def _asked_absent(node: Expr) -> set[str]:
    """The attribute that a part may leave absent; at most one."""
    found = {leaf.name for leaf in predicates(node) if _is_absence(leaf)}
    if found and len(_names(node)) > 1:
        raise EventError(_SEVERAL)
    return found


def _allows_absence(node: Expr) -> bool:
    """Whether a part on one attribute is TRUE when the attribute is absent."""
    if isinstance(node, (And, Or)):
        every = all if isinstance(node, And) else any
        return every([_allows_absence(each) for each in node.operands])
    return _is_absence(node) or (isinstance(node, Const) and node.value is True)


def _if_present(node: Expr) -> Expr:
    """What a part on one attribute says about its values."""
    if isinstance(node, (And, Or)):
        return type(node)(tuple([_if_present(each) for each in node.operands]))
    return FALSE_NODE if _is_absence(node) else node


def _values(known: Attributes, conjuncts: Sequence[Expr]) -> Allowed:
    """The values that parts without absences allow, by attribute."""
    batch = LeafBatch(spells_out=False)  # an event's own constants are what is written
    batch.add(conjuncts[0] if len(conjuncts) == 1 else And(tuple(conjuncts)))
    operators = {op & OPERATOR for op in batch.op}
    if PATTERN in operators:
        raise EventError(
            "expected values, ranges or prefixes in an event, found a LIKE pattern whose values "
            "are no interval"
        )
    if REFERENCE in operators:
        raise EventError(
            "expected values, ranges or prefixes in an event, found a value of the context: an "
            "event has none"
        )
    declared = {name: known.by_name[name].type for name in batch.names if name in known.by_name}
    typed = Attributes(Schema({name: kind for name, kind in declared.items() if kind is not None}))
    leaves = resolve(batch, typed, ExpressionTable())
    ws, root = merged(leaves, np.array(batch.code, np.int32))
    allowed = {}
    for id_, intervals in _conjunction(ws, root).items():
        allowed[typed.all[id_].name] = ranges = existing(typed.all[id_].keys, intervals)
        if not ranges:
            raise _Contradiction
    return allowed


def _conjunction(ws: Workspace, root: int) -> dict[int, tuple[Interval, ...]]:
    kind = ws.node_kind[root]
    if kind == FALSE:
        raise _Contradiction
    if kind == TRUE:
        return {}
    nodes = [root]
    if kind == AND:
        nodes = ws.child[ws.node_start[root] : ws.node_start[root] + ws.node_n[root]].tolist()
    if any(ws.node_kind[node] != LEAF for node in nodes):
        raise EventError(_SEVERAL)
    found = {}
    for node in nodes:
        start, end = ws.node_start[node], ws.node_start[node] + ws.node_n[node]
        intervals = zip(ws.pool_lo[start:end].tolist(), ws.pool_hi[start:end].tolist(), strict=True)
        found[int(ws.node_attr[node])] = tuple(intervals)
    return found


# ── in the subscriptions' keys ──────────────────────────────────────────────────────────────────


def _keys(attribute: Attribute, ranges: Sequence[Range]) -> KeySets:
    """Ranges of values as keys of an attribute."""
    keys = attribute.keys
    if keys is None:
        return KeySets(((0, 0),))  # no subscription asks for more than presence
    if not isinstance(keys, DictionaryKeys):
        return KeySets(tuple([(each.low, each.high) for each in ranges]))
    joined: list[Interval] = []
    for each in ranges:
        low = _end(keys, each.low, each.low_is_open, inward=1)
        high = INT_MAX
        if each.high is not None:
            high = _end(keys, each.high, each.high_is_open, inward=-1)
        if joined and low <= joined[-1][1] + 1:  # two ranges that touch the same gap
            low, high = joined[-1][0], max(high, joined[-1][1])
            joined.pop()
        joined.append((low, high))
    return KeySets(tuple([part for each in joined for part in without_empty_gaps(keys, *each)]))


def _end(keys: DictionaryKeys, value: Any, is_open: bool, inward: int) -> int:
    """The key of an end; that of an open one, or of no constant, is in the gap that it touches."""
    label = keys.dictionary.label_of.get(value)
    if label is None:
        return keys.dictionary.gap(value)
    return label + inward if is_open else label


def _derived(derived: Attribute, ranges: Sequence[Range]) -> KeySets:
    """Ranges of values in the keys of the context.

    An end between two doubles, or right beside one, is an interval of its own, from the double
    above it to the double below, as for a value: some x > 1 are below the next double, not at it.
    """
    if derived.type == "string":
        return _keys(derived, ranges)
    found: list[Interval] = []
    for each in ranges:
        low = _double_end(each.low, each.low_is_open, inward=1)
        high = _double_end(each.high, each.high_is_open, inward=-1)
        if low[0] > high[1]:  # no double lies in it
            found.append((low[0], high[1]))
            continue
        found += [low] if low[0] > low[1] else []
        found.append((low[0], high[1]))
        found += [high] if high[0] > high[1] else []
    return KeySets(tuple(found))


def _double_end(value: Any, is_open: bool, inward: int) -> Interval:
    """The first double from an end on and the last up to it, as keys."""
    low, high = float_place(float("nan") if value is NAN else value)
    if not is_open or low != high:
        return low, high
    return (low + 1, low) if inward > 0 else (low, low - 1)


def _fits(fullmatch: Callable[[str], Any], ranges: Sequence[Range]) -> set[int]:
    """Whether values fit a general LIKE, as keys: decided for listed strings, open for a range."""
    if all(each.is_single for each in ranges):
        return {int(fullmatch(each.low) is not None) for each in ranges}
    return {0, 1}
