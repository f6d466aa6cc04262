"""Types of what is compared with the context: both sides of a relation have one type.

An open attribute has none: those of its values count that are of the kind of the context's value.

    starts_at < ctx.last        each learns the type of the other, whichever is known first
    price < ctx.target + 5      an offset makes numbers of both

Types are learned for whole groups of names that are compared with each other, so in such a group
either all types are known or none is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from matchwood.encode.attribute import Term
from matchwood.encode.attributes import Attributes
from matchwood.encode.keys import OBJECT
from matchwood.encode.leaves import LeafBatch
from matchwood.encode.merge_kernels import PRESENT
from matchwood.encode.schema import TYPES
from matchwood.errors import SchemaError
from matchwood.lang.names import is_context

_NUMBERS = ("number", "int", "float")


def check_relations(
    batch: LeafBatch, attributes: Attributes, learned: Mapping[str, str], rows: Iterable[int]
) -> dict[str, str]:
    """The types that a batch teaches, those of its relations included; SchemaError on a clash."""
    names = list(batch.names)
    types = dict(learned)
    pairs: dict[tuple[str, str], int] = dict.fromkeys(attributes.links(), -1)
    seen: set[Any] = set()
    for row in rows:
        code, (_, reference, offset) = batch.attr[row], batch.values[batch.start[row]]
        name = names[code]
        pairs[name, reference] = row
        relation = code, reference, offset, type(offset)
        if relation in seen:
            continue
        seen.add(relation)
        for each in (name, reference):
            _take_column_type(batch, attributes, types, each, row)
            if _type(attributes, types, each) == OBJECT:
                raise _not_comparable(batch, each, OBJECT, row)
        if offset != 0 or isinstance(offset, float):
            _need_numbers(batch, attributes, types, (name, reference), offset, row)
    spread(attributes, types, pairs)
    for (name, reference), row in pairs.items():
        mine, other = _type(attributes, types, name), _type(attributes, types, reference)
        if mine is None and other == "int" and not attributes.is_declared(name):
            mine = "number"  # open: its numbers may be no ints
        if mine is None or other is None:
            continue
        if not compatible(mine, other) or (is_context(name) and mine == "int" != other):
            at = batch.position[row] if row >= 0 else -1
            hint = "declare both alike with Schema" if mine in _NUMBERS else "compare like types"
            raise SchemaError(
                f"attribute {name!r} is of type {mine} and {reference!r} of type {other}: "
                f"expected types that can be compared exactly; {hint}",
                position=at,
            )
    return types


def relate(
    batch: LeafBatch, attributes: Attributes, rows: list[int], attr: np.ndarray, op: np.ndarray
) -> None:
    """Point rows of relations at the derived attributes that stand for them."""
    known: dict[Any, int] = {}
    derived: list[int] = []
    for row, attribute in zip(rows, attr[rows].tolist(), strict=True):
        relation = batch.values[batch.start[row]]
        kind = attribute, relation, type(relation[2])
        found = known.get(kind)
        if found is None:
            sign, reference, offset = relation
            context = attributes.get(reference, None)
            term = Term(sign, context.id, offset, isinstance(offset, float))
            found = known[kind] = attributes.relation(attributes.all[attribute], term)
        derived.append(found)
    attr[rows], op[rows] = derived, PRESENT


def compatible(mine: str, context: str) -> bool:
    """Whether an attribute can be compared exactly with a context's value of a type."""
    if mine in _NUMBERS and context in ("number", "float"):
        return True
    return mine == context


def spread(attributes: Attributes, types: dict[str, str], pairs: Iterable[tuple[str, str]]) -> None:
    """Let names without a type learn it from those they are compared with."""
    pairs = list(pairs)
    is_changed = True
    while is_changed:
        is_changed = False
        for name, reference in pairs:
            mine, other = _type(attributes, types, name), _type(attributes, types, reference)
            if mine is None and other is not None and attributes.is_declared(name):
                types[name] = "number" if other == "float" else other
                is_changed = True
            elif other is None and mine is not None:
                types[reference] = "number" if mine in _NUMBERS else mine
                is_changed = True


def _type(attributes: Attributes, types: Mapping[str, str], name: str) -> str | None:
    known = attributes.by_name.get(name)
    return types.get(name) or (known.type if known is not None else None)


def _take_column_type(
    batch: LeafBatch, attributes: Attributes, types: dict[str, str], name: str, row: int
) -> None:
    """Give a name without a type that of its column, before it could learn another."""
    kind = attributes.column_types.get(name)
    if kind is None or _type(attributes, types, name) is not None:
        return
    if kind not in TYPES:
        raise _not_comparable(batch, name, kind, row)
    types[name] = kind


def _not_comparable(batch: LeafBatch, name: str, kind: str, row: int) -> SchemaError:
    return SchemaError(
        f"attribute {name!r} is of type {kind}: expected a type that can be compared; "
        "compare a column of another type, or a field",
        position=batch.position[row],
    )


def _need_numbers(
    batch: LeafBatch, attributes: Attributes, types: dict[str, str],
    names: tuple[str, str], offset: int | float, row: int,
) -> None:  # fmt: skip
    for name in names:
        kind = _type(attributes, types, name)
        if kind is None and not attributes.is_declared(name):
            continue  # open: its numbers are compared, whatever else it has
        if kind is None:
            types[name] = "number"
        elif kind not in _NUMBERS:
            raise SchemaError(
                f"attribute {name!r} is of type {kind}: expected a number beside the offset "
                f"{offset!r}; leave the offset out",
                position=batch.position[row],
            )
        elif kind == "int" and is_context(name) and isinstance(offset, float):
            raise SchemaError(
                f"{name!r} is of type int: expected an integer as its offset, found {offset!r}; "
                "declare the type number or float instead",
                position=batch.position[row],
            )
