"""What is true of a matcher's tables after every step, whatever was done to it.

check(matcher)   all of the below
trace(matcher)   what a refused change leaves as it was
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import numpy as np

from inside import attributes_of, view_of
from matchwood import Matcher
from matchwood.encode.attributes import Attributes
from matchwood.encode.expression_kernels import ALWAYS, CONJUNCTION, N_CODE, NEVER, TREE, UNUSED
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.keys import DictionaryKeys
from matchwood.encode.predicate_kernels import FREE, HIGH, SEED
from matchwood.encode.predicates import PredicateTable
from matchwood.engine.stores.routing import Routing
from matchwood.engine.stores.subscriptions import Subscriptions
from matchwood.lang.names import is_context

MASK = 2**64 - 1


def check(matcher: Matcher) -> None:
    for part in view_of(matcher).parts:
        store = part.store
        check_subscriptions(store.subscriptions, store.table)
        check_expressions(store.table)
        check_predicates(store.table.predicates)
        check_dictionaries(store.attributes)
        check_derived(store.attributes, store.table.predicates)
        check_routing(store.routing, store.table)
    check_view(matcher)


def check_view(matcher: Matcher) -> None:
    """Ids and numbers in the order of addition are there once; the counts are right."""
    view = view_of(matcher)
    ids = [id_ for p in view.parts for id_ in p.store.subscriptions.ids_of(p.slots()).tolist()]
    order = [n for p in view.parts for n in p.store.subscriptions.order[p.slots()].tolist()]
    assert len(set(ids)) == len(ids) == len(view) == len(matcher)
    assert len(set(order)) == len(order)
    assert view.is_guarded or max(order, default=-1) < view.n_added
    for part in view.parts:
        assert part.n_gone == int(np.unpackbits(part.gone).sum())
        is_locked = view.is_guarded or part is view.context_part  # settled by searches
        assert is_locked or not len(part) or part.store.routing.is_settled


def check_subscriptions(subscriptions: Subscriptions, table: ExpressionTable) -> None:
    """Slots and ids are one to one; a slot is in use here exactly when the table has it."""
    n = subscriptions.n_slots
    used = np.flatnonzero(subscriptions.order[:n] >= 0)
    assert len(used) == len(subscriptions)
    assert (subscriptions.order[n:] == -1).all()
    assert sorted([*used.tolist(), *subscriptions._free]) == list(range(n))
    assert len(set(subscriptions.order[used].tolist())) == len(used)
    assert [subscriptions.get(subscriptions.ids[slot]) for slot in used.tolist()] == used.tolist()
    assert np.flatnonzero(table.layout.kind != UNUSED).tolist() == used.tolist()
    in_order = subscriptions.order[subscriptions.slots()]
    assert (np.diff(in_order) > 0).all()
    if subscriptions.in_order:
        assert (np.diff(subscriptions.order[used]) > 0).all()


def check_expressions(table: ExpressionTable) -> None:
    """Code is whole, does not overlap, and refers to each predicate as often as it counts."""
    layout = table.layout
    uses: Counter[int] = Counter()
    places = []
    for slot in np.flatnonzero(layout.kind != UNUSED).tolist():
        code = table.code_of(slot).tolist()
        if layout.kind[slot] in (ALWAYS, NEVER):
            assert code == []
            continue
        places.append((int(layout.start[slot]), len(code)))
        uses.update(token for token in code if token >= 0)
        if layout.kind[slot] == CONJUNCTION:
            attrs = table.predicates.layout.attr[code].tolist()
            assert attrs == sorted(set(attrs)), "merged: one predicate an attribute, in order"
            assert len(attrs) >= 1
        else:
            assert layout.kind[slot] == TREE
            assert tree_end(code, 0) == len(code)
    refs = table.predicates.layout.refs
    live = live_predicates(table.predicates)
    assert {pred: int(refs[pred]) for pred in live} == dict(uses)
    places.sort()
    for (start, size), (following, _) in pairwise([*places, (int(layout.count[N_CODE]), 0)]):
        assert start + size <= following


def tree_end(code: list[int], at: int) -> int:
    """Where the subtree at a position of prefix code ends; inner nodes have operands enough."""
    if code[at] >= 0:
        return at + 1
    n, end = (-code[at] - 1) // 2, at + 1
    assert n >= 2
    for _ in range(n):
        end = tree_end(code, end)
    return end


def live_predicates(predicates: PredicateTable) -> list[int]:
    layout = predicates.layout
    return np.flatnonzero(layout.attr[: layout.count[HIGH]] >= 0).tolist()


def check_predicates(predicates: PredicateTable) -> None:
    """Sets are in their one form, each is held once, and the hash table finds it."""
    p = predicates.layout
    live = live_predicates(predicates)
    free = p.free[: p.count[FREE]].tolist()
    assert sorted([*live, *free]) == list(range(p.count[HIGH]))
    assert len(predicates) == len(live)
    sets = [(int(p.attr[pred]), predicates.intervals(pred)) for pred in live]
    assert len(set(sets)) == len(sets)
    for pred, (_, intervals) in zip(live, sets, strict=True):
        assert all(lo <= hi for lo, hi in intervals)
        assert all(a[1] + 1 < b[0] for a, b in pairwise(intervals))
        assert (p.lo[pred], p.hi[pred]) == (intervals[0][0], intervals[-1][1])
    check_hash_table(predicates, live, sets)


def check_hash_table(predicates: PredicateTable, live: list[int], sets: list) -> None:
    table = predicates.layout.table.tolist()
    if not table:  # of a snapshot: made at the first change
        return
    seed = int(predicates.layout.count[SEED]) & MASK
    place = {pred: at for at, pred in enumerate(table) if pred >= 0}
    assert sorted(place) == live
    assert 2 * len(live) <= len(table)
    for pred, (attr, intervals) in zip(live, sets, strict=True):
        at = hash_of(seed, attr, intervals) % len(table)
        while at != place[pred]:
            assert table[at] >= 0, "an empty place before a predicate's own hides it"
            at = (at + 1) % len(table)


def hash_of(seed: int, attr: int, intervals: tuple[tuple[int, int], ...]) -> int:
    h = mixed(seed ^ len(intervals), attr)
    for lo, hi in intervals:
        h = mixed(mixed(h, lo), hi)
    return h


def mixed(h: int, value: int) -> int:
    h = ((h ^ (value & MASK)) * 0x9E3779B97F4A7C15) & MASK
    h ^= h >> 32
    h = (h * 0xBF58476D1CE4E5B9) & MASK
    return h ^ (h >> 29)


def check_dictionaries(attributes: Attributes) -> None:
    """Labels ascend as their constants do, with room for a key between any two."""
    for attribute in attributes.all:
        if isinstance(attribute.keys, DictionaryKeys):
            dictionary = attribute.keys.dictionary
            values, labels = list(dictionary.values), dictionary.labels().tolist()
            assert len(values) == len(dictionary.label_of) == len(labels)
            assert all(a < b for a, b in pairwise(values))
            assert all(b - a >= 2 for a, b in pairwise(labels))
            assert dictionary._relabelling is None, "keys that were moved are rewritten at once"


def check_derived(attributes: Attributes, predicates: PredicateTable) -> None:
    """What a predicate tests is supplied: nothing derived that is in use is ever forgotten."""
    supplied = {each.absence_id for each in attributes.absences}
    for attribute in attributes.by_name.values():
        supplied |= {pattern.attr_id for pattern in attribute.patterns.values()}
        supplied |= set(attribute.terms.values())  # decided by the context
        if is_context(attribute.name):
            supplied.add(attribute.absence_id)
    for pred in live_predicates(predicates):
        tested = attributes.all[predicates.layout.attr[pred]]
        assert not tested.is_derived or tested.id in supplied


def check_routing(routing: Routing, table: ExpressionTable) -> None:
    """What can match is held exactly once, by an index with the keys of today."""
    kinds = table.layout.kind
    held = sum(len(index) for index in routing.indexes)
    assert held == int(np.isin(kinds, (CONJUNCTION, TREE)).sum())
    assert sorted(routing.always.tolist()) == np.flatnonzero(kinds == ALWAYS).tolist()
    assert routing.epoch == table.epoch


def trace(m: Matcher) -> str:
    """Everything a refused change must leave as it was."""
    stats = m.stats()
    stats.pop("compile_seconds")
    stats.pop("calls")
    dictionaries = {
        each.name: [str(value) for value in each.keys.dictionary.values]
        for each in attributes_of(m).all
        if isinstance(each.keys, DictionaryKeys)
    }
    return json.dumps([stats, dict(m.schema), dictionaries, len(attributes_of(m))], default=str)
