"""Translate: expressions of several tables as leaf rows of another one, without reading any text.

A table has its own attribute ids, and its keys are those of its own dictionaries.  What both mean
is known by name and by constant, so an expression moves to another table in three steps:

    attributes   by name; derived ones by what they are derived from
    constants    those that a predicate still needs, of all sources, in one bulk for each attribute
    predicates   intervals of keys: an end is a label, the key beside one, or the very end

The rows that come out are merged and interned like any others (`ExpressionTable.encode`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.dictionary import Relabelling, are_ends
from matchwood.encode.expression_kernels import ALWAYS, CONJUNCTION, NEVER
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.keys import DictionaryKeys
from matchwood.encode.merge_kernels import BETWEEN, Leaves, and_token, or_token
from matchwood.encode.predicates import moved_keys
from matchwood.kernel.arrays import offsets_of, slices
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

CONSTANTS = 4_096
"""Constants that a dictionary learns between two pauses."""


class Source(NamedTuple):
    """Where expressions come from: a table, its attributes, and the slots that are wanted."""

    attributes: Attributes
    table: ExpressionTable
    slots: np.ndarray


class Rows(NamedTuple):
    """Expressions as `ExpressionTable.encode` takes them."""

    leaves: Leaves
    start: np.ndarray
    code: np.ndarray


class Translation:
    """Predicates of all sources in the keys of `attributes`, which learns what they need.

    pause  called between bounded steps; may raise to give up

    A predicate of source s has the number `first[s] + id`; its intervals are
    `lo[start[number]:start[number + 1]]` and the same of `hi`.
    """

    def __init__(
        self, sources: Sequence[Source], attributes: Attributes, pause: Callable[[], None]
    ) -> None:
        self._sources = sources
        self._layouts = [each.table.layout for each in sources]  # unpacked once
        predicates = [_Predicates.of(each) for each in sources]
        sizes = [len(each.attr) for each in predicates]
        self._first = np.cumsum([0, *sizes])
        self._ids = [_new_ids(each, attributes, pause) for each in sources]
        constants = [_constants(*each) for each in zip(sources, predicates, self._ids, strict=True)]
        _learn([each for some in constants for each in some], attributes, pause)
        for each, some in zip(predicates, constants, strict=True):
            _move(each, some, attributes)
            pause()
        new = [ids[each.attr] for each, ids in zip(predicates, self._ids, strict=True)]
        self._attr = np.concatenate(new).astype(np.int32)
        self._size = np.concatenate([each.size for each in predicates])
        self._start = np.cumsum(self._size) - self._size
        self._lo = np.concatenate([each.lo for each in predicates])
        self._hi = np.concatenate([each.hi for each in predicates])
        attributes.changes += 1

    def rows(self, source_of: np.ndarray, slot_of: np.ndarray) -> Rows:
        """The expressions in some slots, each of a source, as leaf rows."""
        start, code = self._code(source_of, slot_of)
        is_leaf = code >= 0
        used = code[is_leaf]
        size = self._size[used]
        row = np.cumsum(size) - size
        code[is_leaf] = row
        if (size > 1).any():
            start, code = _spread(start, code, is_leaf, size)
        at = slices(self._start[used], size)
        n = len(at)
        ends = np.empty(2 * n, np.int64)
        ends[::2], ends[1::2] = self._lo[at], self._hi[at]
        leaves = Leaves(
            np.repeat(self._attr[used], size),
            np.full(n, BETWEEN, np.uint8),
            np.arange(n + 1, dtype=np.int64) * 2,
            ends,
            ends,
            np.zeros(2 * n, np.int8),
        )
        return Rows(leaves, start, code)

    def left_out(self, source: int, slots: np.ndarray) -> Iterator[tuple[int, list[int]]]:
        """Which of some slots mention attributes that merging left out, by position, and those."""
        found = self._sources[source].table.left_out
        if found:
            ids = self._ids[source]
            for at, slot in enumerate(slots.tolist()):
                if slot in found:
                    yield at, [int(ids[attr]) for attr in found[slot]]

    def _code(self, source_of: np.ndarray, slot_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Prefix code whose leaves are numbers of predicates, and where each expression begins."""
        n = len(slot_of)
        size, first, lead = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int32)
        parts = [(s, np.flatnonzero(source_of == s)) for s in np.unique(source_of).tolist()]
        for s, at in parts:
            x = self._layouts[s]
            slots = slot_of[at]
            kind = x.kind[slots]
            size[at], first[at] = x.size[slots], x.start[slots]
            lead[at[kind == ALWAYS]] = and_token(0)
            lead[at[kind == NEVER]] = or_token(0)
            several = at[(kind == CONJUNCTION) & (x.size[slots] > 1)]
            lead[several] = -2 * size[several] - 1  # and_token of each
        start = np.zeros(n + 1, np.int64)
        np.cumsum(size + (lead != 0), out=start[1:])
        code = np.empty(start[-1], np.int32)
        has_lead = lead != 0
        code[start[:-1][has_lead]] = lead[has_lead]
        for s, at in parts:
            x = self._layouts[s]
            mine = x.code[slices(first[at], size[at])]
            mine = np.where(mine >= 0, mine + np.int32(self._first[s]), mine)
            code[slices(start[:-1][at] + has_lead[at], size[at])] = mine
        return start, code


class _Predicates(NamedTuple):
    """The predicates of a source by id, with all their intervals one after the other."""

    attr: np.ndarray  # -1: not in use
    size: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    owner: np.ndarray  # of each interval: the attribute

    @classmethod
    def of(cls, source: Source) -> _Predicates:
        """Those that the wanted slots use; of others nothing is moved."""
        p = source.table.predicates.layout
        code = source.table.codes_of(source.slots)
        attr = np.full(len(p.attr), -1, np.int32)
        used = np.unique(code[code >= 0])
        attr[used] = p.attr[used]
        size = np.where(attr >= 0, p.n_intervals, 0).astype(np.int64)
        at = np.cumsum(size) - size
        lo, hi = np.empty(int(size.sum()), np.int64), np.empty(int(size.sum()), np.int64)
        one, several = used[size[used] == 1], used[size[used] > 1]
        lo[at[one]], hi[at[one]] = p.lo[one], p.hi[one]
        into = slices(at[several], size[several])
        kept = slices(p.interval_start[several], size[several])
        lo[into], hi[into] = p.interval_lo[kept], p.interval_hi[kept]
        return cls(attr, size, lo, hi, np.repeat(attr, size))


def _new_ids(source: Source, attributes: Attributes, pause: Callable[[], None]) -> np.ndarray:
    """By attribute of a source: the id in `attributes` of what wanted slots mention; else -1."""
    old = source.attributes.all
    ids = np.full(len(old) + 1, -1, np.int64)  # the last: of predicates that are not in use
    for mentioned in source.table.attributes_of(source.slots):
        ids[mentioned] = _translated(source.attributes, old[mentioned], attributes)
        pause()
    return ids


def _translated(source: Attributes, old: Attribute, attributes: Attributes) -> int:
    if not old.is_derived:
        new = attributes.get(old.name, old.type)
        if old.type is None:
            new.is_asked = True
        return new.id
    assert old.term is None, "an expression that refers to a context is not translated"
    assert not old.is_beside
    base = source.all[old.source]
    from_ = attributes.all[_translated(source, base, attributes)]
    if old.pattern is None:
        return attributes.absence(from_)
    return attributes.pattern(from_, old.pattern)


class _Constants(NamedTuple):
    """The constants of one attribute that the predicates of a source need."""

    attr: int  # the new id
    at: np.ndarray  # where the attribute's intervals are
    labels: np.ndarray
    values: list[Any]


def _constants(source: Source, predicates: _Predicates, ids: np.ndarray) -> list[_Constants]:
    """Of every attribute whose keys are the labels of a dictionary."""
    found = []
    order = np.argsort(predicates.owner, kind="stable")
    ends = np.searchsorted(predicates.owner[order], np.arange(len(ids) + 1))
    for attr in np.flatnonzero(ids[:-1] >= 0).tolist():
        keys = source.attributes.all[attr].keys
        if isinstance(keys, DictionaryKeys):
            at = order[ends[attr] : ends[attr + 1]]
            dictionary = keys.dictionary
            labels = dictionary.labels()
            is_used = are_ends(labels, np.concatenate([predicates.lo[at], predicates.hi[at]]))
            values = [
                v for v, keep in zip(dictionary.values, is_used.tolist(), strict=True) if keep
            ]
            found.append(_Constants(int(ids[attr]), at, labels[is_used], values))
    return found


def _learn(found: Sequence[_Constants], attributes: Attributes, pause: Callable[[], None]) -> None:
    """Have dictionaries take the constants, in their order, so that labels are spread evenly."""
    lists: dict[int, list[list[Any]]] = {}
    for each in found:
        lists.setdefault(each.attr, []).append(each.values)
    for attr, values in lists.items():
        keys = attributes.all[attr].keys
        assert isinstance(keys, DictionaryKeys)
        before = keys.n_constants
        for some in _ascending(values):
            keys.dictionary.add(some)
            pause()
        moved = keys.take_relabelling()
        assert moved is None, "nothing has a key of this dictionary yet"
        attributes.n_new += keys.n_constants - before


def _ascending(lists: list[list[Any]]) -> Iterator[list[Any]]:
    """What several ascending lists hold, in ascending pieces."""
    at = [0] * len(lists)
    while True:
        left = [i for i, each in enumerate(lists) if at[i] < len(each)]
        if not left:
            return
        bound = min([lists[i][min(at[i] + CONSTANTS, len(lists[i])) - 1] for i in left])
        piece: list[Any] = []
        for i in left:
            end = bisect_right(lists[i], bound, at[i])
            piece += lists[i][at[i] : end]
            at[i] = end
        yield piece


def _move(predicates: _Predicates, found: Sequence[_Constants], attributes: Attributes) -> None:
    """Rewrite the ends of intervals as keys of the new dictionaries."""
    for each in found:
        keys = attributes.all[each.attr].keys
        assert isinstance(keys, DictionaryKeys)
        label_of = keys.dictionary.label_of
        new = np.fromiter([label_of[v] for v in each.values], np.int64, len(each.values))
        moved = Relabelling(each.labels, new)
        predicates.lo[each.at] = moved_keys(predicates.lo[each.at], moved, MIN_KEY, 1)
        predicates.hi[each.at] = moved_keys(predicates.hi[each.at], moved, MAX_KEY, -1)


def _spread(
    start: np.ndarray, code: np.ndarray, is_leaf: np.ndarray, size: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Code in which a leaf of several rows is the OR of them."""
    length = np.ones(len(code), np.int64)
    length[is_leaf] = np.where(size > 1, size + 1, 1)
    ends = offsets_of(length)
    fresh = np.empty(ends[-1], np.int32)
    plain = length == 1
    fresh[ends[:-1][plain]] = code[plain]
    several, n = np.flatnonzero(~plain), size[size > 1]
    fresh[ends[several]] = -2 * n - 2  # or_token of each
    rows = slices(code[several].astype(np.int64), n)
    fresh[slices(ends[several] + 1, n)] = rows
    return ends[start], fresh
