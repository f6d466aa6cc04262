"""Resolve: leaf rows get attribute ids, types and keys.

Types are checked for the whole batch before anything changes, so a refused batch leaves no trace.
Keys are asked for once per attribute: a dictionary then spreads all new constants of a batch
evenly.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.clashes import check_moments, clash, item_of, not_comparable, several_kinds
from matchwood.encode.exact import EXACT
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.keys import DictionaryKeys
from matchwood.encode.kinds import KINDS, is_internal, of_kind, shown, split
from matchwood.encode.leaves import ABSENT, OF_STRING, OPERATOR, REFERENCE, LeafBatch
from matchwood.encode.merge_kernels import EQ, NEGATED, PRESENT, Leaves
from matchwood.encode.relations import check_relations, relate
from matchwood.encode.row_kinds import FEW, many_renamed, plain_kinds
from matchwood.encode.schema import TYPES, accepts, coerced, literal_type
from matchwood.errors import SchemaError
from matchwood.kernel.arrays import grown
from matchwood.lang.names import is_context
from matchwood.lang.scalars import attributes_of, is_computed, tree_of
from matchwood.lang.truth import kind_of_constants

_SMALL = 64
"""Rows up to which plain Python beats NumPy at sorting them by name: single subscriptions."""


class _Rows(NamedTuple):
    """The rows of one name of a batch, and their values."""

    name: str
    rows: Sequence[int] | np.ndarray
    at: Sequence[int] | np.ndarray
    values: Any  # a list, or an array of numbers or of objects
    of_string: bool


def resolve(batch: LeafBatch, attributes: Attributes, table: ExpressionTable) -> Leaves:
    """The rows of a batch with ids and keys; raises SchemaError with a position, changing nothing.

    Dictionaries learn the constants, and `table` follows when that moved its keys.
    """
    batch = by_kind(batch, attributes)
    groups = list(_by_name(batch))
    learned = _check(batch, attributes, groups)
    attributes.changes += 1
    relations = _relation_rows(batch)
    if relations or (learned and attributes.version):
        learned = check_relations(batch, attributes, learned, relations)
        attributes.version += 1
    for name, kind in learned.items():
        attributes.get(name, kind)
    attr = np.zeros(len(batch.attr), np.int32)
    op = np.frombuffer(batch.op, np.uint8) & np.uint8(0xFF & ~OF_STRING)
    literals = _LiteralKeys(len(batch.values))
    for group in groups:
        attribute = attributes.get(group.name, None)
        attr[group.rows] = attribute.id
        if attribute.type is None:  # its presence is all that is left to ask for
            attribute.is_asked = True
        if len(group.values):
            literals.put(group.at, *_literal_keys(attributes, attribute, group.values, table))
    for row in _derived_rows(batch):
        if batch.op[row] & OPERATOR != REFERENCE:
            _derive(batch, attributes, row, attr, op, literals)
    if relations:
        relate(batch, attributes, relations, attr, op)
    if relations or (learned and attributes.version):
        attributes.settle_terms()
    start = np.array(batch.start, np.int64)
    return Leaves(attr, op, start, literals.ge, literals.le, literals.side)


class _LiteralKeys:
    """The keys of a batch's literals; most are keys themselves, and then `le` is `ge`."""

    def __init__(self, n: int) -> None:
        self.ge = self.le = grown(np.empty(0, np.int64), n)
        self.side = grown(np.empty(0, np.int8), n)

    def put(
        self, at: Sequence[int] | np.ndarray, triples: np.ndarray, which: np.ndarray | slice
    ) -> None:
        """Literal `at[i]` has the keys `triples[which[i]]`, or one where each is a key itself."""
        if triples.ndim == 1:
            self.ge[at] = triples[which]
            if self.le is not self.ge:
                self.le[at] = self.ge[at]
            return
        ge, le, side = np.ascontiguousarray(triples.T)
        if self.le is self.ge and (ge != le).any():
            self.le = self.ge.copy()
        self.ge[at] = ge[which]
        if self.le is not self.ge:
            self.le[at] = le[which]
        if side.any():
            self.side[at] = side[which]


def learned_types(batch: LeafBatch, attributes: Attributes) -> dict[str, str]:
    """Check every constant against its attribute; returns the types the batch would teach.

    An open attribute is taught none; here it has the kind of its last constant.
    """
    batch = by_kind(batch, attributes)
    learned = _check(batch, attributes, list(_by_name(batch)))
    learned = check_relations(batch, attributes, learned, _relation_rows(batch))
    return {shown(name): split(name)[1] or kind for name, kind in learned.items()}


def is_plain(batch: LeafBatch, attributes: Attributes) -> bool:
    """Whether `learned_types` surely finds nothing wrong: a short look that single texts pass.

    They compare open attributes with constants of one kind each, and refer to no context.
    """
    if len(batch.op) > _SMALL or attributes.declared.is_strict:
        return False
    for name in batch.names:
        if is_internal(name) or attributes.is_declared(name):
            return False
    values, first = batch.values, 0
    for op, last in zip(batch.op, batch.start[1:], strict=True):
        if op & OPERATOR == REFERENCE:
            return False
        if last - first == 1:
            if type(values[first]) not in _KIND_OF:
                return False
        elif last > first:
            kinds = {_KIND_OF.get(type(each)) for each in values[first:last]}
            if len(kinds) > 1 or None in kinds:
                return False
        first = last
    return True


def by_kind(batch: LeafBatch, attributes: Attributes) -> LeafBatch:
    """The batch with rows of open attributes on the internal attributes of their kinds.

    Rows that name a kind already ask for its presence; a declared attribute has but one kind.
    """
    names = list(batch.names)
    _check_names(batch, attributes, names)
    parts = [split(name) for name in names]
    is_open = [not attributes.is_declared(base) for base, _ in parts]
    has_kind = [kind is not None for _, kind in parts]
    if not any(is_open) and not any(has_kind):
        return batch
    codes: dict[tuple[int, str | None], int] = {}
    found = dict(batch.names)

    def renamed(code: int, this: str | None) -> int:
        new = codes.get((code, this))
        if new is None:
            name = parts[code][0] if this is None else of_kind(parts[code][0], this)
            if names[code].endswith(EXACT):
                name += EXACT
            new = codes[code, this] = found.setdefault(name, len(found))
        return new

    are_numbers = isinstance(batch.values, np.ndarray) and batch.values.dtype != object
    if len(batch.attr) > FEW:
        kind_of = partial(_kind_of_row, batch, names=names, are_numbers=are_numbers)
        many = many_renamed(batch, is_open, has_kind, kind_of, renamed)
        return batch.renamed(found, many)
    attr = batch.attr.tolist()
    plain = plain_kinds(batch)
    for row, code in enumerate(attr):
        if is_open[code] == has_kind[code]:
            continue
        this = None
        if is_open[code]:
            this = plain[row] or _kind_of_row(batch, row, names, are_numbers)
        if this is None and is_open[code]:
            continue
        attr[row] = renamed(code, this)
    return batch.renamed(found, np.array(attr, np.int32))


def _kind_of_row(batch: LeafBatch, row: int, names: Sequence[str], are_numbers: bool) -> str | None:
    """The kind that a row of an open attribute looks at; None for its presence and relations."""
    op, name = batch.op[row], names[batch.attr[row]]
    if op & OF_STRING:
        return "string"
    if name.endswith(EXACT):
        return "number"
    if op & OPERATOR in _OF_NAME:
        return None
    if are_numbers:
        return "number"
    first, last = batch.start[row], batch.start[row + 1]
    kind = _KIND_OF.get(type(batch.values[first])) if last - first == 1 else None
    if kind is None:
        kind = kind_of_constants([item_of(each) for each in batch.values[first:last]])
    if kind is None:
        raise several_kinds(batch, row, name)
    return kind


def _check_names(batch: LeafBatch, attributes: Attributes, names: list[str]) -> None:
    """Refuse names that a strict schema does not declare, those in computed attributes, too."""
    if not attributes.declared.is_strict:
        return
    for row, code in enumerate(batch.attr):
        name = split(names[code])[0]
        for each in attributes_of(tree_of(name)) if is_computed(name) else (name,):
            if is_context(each) or each in attributes.column_types:
                continue
            problem = attributes.declared.check_name(each)
            if problem is not None:
                raise SchemaError(problem, position=batch.position[row])


_OF_NAME = frozenset((ABSENT, PRESENT, REFERENCE))
_KIND_OF = {bool: "bool", int: "number", float: "number", str: "string"}


def _by_name(batch: LeafBatch) -> Iterator[_Rows]:
    """The rows of each name of a batch; general LIKE patterns are no constants and left out."""
    if len(batch.attr) > _SMALL:
        yield from _sorted_by_name(batch)
        return
    rows: dict[int, tuple[list[int], list[int]]] = {}
    for row, code in enumerate(batch.attr):
        mine, at = rows.setdefault(code, ([], []))
        mine.append(row)
        if batch.op[row] & OPERATOR < ABSENT:
            at += range(batch.start[row], batch.start[row + 1])
    names = list(batch.names)
    for code, (mine, at) in rows.items():
        of_string = any(batch.op[row] & OF_STRING for row in mine)
        yield _Rows(names[code], mine, at, [item_of(batch.values[i]) for i in at], of_string)


def _sorted_by_name(batch: LeafBatch) -> Iterator[_Rows]:
    attr = np.array(batch.attr, np.int32)
    op = np.frombuffer(batch.op, np.uint8)
    start = np.array(batch.start, np.int64)
    sizes = start[1:] - start[:-1]
    value_attr = np.repeat(np.where((op & OPERATOR) < ABSENT, attr, -1), sizes)
    order, ends = _grouped(attr, len(batch.names))
    value_order, value_ends = _grouped(value_attr, len(batch.names))
    for code, name in enumerate(batch.names):
        rows = order[ends[code] : ends[code + 1]]
        if len(rows):
            at = value_order[value_ends[code] : value_ends[code + 1]]
            values = batch.values
            mine = (
                values[at] if isinstance(values, np.ndarray) else [values[i] for i in at.tolist()]
            )
            yield _Rows(name, rows, at, mine, bool((op[rows] & OF_STRING).any()))


def _grouped(codes: np.ndarray, n: int) -> tuple[np.ndarray, list[int]]:
    """A stable sorting of codes below n, and where each begins there; those below 0 come first.

    Of 16 bits NumPy sorts by radix, several times faster.  Few codes are sorted by Python: NumPy
    would give up the interpreter's lock.
    """
    if len(codes) <= FEW:
        listed = codes.tolist()
        order = sorted(range(len(listed)), key=listed.__getitem__)
        listed.sort()
        return np.array(order, np.int64), [bisect_left(listed, code) for code in range(n + 1)]
    if codes.max(initial=0) < 2**15:
        codes = codes.astype(np.int16)
    found = np.argsort(codes, kind="stable")
    ends: list[int] = np.searchsorted(codes[found], np.arange(n + 1)).tolist()
    return found, ends


def _check(batch: LeafBatch, attributes: Attributes, groups: list[_Rows]) -> dict[str, str]:
    """The types that groups teach; strings beside other types become what Spark casts them to."""
    learned: dict[str, str] = {}
    for i, group in enumerate(groups):
        attribute = attributes.by_name.get(group.name)
        expected = attribute.type if attribute is not None else None
        found = _types_of(group.values)
        if expected is None:
            if not found and not group.of_string:
                continue  # IS NULL alone teaches no type
            expected = attributes.column_types.get(group.name)
            kind = split(group.name)[1]
            if kind is not None:
                expected = KINDS[kind]
            elif expected is None:
                expected = literal_type(item_of(group.values[0])) if found else "string"
            elif expected not in TYPES:
                raise not_comparable(batch, group.name, group.rows, expected)
            learned[group.name] = expected
        if "string" in found and expected in ("bool", "int", "float", "number"):
            values = [_cast(expected, each) for each in group.values]
            if None not in values:
                groups[i] = group._replace(values=values)
                found = _types_of(values)
        if any(not accepts(expected, kind) for kind in found) or (
            group.of_string and expected != "string"
        ):
            raise clash(batch, group.name, group.rows, expected)
        if "string" in found and expected in ("date", "timestamp"):
            check_moments(batch, group.name, group.rows, expected)
    return learned


def _cast(expected: str, value: Any) -> Any:
    return coerced(expected, value) if isinstance(value, str) else item_of(value)


def _types_of(values: Any) -> set[str]:
    if isinstance(values, np.ndarray) and values.dtype != object:
        return {literal_type(values[0].item())} if len(values) else set()
    samples = {type(value): value for value in values}
    return {literal_type(value) for value in samples.values()}


def _literal_keys(
    attributes: Attributes, attribute: Attribute, values: Any, table: ExpressionTable
) -> tuple[np.ndarray, np.ndarray | slice]:
    """Triples for the distinct values (see `Keys.literals`), and which one each value has.

    Instead of triples the labels, where keys have a dictionary.
    """
    keys = attribute.keys
    assert keys is not None
    which: np.ndarray | slice = slice(None)
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = values.tolist()
    elif isinstance(values, np.ndarray):
        values, which = np.unique(values, return_inverse=True)
    n_known = keys.n_constants if isinstance(keys, DictionaryKeys) else 0
    if isinstance(keys, DictionaryKeys):
        triples = keys.labels(values)
        attributes.n_new += keys.n_constants - n_known
    else:
        triples = keys.literals(values)
    moved = keys.take_relabelling()
    if moved is not None:
        attributes.follow(attribute, moved, table.rekey)
    return triples, which


def _derived_rows(batch: LeafBatch) -> list[int]:
    """Rows for IS NULL and for general LIKE patterns."""
    if len(batch.op) > _SMALL:
        op = np.frombuffer(batch.op, np.uint8)
        rows: list[int] = np.flatnonzero((op & OPERATOR) >= ABSENT).tolist()
        return rows
    return [row for row, op in enumerate(batch.op) if op & OPERATOR >= ABSENT]


def reference_rows(batch: LeafBatch) -> list[int]:
    """Rows that refer to the context: relations, and tests of the context's values."""
    contextual = {code for name, code in batch.names.items() if is_context(name)}
    if not contextual and len(batch.op) <= _SMALL:
        return [row for row, op in enumerate(batch.op) if op & OPERATOR == REFERENCE]
    rows = (np.frombuffer(batch.op, np.uint8) & OPERATOR) == REFERENCE
    if contextual:
        rows = rows | np.isin(np.array(batch.attr, np.int32), list(contextual))
    found: list[int] = np.flatnonzero(rows).tolist()
    return found


def _relation_rows(batch: LeafBatch) -> list[int]:
    if len(batch.op) <= _SMALL:
        return [row for row, op in enumerate(batch.op) if op & OPERATOR == REFERENCE]
    op = np.frombuffer(batch.op, np.uint8)
    rows: list[int] = np.flatnonzero((op & OPERATOR) == REFERENCE).tolist()
    return rows


def _derive(
    batch: LeafBatch, attributes: Attributes, row: int,
    attr: np.ndarray, op: np.ndarray, literals: _LiteralKeys,
) -> None:  # fmt: skip
    """Point a row at the derived attribute that it tests."""
    attribute = attributes.all[attr[row]]
    if op[row] & OPERATOR == ABSENT:
        attr[row], op[row] = attributes.absence(attribute), PRESENT
    else:
        at = batch.start[row]
        attr[row] = attributes.pattern(attribute, batch.values[at])
        literals.ge[at] = literals.le[at] = 0 if op[row] & NEGATED else 1
        op[row] = EQ
