"""Members: subscriptions compiled for testing in contexts, grouped by the indexes' attributes.

The layout is in `member_kernels`.  Compiling goes in two steps: leaves as they stand in the
expressions (`Compiled`), from which statistics can be taken, then the order that puts the leaves of
the chosen attributes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from matchwood.context.cover_kernels import NOT_CHOSEN, cover_trees
from matchwood.context.leaf_kernels import (
    ABSENCE,
    BAND,
    CONTEXT_RELATION,
    FLOAT_OFFSET,
    GE,
    HIGH,
    INT_OFFSET,
    LE,
    LOW,
    NE,
    NEVER,
    PLAIN,
    RELATION,
    STATIC,
    VALUE,
    WHAT,
    leaf_word,
    with_kind,
    without_op,
    word_kind,
    word_offset,
    word_op,
)
from matchwood.context.member_kernels import FAIL, MATCH, N_LEAVES, N_LOOSE, N_MEMBERS, Members
from matchwood.context.store import ContextStore
from matchwood.encode.attribute import Attribute
from matchwood.encode.expression_kernels import CONJUNCTION, TREE
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.keys import FloatKeys
from matchwood.index.scan.match import Records, append_conjunctions, append_trees
from matchwood.index.stabbing.marker_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.arrays import grown

if TYPE_CHECKING:
    from matchwood.context.choice import Choice

_OPS = {"=": 0, "<>": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}
NO_INDEX_ATTR = -1


class Meanings(NamedTuple):
    """What a predicate on each attribute tests, by attribute id."""

    what: np.ndarray  # int64, as in `leaf[:, WHAT]`
    offset: np.ndarray  # int64, of relations
    is_relation: np.ndarray
    index_attr: np.ndarray  # the event's attribute that an index would be asked for, or -1


class Compiled(NamedTuple):
    """Leaves of some expressions, in their own order."""

    slots: np.ndarray
    member: np.ndarray  # int64[m]: number of the expression among `slots`
    leaf: np.ndarray
    jump: np.ndarray  # -1, -1 in conjunctions
    index_attr: np.ndarray  # int32[m]
    is_tree: np.ndarray  # bool[n]

    @property
    def is_of_context(self) -> np.ndarray:
        """Which leaves of conjunctions are on one value of the context alone."""
        kind = word_kind(self.leaf[:, WHAT])
        found: np.ndarray = np.isin(kind, (VALUE, ABSENCE)) & ~self.is_tree[self.member]
        return found


def meanings(table: ExpressionTable, store: ContextStore | None) -> Meanings:
    """The meaning of every attribute that predicates may be on."""
    n = table.n_attributes
    ids = np.arange(n, dtype=np.int64)
    what, offset = leaf_word(STATIC, ids), np.zeros(n, np.int64)
    is_relation, index_attr = np.zeros(n, bool), ids.copy()
    if store is None:
        return Meanings(what, offset, is_relation, index_attr)
    attributes = store.attributes
    for each in attributes.all[:n]:
        if each.is_dropped:
            continue
        if each.term is not None:
            what[each.id], offset[each.id], index_attr[each.id] = _relation(store, each)
            is_relation[each.id] = True
        elif each.is_context:
            what[each.id], index_attr[each.id] = leaf_word(VALUE, store.column(each.id)), -1
        elif each.is_derived and attributes.all[each.source].is_context:
            if each.pattern is None:
                what[each.id] = leaf_word(ABSENCE, store.column(each.source))
            else:
                column = store.pattern_column(each.source, each.pattern)
                what[each.id] = leaf_word(VALUE, column)
            index_attr[each.id] = -1
    return Meanings(what, offset, is_relation, index_attr)


def _relation(store: ContextStore, derived: Attribute) -> tuple[int, int, int]:
    """Packed meaning, offset and index attribute of a relation."""
    attributes, term = store.attributes, derived.term
    assert term is not None
    source, context = attributes.all[derived.source], attributes.all[term.context]
    compared = attributes.compared(source, term)
    if compared is None:
        return NEVER, 0, NO_INDEX_ATTR
    kind, offset = PLAIN, 0
    if term.offset != 0 or term.is_float:
        kind, offset = INT_OFFSET, int(term.offset)
        if isinstance(context.keys, FloatKeys):
            kind = FLOAT_OFFSET
            offset = int(np.float64(term.offset).view(np.int64))
    op, column = _OPS[term.op], store.column(context.id)
    if source.is_context:
        what = leaf_word(CONTEXT_RELATION, store.column(source.id), op, kind, column)
        return what, offset, NO_INDEX_ATTR
    index_attr = NO_INDEX_ATTR if op == NE else compared.id
    return leaf_word(RELATION, compared.id, op, kind, column), offset, index_attr


def compile_slots(table: ExpressionTable, slots: np.ndarray, meaning: Meanings) -> Compiled:
    """Leaves of conjunctions first, then of trees."""
    kind = table.layout.kind[slots]
    parts = [
        _compile(table, slots[kind == which], meaning, is_tree)
        for which, is_tree in ((CONJUNCTION, False), (TREE, True))
    ]
    first, second = parts
    return Compiled(
        np.concatenate([first.slots, second.slots]),
        np.concatenate([first.member, second.member + len(first.slots)]),
        np.concatenate([first.leaf, second.leaf]),
        np.concatenate([first.jump, second.jump]),
        np.concatenate([first.index_attr, second.index_attr]),
        np.concatenate([first.is_tree, second.is_tree]),
    )


def _compile(
    table: ExpressionTable, slots: np.ndarray, meaning: Meanings, is_tree: bool
) -> Compiled:
    sizes = table.layout.size[slots]
    total = int(sizes.sum())
    jumps = total if is_tree else 0
    records = Records(
        slot=np.empty(len(slots), np.int32),
        start=np.zeros(len(slots) + 1, np.int64),
        attr=np.empty(total, np.int32),
        lo=np.empty(total, np.int64),
        hi=np.empty(total, np.int64),
        ref=np.empty(total, np.int32),
        on_true=np.empty(jumps, np.int32),
        on_false=np.empty(jumps, np.int32),
    )
    if is_tree and len(slots):
        scratch = np.empty((5, int(sizes.max())), np.int32)
        append_trees(table.layout, table.predicates.layout, slots, records, 0, scratch)
    elif len(slots):
        append_conjunctions(table.layout, table.predicates.layout, slots, records, 0)
    n = int(records.start[len(slots)])
    attr = records.attr[:n]
    leaf = np.empty((n, 4), np.int64)
    leaf[:, 0] = meaning.what[attr]
    leaf[:, 1] = np.where(meaning.is_relation[attr], meaning.offset[attr], records.lo[:n])
    leaf[:, 2] = records.hi[:n]
    leaf[:, 3] = records.ref[:n]
    jump = np.full((n, 2), -1, np.int32)
    index_attr = np.full(n, NO_INDEX_ATTR, np.int32)
    if is_tree:
        jump[:, 0], jump[:, 1] = records.on_true[:n], records.on_false[:n]
    index_attr[:] = meaning.index_attr[attr]
    is_full = (leaf[:, 1] == MIN_KEY) & (leaf[:, 2] == MAX_KEY) & ~meaning.is_relation[attr]
    index_attr[is_full] = NO_INDEX_ATTR
    member = np.repeat(np.arange(len(slots)), np.diff(records.start))
    compiled = Compiled(slots, member, leaf, jump, index_attr, np.full(len(slots), is_tree))
    return compiled if is_tree else _banded(compiled)


def _banded(compiled: Compiled) -> Compiled:
    """x >= ctx.y - a AND x <= ctx.y + b  ->  one band, wherever both have offsets of one kind."""
    what = compiled.leaf[:, WHAT]
    is_bound = (word_kind(what) == RELATION) & (word_offset(what) != PLAIN)
    same = without_op(what)
    order = np.lexsort((what, same, compiled.member))
    first, second = order[:-1], order[1:]
    pairs = is_bound[first] & is_bound[second] & (same[first] == same[second])
    pairs &= compiled.member[first] == compiled.member[second]
    pairs &= (word_op(what[first]) == LE) & (word_op(what[second]) == GE)
    if not pairs.any():
        return compiled
    upper, lower = first[pairs], second[pairs]
    compiled.leaf[lower, HIGH] = compiled.leaf[upper, LOW]
    compiled.leaf[lower, WHAT] = with_kind(same[lower], BAND)
    kept = np.ones(len(what), bool)
    kept[upper] = False
    return compiled._replace(
        member=compiled.member[kept],
        leaf=compiled.leaf[kept],
        jump=compiled.jump[kept],
        index_attr=compiled.index_attr[kept],
    )


def no_members() -> Members:
    """Room for a few."""
    return Members(
        leaf=np.empty((64, 4), np.int64),
        jump=np.empty((64, 2), np.int32),
        start=np.zeros(17, np.int64),
        slot=np.full(16, -1, np.int32),
        row=np.full(16, -1, np.int32),
        need=np.zeros(16, np.uint8),
        is_tree=np.zeros(16, np.uint8),
        entry=np.zeros((16, 3), np.int32),
        listed=np.zeros(16, np.int32),
        link=np.empty((16, 5), np.int32),
        loose=np.empty(16, np.int32),
        wrong=np.zeros(16, np.uint8),
        spent=np.zeros(16, np.uint8),
        count=np.array([0, 0, 0, -1, 0, 0], np.int64),
    )


def append(
    members: Members, compiled: Compiled, choice: Choice, store: ContextStore | None
) -> Members:
    """Subscriptions with those of `compiled` after them; `choice` says which indexes there are."""
    n_old, m_old, _, _, n_loose, _ = members.count.tolist()
    n, n_indexes = len(compiled.slots), choice.width
    n_own = np.bincount(compiled.member, minlength=n)  # without copies
    compiled, rank, listed, need = _placed(compiled, choice)
    m = len(compiled.leaf)
    is_of_context = compiled.is_of_context
    # stable: a tree's own leaves stay; of an entry, tests of the event come first
    order = np.lexsort((is_of_context, rank, compiled.member))
    rank, owner = rank[order], compiled.member[order]
    sizes = np.bincount(owner, minlength=n)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    is_held = (rank >= 0) & (rank < n_indexes)
    held = np.zeros((n, n_indexes), np.int64)
    np.add.at(held, (owner[is_held], rank[is_held]), 1)
    kind = word_kind(compiled.leaf[order, WHAT])
    is_relation = ((kind == RELATION) | (kind == BAND) | is_of_context[order]) & is_held

    p = _with_room(members, n, m, n_indexes, int(is_relation.sum()), int((need == 0).sum()))
    p.leaf[m_old : m_old + m] = compiled.leaf[order]
    p.jump[m_old : m_old + m] = _jumps(compiled, order, owner, starts)
    p.start[n_old : n_old + n + 1] = m_old + starts
    p.slot[n_old : n_old + n] = compiled.slots
    p.row[n_old : n_old + n] = _rows(store, compiled.slots)
    p.need[n_old : n_old + n] = need
    p.is_tree[n_old : n_old + n] = compiled.is_tree
    if n_indexes:
        entry = p.entry[n_old * n_indexes : (n_old + n) * n_indexes].reshape(n, n_indexes, 3)
        before = np.cumsum(held, axis=1) - held + np.where(compiled.is_tree, n_own, 0)[:, None]
        entry[:, :, 0] = m_old + starts[:-1, None] + before
        entry[:, :, 1] = held
        entry[:, :, 2] = -1
        p.listed[n_old * n_indexes : (n_old + n) * n_indexes] = listed.ravel()
        p.wrong[n_old * n_indexes : (n_old + n) * n_indexes] = 0
        p.spent[n_old * n_indexes : (n_old + n) * n_indexes] = 0
    loose = n_old + np.flatnonzero(need == 0)
    p.loose[n_loose : n_loose + len(loose)] = loose
    p.count[N_MEMBERS], p.count[N_LEAVES] = n_old + n, m_old + m
    p.count[N_LOOSE] = n_loose + len(loose)
    return p


class Placed(NamedTuple):
    """Leaves, and the entries that they belong to."""

    compiled: Compiled  # leaves of trees that entries have are there twice
    rank: np.ndarray  # by leaf: its entry, `width` for none; -1 of a tree's own ones
    listed: np.ndarray  # int32[n, width], by entry: its index
    need: np.ndarray  # by subscription: indexes that find it when it matches


def _placed(compiled: Compiled, choice: Choice) -> Placed:
    """Which indexes hold each subscription."""
    n, m, width = len(compiled.slots), len(compiled.leaf), choice.width
    is_tree = compiled.is_tree[compiled.member]
    rank = np.where(is_tree, -1, width)
    listed, need = np.zeros((n, width), np.int32), np.zeros(n, np.int64)
    if not width:
        return Placed(compiled, rank, listed, need)
    lists = choice.lists_of(compiled.index_attr)
    _place_conjunctions(compiled, choice, np.where(is_tree, -1, lists), rank, listed, need)
    first = int(np.searchsorted(is_tree, True))  # conjunctions come first
    if first == m:
        return Placed(compiled, rank, listed, need)
    t = int(compiled.member[first])
    start = np.searchsorted(compiled.member, np.arange(t, n + 1))
    position = np.full(m, NOT_CHOSEN, np.int64)
    by_score = np.empty(choice.n_lists, np.int64)
    by_score[np.argsort(-choice.score, kind="stable")] = np.arange(choice.n_lists)
    scratch = np.zeros((2, int(np.diff(start).max())), np.bool_)
    cover_trees(compiled.jump, lists, start, by_score, position, listed[t:], need[t:], scratch)
    copied = np.flatnonzero(position >= 0)
    compiled = compiled._replace(
        member=np.concatenate([compiled.member, compiled.member[copied]]),
        leaf=np.concatenate([compiled.leaf, compiled.leaf[copied]]),
        jump=np.concatenate([compiled.jump, np.full((len(copied), 2), FAIL, np.int32)]),
        index_attr=np.concatenate([compiled.index_attr, compiled.index_attr[copied]]),
    )
    return Placed(compiled, np.concatenate([rank, position[copied]]), listed, need)


def _place_conjunctions(
    compiled: Compiled,
    choice: Choice,
    lists: np.ndarray,
    rank: np.ndarray,
    listed: np.ndarray,
    need: np.ndarray,
) -> None:
    """A conjunction is in the indexes on its most selective attributes.

    What the context alone decides goes with its first entry, or is an entry of its own where there
    is no other.
    """
    width = choice.width
    held = np.flatnonzero(lists >= 0)
    pairs, which = np.unique(
        compiled.member[held] * choice.n_lists + lists[held], return_inverse=True
    )
    owner, of_pair = pairs // choice.n_lists, pairs % choice.n_lists
    order = np.lexsort((of_pair, -choice.score[of_pair], owner))
    position = np.empty(len(pairs), np.int64)
    position[order] = np.arange(len(pairs)) - np.searchsorted(owner, owner)
    rank[held] = np.minimum(position[which], width)
    kept = position < width
    listed[owner[kept], position[kept]] = of_pair[kept]
    np.add.at(need, owner[kept], 1)
    is_of_context = compiled.is_of_context
    if choice.every >= 0:
        alone = np.intersect1d(compiled.member[is_of_context], np.flatnonzero(need == 0))
        listed[alone, 0], need[alone] = choice.every, 1
    rank[is_of_context & (need[compiled.member] > 0)] = 0


def _rows(store: ContextStore | None, slots: np.ndarray) -> np.ndarray:
    if store is None:
        return np.full(len(slots), -1, np.int32)
    linked = store.is_linked(slots)
    rows: np.ndarray = np.where(linked, store.slot_row[np.where(linked, slots, 0)], -1)
    return rows


def _jumps(
    compiled: Compiled, order: np.ndarray, owner: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """Of a conjunction: to the next leaf or MATCH, and FAIL.  Trees have their own."""
    jump = compiled.jump[order]
    is_conjunction = ~compiled.is_tree[owner]
    following = np.arange(len(order)) - starts[owner] + 1
    is_last = following == (starts[owner + 1] - starts[owner])
    jump[is_conjunction, 0] = np.where(is_last, MATCH, following)[is_conjunction]
    jump[is_conjunction, 1] = FAIL
    return jump


def _with_room(p: Members, n: int, m: int, n_indexes: int, n_links: int, n_loose: int) -> Members:
    """Twice what is needed, or exactly that for the first ones."""
    members, leaves, links, _, loose, _ = p.count.tolist()

    def size(had: int, needed: int) -> int:
        return had if needed <= had else needed if not members else max(needed, 2 * had)

    rows = size(len(p.slot), members + n)
    entries = max(rows * n_indexes, len(p.entry))
    at = size(len(p.leaf), leaves + m)
    return p._replace(
        leaf=grown(p.leaf, at),
        jump=grown(p.jump, at),
        start=grown(p.start, rows + 1),
        slot=grown(p.slot, rows, -1),
        row=grown(p.row, rows, -1),
        need=grown(p.need, rows),
        is_tree=grown(p.is_tree, rows),
        entry=grown(p.entry, entries),
        listed=grown(p.listed, entries),
        link=grown(p.link, size(len(p.link), links + n_links)),
        loose=grown(p.loose, size(len(p.loose), loose + n_loose)),
        wrong=grown(p.wrong, entries),
        spent=grown(p.spent, entries),
    )
