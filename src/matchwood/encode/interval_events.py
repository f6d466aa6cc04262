"""Events that carry predicates instead of values (BE-Tree paper, section 3).

An event such as `price BETWEEN 20 AND 30 AND genre = 'classics'` stands for all the values it allows.
A predicate of a subscription holds when it shares a key with the event's set for that attribute; an
attribute that the event does not mention is absent.

The event is merged by the same kernel as a subscription, so `x > 1 AND x < 3` is one set and `x = 1 OR
x = 5` is one too; an OR over two attributes is refused.  Constants are looked up, never learned.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.encode.attributes import Attribute, Attributes
from matchwood.encode.keys import DictionaryKeys, keys_for
from matchwood.encode.leaves import OPERATOR, PATTERN, LeafBatch
from matchwood.encode.resolve import resolve
from matchwood.errors import EventError, ExpansionError, SchemaError
from matchwood.forms.merge_kernels import (
    AND,
    FALSE,
    FULL,
    LEAF,
    TRUE,
    Leaves,
    Workspace,
    merge_expression,
    new_workspace,
)
from matchwood.forms.nnf import nnf
from matchwood.lang.nodes import TRUE as TRUE_NODE
from matchwood.lang.nodes import And, Expr, IsNull, Or


class KeySets(NamedTuple):
    """The keys one entry of an event allows, as sorted disjoint intervals."""

    intervals: tuple[tuple[int, int], ...]


def interval_entries(attributes: Attributes, event: Expr) -> dict[int, KeySets]:
    """Key sets by attribute id, derived attributes included."""
    batch = LeafBatch()
    try:
        batch.add(_without_absences(nnf(event)))
        if any([op & OPERATOR == PATTERN for op in batch.op]):
            raise EventError(
                "expected values, ranges or prefixes in an event, found a LIKE pattern whose values "
                "are no interval"
            )
        leaves = resolve(batch, _PassingAttributes(attributes))
    except (SchemaError, ExpansionError, EventError) as error:
        raise EventError(f"event {str(event)[:80]!r}: {error}") from None
    found = _merged(leaves, np.array(batch.code, np.int32), event)
    known = len(attributes)
    entries = {attr: KeySets(sets) for attr, sets in found.items() if attr < known}
    for attr in list(entries):
        entries.update(_patterns(attributes.all[attr], entries[attr]))
    return entries


def _without_absences(node: Expr) -> Expr:
    """`x IS NULL` in an event says what leaving x out says."""
    if isinstance(node, IsNull) and not node.negated:
        return TRUE_NODE
    if isinstance(node, (And, Or)):
        return type(node)(tuple([_without_absences(each) for each in node.operands]))
    return node


class _PassingAttributes(Attributes):
    """The known attributes, and new ones that are forgotten with the event."""

    def __init__(self, known: Attributes) -> None:
        self.by_name = dict(known.by_name)
        self.all = list(known.all)
        self.absences = []

    def get(self, name: str, kind: str | None) -> Attribute:
        attribute = self.by_name.get(name)
        if attribute is not None and attribute.type is None and kind is not None:
            # Subscriptions ask for its presence only; the event's type must not stick to it.
            attribute = Attribute(attribute.id, name, kind, keys_for(kind))
            self.by_name[name] = self.all[attribute.id] = attribute
        return super().get(name, kind)


def _merged(leaves: Leaves, code: np.ndarray, event: Expr) -> dict[int, Any]:
    ws, root = _merge(leaves, code)
    kind = ws.node_kind[root]
    if kind == FALSE:
        raise EventError(f"expected an event that can happen, found a contradiction: {event}")
    if kind == TRUE:
        return {}
    nodes = [root]
    if kind == AND:
        nodes = ws.child[ws.node_start[root] : ws.node_start[root] + ws.node_n[root]].tolist()
    if any([ws.node_kind[node] != LEAF for node in nodes]):
        raise EventError(
            "expected a conjunction of predicates as an event, found OR over several attributes: "
            f"match its parts one by one ({str(event)[:80]})"
        )
    found = {}
    for node in nodes:
        start, end = ws.node_start[node], ws.node_start[node] + ws.node_n[node]
        intervals = zip(ws.pool_lo[start:end].tolist(), ws.pool_hi[start:end].tolist(), strict=True)
        found[int(ws.node_attr[node])] = tuple(intervals)
    return found


def _merge(leaves: Leaves, code: np.ndarray) -> tuple[Workspace, int]:
    size = 64
    while True:
        ws = new_workspace(size)
        root = merge_expression(leaves, code, 0, len(code), ws)
        if root != FULL:
            return ws, root
        size *= 2


def _patterns(attribute: Attribute, sets: KeySets) -> dict[int, KeySets]:
    """A general LIKE of a subscription: decided for one known string, open for anything wider."""
    if not attribute.patterns:
        return {}
    value = None
    lo, hi = sets.intervals[0][0], sets.intervals[-1][1]
    if lo == hi and isinstance(attribute.keys, DictionaryKeys):
        value = attribute.keys.dictionary.value_of(lo)
    entries = {}
    for pattern in attribute.patterns.values():
        if value is None:
            entries[pattern.attr_id] = KeySets(((0, 1),))
        else:
            fits = int(pattern.regex.fullmatch(value) is not None)
            entries[pattern.attr_id] = KeySets(((fits, fits),))
    return entries
