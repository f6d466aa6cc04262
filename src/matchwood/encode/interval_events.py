"""Events that carry predicates instead of values (BE-Tree paper, section 3).

An event such as `price BETWEEN 20 AND 30 AND genre = 'classics'` stands for all the values it
allows. A predicate of a subscription holds when it shares a key with the event's set for that
attribute; an attribute that the event does not mention is absent.

The event is first merged on its own, with dictionaries of its own, by the same kernel as a
subscription: contradictions show, `x > 1 AND x < 3` is one set and so is `x = 1 OR x = 5`; an OR
over two attributes is refused.  The ends of its sets are then looked up in the subscriptions'
dictionaries; an end that is no constant there touches the gap it falls into.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.attributes import Attribute, Attributes
from matchwood.encode.dictionary import OrderedDictionary
from matchwood.encode.exact import Exact
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.keys import INT_MAX, INT_MIN, NAN, DictionaryKeys, float_place
from matchwood.encode.leaves import OPERATOR, PATTERN, LeafBatch
from matchwood.encode.resolve import resolve
from matchwood.errors import EventError, ExpansionError, SchemaError
from matchwood.forms.merge_kernels import AND, FALSE, LEAF, TRUE, Workspace, merged
from matchwood.forms.nnf import nnf
from matchwood.lang.nodes import TRUE as TRUE_NODE
from matchwood.lang.nodes import And, Comparison, Expr, In, IsNull, Or, predicates

Interval = tuple[int, int]


class KeySets(NamedTuple):
    """The keys one entry of an event allows, as sorted disjoint intervals."""

    intervals: tuple[Interval, ...]


def interval_entries(attributes: Attributes, event: Expr) -> dict[int, KeySets]:
    """Key sets by attribute id, derived attributes included."""
    try:
        normal = _without_absences(nnf(event))
        own, sets = _own_sets(attributes, normal)
    except (SchemaError, ExpansionError, EventError) as error:
        raise EventError(f"event {str(event)[:80]!r}: {error}") from None
    entries: dict[int, KeySets] = {}
    for id_, intervals in sets.items():
        attribute = attributes.by_name.get(own.all[id_].name)
        if attribute is not None and not attribute.is_hidden:
            entries[attribute.id] = KeySets(_translated(attribute, own.all[id_], intervals))
            entries.update(_patterns(attribute, normal))
            if attribute.beside_id >= 0:
                beside = attributes.all[attribute.beside_id]
                entries[beside.id] = KeySets(_beside(beside, own.all[id_], intervals))
            exact = attributes.exact(attribute)
            if exact is not None and isinstance(own.all[id_].keys, DictionaryKeys):
                entries[exact.id] = KeySets(_translated(exact, own.all[id_], intervals))
    return entries


def _without_absences(node: Expr) -> Expr:
    """`x IS NULL` in an event says what leaving x out says."""
    if isinstance(node, IsNull) and not node.negated:
        return TRUE_NODE
    if isinstance(node, (And, Or)):
        return type(node)(tuple([_without_absences(each) for each in node.operands]))
    return node


def _own_sets(
    known: Attributes, normal: Expr
) -> tuple[Attributes, dict[int, tuple[Interval, ...]]]:
    """The event's sets by its own attributes and keys, with the types that are known."""
    batch = LeafBatch(spells_out=False)  # an event's own constants are what is written
    batch.add(normal)
    if any(op & OPERATOR == PATTERN for op in batch.op):
        raise EventError(
            "expected values, ranges or prefixes in an event, found a LIKE pattern whose values "
            "are no interval"
        )
    own = Attributes()
    for name in batch.names:
        attribute = known.by_name.get(name)
        own.get(name, attribute.type if attribute is not None else None)
    leaves = resolve(batch, own, ExpressionTable())
    ws, root = merged(leaves, np.array(batch.code, np.int32))
    return own, _conjunction(ws, root)


def _conjunction(ws: Workspace, root: int) -> dict[int, tuple[Interval, ...]]:
    kind = ws.node_kind[root]
    if kind == FALSE:
        raise EventError("expected an event that can happen, found a contradiction")
    if kind == TRUE:
        return {}
    nodes = [root]
    if kind == AND:
        nodes = ws.child[ws.node_start[root] : ws.node_start[root] + ws.node_n[root]].tolist()
    if any(ws.node_kind[node] != LEAF for node in nodes):
        raise EventError(
            "expected a conjunction of predicates as an event, found OR over several attributes: "
            "match its parts one by one"
        )
    found = {}
    for node in nodes:
        start, end = ws.node_start[node], ws.node_start[node] + ws.node_n[node]
        intervals = zip(ws.pool_lo[start:end].tolist(), ws.pool_hi[start:end].tolist(), strict=True)
        found[int(ws.node_attr[node])] = tuple(intervals)
    return found


def _translated(
    attribute: Attribute, own: Attribute, intervals: tuple[Interval, ...]
) -> tuple[Interval, ...]:
    """The event's intervals in the subscriptions' keys."""
    if attribute.keys is None:
        return ((0, 0),)  # no subscription asks for more than presence
    if not isinstance(attribute.keys, DictionaryKeys):
        return intervals
    assert isinstance(own.keys, DictionaryKeys)
    source, target = own.keys.dictionary, attribute.keys.dictionary
    joined: list[Interval] = []
    for lo, hi in intervals:
        low = INT_MIN if lo == INT_MIN else _end(source, target, lo, inward=1)
        high = INT_MAX if hi == INT_MAX else _end(source, target, hi, inward=-1)
        if joined and low <= joined[-1][1] + 1:  # two intervals that touch the same gap
            low, high = joined[-1][0], max(high, joined[-1][1])
            joined.pop()
        joined.append((low, high))
    return tuple(joined)


def _beside(
    beside: Attribute, own: Attribute, intervals: tuple[Interval, ...]
) -> tuple[Interval, ...]:
    """The event's intervals in the keys of the context, from its own."""
    if beside.type == "string":
        return _translated(beside, own, intervals)
    found = [
        (
            INT_MIN if lo == INT_MIN else _float_end(own, lo, inward=1),
            INT_MAX if hi == INT_MAX else _float_end(own, hi, inward=-1),
        )
        for lo, hi in intervals
    ]
    return tuple(found)


def _float_end(own: Attribute, key: int, inward: int) -> int:
    """One end as the key of a double; a strict bound is the next double inside it."""
    is_strict = False
    value: int | float | Exact = key
    if isinstance(own.keys, DictionaryKeys):
        constant = own.keys.dictionary.value_of(key)
        is_strict = constant is None
        if is_strict:
            constant = own.keys.dictionary.value_of(key - inward)
        value = float("nan") if constant is NAN else constant
    low, high = float_place(value)
    if low != high:  # between two doubles
        return low if inward > 0 else high
    return low + inward if is_strict else low


def _end(source: OrderedDictionary, target: OrderedDictionary, key: int, inward: int) -> int:
    """One end: a constant, or (beside its label) just inside it; or the gap that it falls into."""
    value = source.value_of(key)
    is_strict = value is None
    if is_strict:
        value = source.value_of(key - inward)
    label = target.label_of.get(value)
    if label is None:
        return target.gap(value)
    return label + inward if is_strict else label


def _patterns(attribute: Attribute, normal: Expr) -> dict[int, KeySets]:
    """A general LIKE of a subscription: decided for strings the event lists, open for a range."""
    if not attribute.patterns:
        return {}
    values = _listed_values(attribute.name, normal)
    entries = {}
    for pattern in attribute.patterns.values():
        if values is None:
            entries[pattern.attr_id] = KeySets(((0, 1),))
        else:
            fits = sorted({int(pattern.regex.fullmatch(value) is not None) for value in values})
            entries[pattern.attr_id] = KeySets(((fits[0], fits[-1]),))
    return entries


def _listed_values(name: str, normal: Expr) -> list[str] | None:
    """The strings that a conjunction lists for an attribute; None when it allows a range."""
    lists = []
    for leaf in predicates(normal) if not isinstance(normal, Or) else ():
        if leaf.name != name:
            continue
        if isinstance(leaf, Comparison) and leaf.op == "=":
            lists.append([str(leaf.value)])
        elif isinstance(leaf, In) and not leaf.negated:
            lists.append([str(value) for value in leaf.values])
    return min(lists, key=len) if lists else None
