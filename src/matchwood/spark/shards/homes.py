"""Homes: by which keys a subscription is found, so that events skip most shards.

Idea.    An expression is TRUE only if certain predicates are.  A set of keys (`home_keys`) such
         that every event which makes it TRUE has one of them is a set of *homes*: the subscription
         lives there, and an event without these keys need not be compared with it.

    a = 5 AND b > 3          its rarest predicate                             {key(a, 5)}
    a IN (5, 6)              one key per value, at most MOST_COPIES           {key(a, 5), key(a, 6)}
    (a = 5 OR b = 6) AND c   the cheapest of its sets                         {key(c, TRUE)}
    a = 5 OR (b > 3 AND c)   each branch for itself: `a = 5` lives at key(a, 5), the rest elsewhere

Copies.  A subscription with several homes has a row for each; shards hold the branches that live
         in them, and the merge of lists drops ids that come twice.  Branches of an OR at the top
         are stored once each; other sets store the branch once per key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.schema import literal_type
from matchwood.errors import MatchwoodError
from matchwood.lang.names import is_context
from matchwood.lang.nodes import And, Comparison, Expr, In, IsNull, Not, Or, Predicate
from matchwood.lang.parser import parse
from matchwood.lang.scalars import is_computed
from matchwood.spark.shards.home_keys import (
    ANY,
    hash_of,
    hashes_of,
    name_key,
    value_key,
    value_keys,
)

HOMES = 3
"""Which rules choose homes: shards that were built by others are not found again."""

EQUAL = ("=", "==")

MOST_COPIES = 8
"""Keys of one branch: each holds a copy of it.  With more, its attributes decide, or ANY."""

COPY = 0.01
"""What a further copy of a branch costs, in shares of the subscriptions that have a key."""

_NAMED, _EVERYWHERE = 1.0, 1000.0
"""What key(a) and ANY cost beside a share: a value decides before an attribute, that before all."""

# -- texts -------------------------------------------------------------------------------------


class Home(NamedTuple):
    """One key of a subscription, and the branch that lives there; None: all of it."""

    key: int
    branch: Expr | None


class _Reach(NamedTuple):
    """A set of keys, and what it costs."""

    cost: float
    keys: tuple[int, ...]


_NOWHERE_ELSE = _Reach(_EVERYWHERE, (int(ANY),))


def homes_of_text(text: str, costs: Costs, types: Mapping[str, str]) -> list[Home]:
    """The homes of an expression, each key and branch once; ANY for one that cannot be read."""
    tree = _read(text)
    if tree is None:
        return [Home(int(ANY), None)]
    branches = tree.operands if isinstance(tree, Or) else (tree,)
    reached = [_reach(each, costs, types) for each in branches]
    if any(each is _NOWHERE_ELSE for each in reached):
        return [Home(int(ANY), None)]
    keys = [dict.fromkeys(each.keys) for each in reached]
    if len({key for each in keys for key in each}) == 1:
        return [Home(next(iter(keys[0])), None)]
    if len(branches) == 1:
        return [Home(key, None) for key in keys[0]]
    return [
        Home(key, branch) for branch, found in zip(branches, keys, strict=True) for key in found
    ]


def keys_of_text(text: str, types: Mapping[str, str]) -> list[int]:
    """The keys that an expression offers."""
    tree = _read(text)
    if tree is None:
        return []
    branches = tree.operands if isinstance(tree, Or) else (tree,)
    nodes = [each for branch in branches for each in _conjuncts(branch)]
    found = [_reach(node, _NO_COSTS, types) for node in nodes]
    return [key for each in found if each is not _NOWHERE_ELSE for key in each.keys]


def _read(text: str) -> Expr | None:
    try:
        return parse(text)
    except (MatchwoodError, TypeError):
        return None


def _conjuncts(tree: Expr) -> Iterator[Expr]:
    if isinstance(tree, And):
        for each in tree.operands:
            yield from _conjuncts(each)
    else:
        yield tree


def _reach(
    node: Expr, costs: Costs, types: Mapping[str, str], negated: bool = False, named: bool = False
) -> _Reach:
    """The cheapest set of keys of which every event has one that makes the node TRUE.

    negated  that makes it FALSE
    named    of attributes alone, without values
    """
    if isinstance(node, Predicate):
        return _of_predicate(node, costs, types, negated, named)
    if isinstance(node, Not):
        return _reach(node.operand, costs, types, not negated, named)
    if not isinstance(node, (And, Or)):
        return _NOWHERE_ELSE
    found = [_reach(each, costs, types, negated, named) for each in node.operands]
    if isinstance(node, And) != negated:
        return min(found)
    if any(each is _NOWHERE_ELSE for each in found):
        return _NOWHERE_ELSE
    keys = tuple(sorted({key for each in found for key in each.keys}))
    if len(keys) <= MOST_COPIES:
        return _Reach(sum([each.cost for each in found]), keys)
    return _NOWHERE_ELSE if named else _reach(node, costs, types, negated, named=True)


def _of_predicate(
    node: Predicate, costs: Costs, types: Mapping[str, str], negated: bool, named: bool
) -> _Reach:
    name: str = node.name
    if is_context(name) or is_computed(name):  # no event has it
        return _NOWHERE_ELSE
    if isinstance(node, IsNull) and node.negated == negated:  # asks for its absence
        return _NOWHERE_ELSE
    values = () if named else _values_of(node, negated)
    if values and len(values) <= MOST_COPIES:
        keys = [_key_of(name, types.get(name), value) for value in values]
        known = tuple(sorted({key for key in keys if key is not None}))
        if None not in keys:
            shares = sum([costs.share_of(key) for key in known])
            return _Reach(min(shares + COPY * len(known), 0.99 * _NAMED), known)
    key = int(name_key(name))
    return _Reach(_NAMED + min(costs.share_of(key), 0.99), (key,))


def _values_of(node: Predicate, negated: bool) -> tuple[Any, ...]:
    """The values of which the attribute must have one; empty where that is not known."""
    if isinstance(node, Comparison) and node.op == ("<>" if negated else "="):
        return (node.value,)
    if isinstance(node, In) and node.negated == negated:
        return tuple([value for value in node.values if value is not None])
    return ()


def _key_of(name: str, kind: str | None, value: Any) -> int | None:
    if not _agrees(kind, value) or not isinstance(value, (bool, int, float, str, Decimal)):
        return None
    return value_key(name, type(value).__name__, value)


def _agrees(kind: str | None, value: Any) -> bool:
    """Whether a constant is of the type that events' texts are read as."""
    if kind in (None, "date", "timestamp"):
        return kind is None
    found = literal_type(value)
    return kind == found or (found == "number" and kind in ("int", "float"))


# -- how often keys occur ----------------------------------------------------------------------


class Costs:
    """How often keys occur among subscriptions, from a sample: rarer homes are better."""

    def __init__(self, keys: np.ndarray, shares: np.ndarray) -> None:
        order = np.argsort(keys)
        self.keys, self.shares = keys[order], shares[order]
        self._by_key = dict(zip(keys.tolist(), shares.tolist(), strict=True))

    def share_of(self, key: int) -> float:
        return self._by_key.get(key, 0.0)

    def share(self, keys: np.ndarray) -> np.ndarray:
        if not len(self.keys):
            return np.zeros(len(keys))
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        found: np.ndarray = np.where(self.keys[at] == keys, self.shares[at], 0.0)
        return found


_NO_COSTS = Costs(np.empty(0, np.uint64), np.empty(0))


# -- tables of predicates ---------------------------------------------------------------------


def candidate_keys(table: pa.Table, types: Mapping[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """The key that each row of a predicate table offers, and how coarse it is: 0, 1 or 2 (none)."""
    words, code = distinct(table.column("attribute"))
    operators, op_code = distinct(table.column("operator"))
    upper = [" ".join(str(each).upper().split()) for each in operators]
    is_equal = np.array([each in EQUAL for each in upper], bool)[op_code]
    is_absent = np.array([each == "IS NULL" for each in upper], bool)[op_code]
    is_theirs = np.array([is_context(str(word)) for word in words], bool)[code]  # no event has it
    by_name = np.array([name_key(str(word)) for word in words], np.uint64)
    keys, coarse = by_name[code], np.where(is_absent | is_theirs, 2, 1)
    first, known = _first_values(table)
    is_plain = np.array(
        [types.get(str(w), "string") not in ("date", "timestamp") for w in words], bool
    )
    usable = is_equal & known & is_plain[code] & ~is_theirs & _have_hashes(first)
    at = np.flatnonzero(usable)
    if len(at):
        hashes = hashes_of(first.take(pa.array(at)))
        if hashes is not None:
            keys[at], coarse[at] = value_keys(keys[at], hashes), 0
    return keys, coarse


def _have_hashes(column: pa.Array) -> np.ndarray:
    """Which constants have the hash of every value that is equal to them (see `hash_of`)."""
    if column.type == pa.uint64() or pa.types.is_decimal(column.type):
        return np.array([hash_of(value) is not None for value in column.to_pylist()], bool)
    return np.ones(len(column), bool)


def distinct(column: pa.ChunkedArray) -> tuple[list[Any], np.ndarray]:
    """The distinct values of a column, null among them, and which of them each row has."""
    words = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
    return words.dictionary.to_pylist(), words.indices.to_numpy(zero_copy_only=False)


def _first_values(table: pa.Table) -> tuple[pa.Array, np.ndarray]:
    """The first constant of each row; unusable where constants are structs."""
    for name in ("value", "values"):
        if name not in table.column_names:
            continue
        column = table.column(name).combine_chunks()
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            sizes = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
            position = np.asarray(column.offsets)[:-1]
            first = column.values.take(pa.array(position, mask=sizes == 0))
        else:
            first = column
        if not pa.types.is_struct(first.type):
            known = first.is_valid().to_numpy(zero_copy_only=False)
            if known.any():
                return first, known
    return pa.nulls(table.num_rows), np.zeros(table.num_rows, bool)


def homes_of_predicates(
    table: pa.Table, costs: Costs, types: Mapping[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """The home of the subscription of every row; rows of an id lie side by side.

    Also the number of the subscription of every row.
    """
    keys, coarse = candidate_keys(table, types)
    ids, code = distinct(table.column("id"))
    cost = coarse + np.minimum(costs.share(keys), 0.99)
    order = np.lexsort((keys, cost, code))
    first = np.searchsorted(code[order], np.arange(len(ids)))
    best = order[first]
    home = np.where(coarse[best] < 2, keys[best], ANY)
    return home[code], code
