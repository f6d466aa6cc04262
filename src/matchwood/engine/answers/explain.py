"""Explain: why a subscription matches an event, or the shortest reason why it does not.

Every node of the subscription's own text gets TRUE, FALSE or UNKNOWN.  Leaves are decided by the
same keys that matching uses, so an explanation never disagrees with a match.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import numpy as np

from matchwood.context.objects import with_objects
from matchwood.encode.attribute import Attribute, formula_of
from matchwood.encode.attributes import Attributes
from matchwood.encode.computed import find_value
from matchwood.encode.events import encode_event
from matchwood.encode.exact import EXACT, has_decimal, spelled_out
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.keys import OBJECT
from matchwood.encode.kinds import is_computed, is_internal
from matchwood.encode.leaves import LeafBatch
from matchwood.encode.merge_kernels import leaf_intervals
from matchwood.encode.plain_values import as_mapping
from matchwood.encode.resolve import resolve
from matchwood.encode.schema import Schema
from matchwood.errors import EventError
from matchwood.forms.nnf import nnf
from matchwood.lang.functions.evaluate import Failed, TypeProblem
from matchwood.lang.names import CONTEXT, is_context
from matchwood.lang.nodes import (
    And,
    Comparison,
    Const,
    Expr,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    Relation,
    Xnor,
    children,
    predicates,
)

Truth = bool | None
_WORDS = {True: "TRUE", False: "FALSE", None: "UNKNOWN"}


@dataclass(frozen=True, slots=True)
class Node:
    """A part of the expression, its text and its truth."""

    text: str
    value: Truth
    found: str | None
    children: tuple[Node, ...]
    expr: Expr

    def lines(self, prefix: str = "", branch: str = "", below: str = "") -> list[str]:
        note = f"   ({self.found})" if self.found else ""
        lines = [f"{prefix}{branch}{_WORDS[self.value]:<8}{self.text}{note}"]
        for i, child in enumerate(self.children):
            is_last = i == len(self.children) - 1
            head, rest = ("└── ", "    ") if is_last else ("├── ", "│   ")
            lines += child.lines(prefix + below, head, rest)
        return lines


@dataclass(frozen=True, slots=True)
class Explanation:
    """The truth of a subscription for an event, node by node; true if it matches."""

    id: int | str
    matches: bool
    tree: Node
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        verdict = "matches" if self.matches else "does not match"
        lines = [f"{self.id!r} {verdict}", *self.tree.lines()]
        lines += [f"because {reason}" for reason in self.reasons]
        return "\n".join(lines)

    def __bool__(self) -> bool:
        return self.matches

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""

        def plain(node: Node) -> dict[str, Any]:
            return {
                "text": node.text,
                "value": _WORDS[node.value],
                "found": node.found,
                "children": [plain(child) for child in node.children],
            }

        return {
            "id": self.id,
            "matches": self.matches,
            "reasons": list(self.reasons),
            "tree": plain(self.tree),
        }


def explain(
    id_: int | str,
    expr: Expr,
    attributes: Attributes,
    event: Mapping[str, Any],
    context: Mapping[str, Any],
) -> Explanation:
    """Evaluate every node of an expression that is registered with these attributes."""
    values = {f"{CONTEXT}{name}": value for name, value in with_objects(context).items()}
    leaves = _Leaves(expr, attributes, event, values)
    tree = _evaluate(expr, leaves, {**_flat(event), **values})
    reasons = () if tree.value is True else tuple(dict.fromkeys(_why_not(tree, True)))
    return Explanation(id_, tree.value is True, tree, reasons)


def event_values(event: Any) -> Mapping[str, Any]:
    """The values of one event, of any kind that `match` takes but an expression, which has none."""
    values = None if isinstance(event, Expr) else as_mapping(event)
    if values is None:
        raise EventError(
            f"expected a mapping of values, found {type(event).__name__}: give one event"
        )
    return values


def _flat(event: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in event.items():
        if isinstance(value, Mapping):
            values.update(_flat(value, f"{prefix}{name}."))
        if value is not None:
            values[f"{prefix}{name}"] = value
    return values


def absence_or_value(expr: Expr, event: Mapping[str, Any]) -> str:
    """What an event has of the attributes of an expression."""
    values = _flat(event)
    names = dict.fromkeys([leaf.name.removesuffix(EXACT) for leaf in predicates(expr)])
    return ", ".join([_found(name, values) for name in names])


def _found(name: str, event: dict[str, Any]) -> str:
    """What an event has for a name, computed if need be."""
    if not is_computed(name):
        return f"{name} is {_shown(event[name])}" if name in event else f"{name} is absent"
    formula = formula_of(name)
    try:
        value = formula([find_value(event, each) for each in formula.inputs])
    except TypeProblem as problem:
        return f"{formula.text} does not take {problem}"
    except Failed as problem:
        return f"{formula.text} fails: {problem}"
    return f"{formula.text} is {'NULL' if value is None else _shown(value)}"


def _shown(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return value.isoformat() if isinstance(value, date) else repr(value)


def _evaluate(expr: Expr, leaves: _Leaves, event: dict[str, Any]) -> Node:
    if isinstance(expr, Predicate):
        names = [expr.name, expr.reference] if isinstance(expr, Relation) else [expr.name]
        found = [_found(name, event) for name in names]
        return Node(str(expr), leaves.truth(expr), ", ".join(found), (), expr)
    nodes = tuple([_evaluate(each, leaves, event) for each in children(expr)])
    return Node(str(expr), _connect(expr, [node.value for node in nodes]), None, nodes, expr)


def _connect(expr: Expr, values: list[Truth]) -> Truth:
    """Three-valued AND, OR, NOT, XOR, XNOR."""
    if isinstance(expr, Const):
        return expr.value
    if isinstance(expr, And):
        return False if False in values else None if None in values else True
    if isinstance(expr, Or):
        return True if True in values else None if None in values else False
    if None in values:
        return None
    if isinstance(expr, Not):
        return not values[0]
    return (values[0] == values[1]) == isinstance(expr, Xnor)


class _Leaves:
    """Decides single predicates by keys, with dictionaries of its own.

    The matcher's own dictionaries forget constants that merging made superfluous; here every
    constant of the expression counts.  Values of the context are constants too, or, where they are
    tested themselves, attributes under another name.
    """

    def __init__(
        self,
        expr: Expr,
        known: Attributes,
        event: Mapping[str, Any],
        context: Mapping[str, Any],
    ) -> None:
        declared = {
            _renamed(name): each.type
            for name, each in known.by_name.items()
            if each.type not in (None, OBJECT) and not is_internal(name)
        }
        self._attributes = Attributes(Schema(declared))
        self._types = known.schema()
        self._context = {_renamed(name): value for name, value in context.items()}
        self._event = event = {**event, **self._context}
        for leaf in predicates(expr):
            self._attributes.get(_renamed(leaf.name), None).is_asked = True
        positive = [self._known_part(leaf) for leaf in predicates(expr)]
        batch = LeafBatch()
        for known_part in positive:
            if known_part is not None:
                batch.add(known_part)
        self._leaves = resolve(batch, self._attributes, ExpressionTable())
        self._rows = iter(range(len(batch.attr)))
        encoded = encode_event(self._attributes, event)
        self._keys = dict(zip(encoded.attr.tolist(), encoded.lo.tolist(), strict=True))

    def truth(self, leaf: Predicate) -> Truth:
        """TRUE, FALSE or unknown; leaves are asked for from left to right."""
        known = self._known_part(leaf)
        is_member = known is not None and self._holds(known)
        attribute = self._attributes.by_name[_renamed(leaf.name)]
        is_absent = attribute.id not in self._keys
        if isinstance(leaf, IsNull):
            if leaf.kind is not None and attribute.keys is None:
                of_kind = attribute.kinds.get(leaf.kind)
                is_absent = of_kind is None or of_kind.id not in self._keys
                if not is_absent or attribute.id in self._keys:
                    return is_absent != leaf.negated
            if is_absent and attribute.formula is not None and not self._is_null(attribute):
                return None
            return is_absent != leaf.negated
        if known is not None and attribute.keys is None:
            of_kind = self._attributes.all[int(self._leaves.attr[self._row])]
            source = of_kind if not of_kind.is_derived else self._attributes.all[of_kind.source]
            numbers = self._attributes.by_name[source.name.removesuffix(EXACT)]
            is_absent |= numbers.id not in self._keys
        if is_absent or (isinstance(leaf, Relation) and known is None):
            return None
        if isinstance(leaf, In) and None in leaf.values:  # TRUE if found, else unknown
            return not leaf.negated if is_member else None
        return is_member

    def _is_null(self, attribute: Attribute) -> bool:
        """Whether a computed attribute without an entry is NULL, not unknown."""
        formula = formula_of(attribute.name)
        try:
            return formula([find_value(self._event, each) for each in formula.inputs]) is None
        except (TypeProblem, Failed):
            return False

    def _holds(self, known: Predicate) -> bool:
        """Whether the value is in the set of a leaf; takes the rows that the batch made of it."""
        return self._holds_rows(nnf(known))

    def _holds_rows(self, node: Expr, is_spelled_out: bool = False) -> bool:
        if isinstance(node, (And, Or)):
            parts = [self._holds_rows(each, is_spelled_out) for each in node.operands]
            return all(parts) if isinstance(node, And) else any(parts)
        if isinstance(node, Predicate) and not is_spelled_out and has_decimal(node):
            return self._holds_rows(spelled_out(node), True)
        self._row = next(self._rows)
        return self._in_set(self._row)

    def _in_set(self, row: int) -> bool:
        key = self._keys.get(int(self._leaves.attr[row]))
        if key is None:
            return False
        lo, hi = leaf_intervals(self._leaves, row)
        return bool(np.any((lo <= key) & (key <= hi)))

    def _known_part(self, leaf: Predicate) -> Predicate | None:
        """The leaf without NULL in its list and with the context's value; None: nothing is left."""
        name = _renamed(leaf.name)
        if isinstance(leaf, Relation):
            value = self._context.get(_renamed(leaf.reference))
            if value is None:
                return None
            if leaf.offset != 0 or isinstance(leaf.offset, float):
                is_exact = self._types.get(leaf.reference) == "int"
                value = (value if is_exact else float(value)) + leaf.offset
            return Comparison(name, leaf.op, value)
        if isinstance(leaf, In) and None in leaf.values:
            values = tuple([value for value in leaf.values if value is not None])
            return In(name, values) if values else None
        return leaf if name == leaf.name else replace(leaf, name=name)  # type: ignore[type-var]


def _renamed(name: str) -> str:
    """A value of the context as an attribute that an event may supply; no other has such a name."""
    return f"\x01{name}" if is_context(name) else name


def _why_not(node: Node, wanted: bool) -> list[str]:
    """The fewest leaves that keep a node from being TRUE (or FALSE, below a NOT)."""
    if not node.children:
        if node.found is None:
            return [f"{node.text} is {_WORDS[node.value]}"]
        return [f"{node.text} is {_WORDS[node.value]}: {node.found}"]
    if isinstance(node.expr, Not):
        return _why_not(node.children[0], not wanted)
    if isinstance(node.expr, (And, Or)):
        failing = [child for child in node.children if child.value is not wanted]
        reasons = [_why_not(child, wanted) for child in failing]
        if isinstance(node.expr, And) == wanted:
            # One operand is enough to spoil it: the one with the fewest reasons, and rather FALSE
            # than UNKNOWN.
            ranked = zip([child.value is None for child in failing], reasons, strict=True)
            return min(ranked, key=lambda each: (len(each[1]), each[0]))[1]
        return [reason for each in reasons for reason in each]
    unknown = [child for child in node.children if child.value is None]
    if unknown:  # it stays so as long as this operand is neither TRUE nor FALSE
        return [*_why_not(unknown[0], True), *_why_not(unknown[0], False)]
    return [
        reason for child in node.children for reason in _why_not(child, child.value is not True)
    ]
