"""Relations between subscriptions: which overlap, which includes which, which are the same.

Idea.    An expression is a few *terms*, conjunctions of "attribute in a set of keys".  Two terms
         share an event if their sets on every common attribute share a value; one includes the
         other if each of its sets includes the other's.
Decided. Exactly, for conjunctions whose attributes are independent: plain attributes, and IS NULL.
         Of other expressions up to MOST_TERMS terms are compared.  Values count, not keys: nothing
         lies between 'a' and 'a' + NUL (`encode.domains`).
Unknown. LIKE with general patterns, values of a context, decimals with many digits, attributes of
         one nested object, and expressions with more terms.  Then no claim is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, product
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.attributes import Attributes
from matchwood.encode.domains import existing
from matchwood.encode.exact import EXACT
from matchwood.encode.expression_kernels import ALWAYS, CONJUNCTION, NEVER, TREE
from matchwood.encode.keys import INT_MAX, INT_MIN
from matchwood.encode.kinds import is_computed
from matchwood.engine.matches import Id

if TYPE_CHECKING:
    from matchwood.engine.stores.store import Store

MOST_TERMS = 64
"""Terms of an expression that are compared."""

Interval = tuple[int, int]
Sets = tuple[Interval, ...]
Term = dict[int, Sets]
"""Key sets by attribute."""


class Related(list[Id]):
    """Ids of subscriptions of which a relation is certain; `unknown` has those not decided."""

    def __init__(self, certain: list[Id], unknown: list[Id]) -> None:
        super().__init__(certain)
        self.unknown = unknown

    def __repr__(self) -> str:
        more = f", {len(self.unknown)} unknown" if self.unknown else ""
        return f"{list(self)!r}{more}"


@dataclass
class _World:
    """What is needed of a store to compare terms."""

    store: Store

    @property
    def attributes(self) -> Attributes:
        return self.store.attributes

    def terms(self, slot: int) -> list[Term] | None:
        """The terms of an expression; None if there are too many."""
        kind = self.store.table.layout.kind[slot]
        if kind == NEVER:
            return []
        if kind == ALWAYS:
            return [{}]
        code = self.store.table.code_of(slot).tolist()
        if kind == CONJUNCTION:
            return [self._term(code)]
        done: list[list[list[int]]] = []
        for token in reversed(code):
            if token >= 0:
                done.append([[token]])
                continue
            operands = [done.pop() for _ in range((-token - 1) // 2)]
            if token % 2:  # AND
                size = int(np.prod([len(each) for each in operands], dtype=np.float64))
                if size > MOST_TERMS:
                    return None
                done.append([list(chain(*each)) for each in product(*operands)])
            else:
                done.append([term for each in operands for term in each])
                if len(done[-1]) > MOST_TERMS:
                    return None
        return [term for preds in done[0] if (term := self._term(preds)) is not None]

    def _term(self, preds: list[int]) -> Any:
        """The sets of a conjunction; None if two on one attribute share no key."""
        predicates = self.store.table.predicates
        term: Term = {}
        for pred in preds:
            attr = int(predicates.layout.attr[pred])
            sets = predicates.intervals(pred)
            term[attr] = intersection(term[attr], sets) if attr in term else sets
            if not term[attr]:
                return None
        return term

    # -- attributes --------------------------------------------------------------------------

    def group(self, attr: int) -> str:
        """Attributes of different groups are independent of each other.

        Derived ones belong to their source, and the members of an object to the object where that
        is an attribute itself.
        """
        attribute = self.attributes.all[attr]
        while attribute.source >= 0:
            attribute = self.attributes.all[attribute.source]
        parts = attribute.name.split("\0")[0].split(".")
        prefixes = [".".join(parts[:n]) for n in range(1, len(parts) + 1)]
        known = [each for each in prefixes if each in self.attributes.by_name]
        return known[0] if known else prefixes[-1]

    def is_absence(self, attr: int) -> bool:
        source = self.attributes.all[attr].source
        return source >= 0 and self.attributes.all[source].absence_id == attr

    def is_plain(self, attr: int) -> bool:
        """Whether an attribute has the values of an event, all of them or those of one kind."""
        attribute = self.attributes.all[attr]
        if attribute.base_id >= 0:
            is_exact = attribute.name.endswith(EXACT)
            return not is_exact and not is_computed(self.attributes.all[attribute.base_id].name)
        return not attribute.is_derived and not attribute.is_hidden

    def follows_context(self, attr: int) -> bool:
        """Whether the context decides: two subscriptions may have different ones."""
        attribute = self.attributes.all[attr]
        while attribute.source >= 0 and attribute.term is None:
            attribute = self.attributes.all[attribute.source]
        return attribute.term is not None or attribute.is_context

    def has_values(self, attr: int, sets: Sets) -> bool:
        return bool(existing(self.attributes.all[attr].keys, sets))

    def is_decidable(self, term: Term) -> bool:
        """Whether each attribute is independent of the others, and what it says is understood."""
        simple = all(
            self.is_plain(a) or (self.is_absence(a) and not self.follows_context(a)) for a in term
        )
        return simple and len({self.group(attr) for attr in term}) == len(term)

    def is_empty(self, term: Term) -> bool:
        """Whether no event satisfies a term, as far as its single sets tell."""
        return any(self.is_plain(a) and not self.has_values(a, sets) for a, sets in term.items())

    # -- terms -------------------------------------------------------------------------------

    def share(self, first: Term, second: Term) -> bool | None:
        """Whether an event satisfies both; None: not decided."""
        if self.is_empty(first) or self.is_empty(second):
            return False
        for attr, sets in first.items():
            if attr in second and not self.follows_context(attr):
                both = intersection(sets, second[attr])
                if not both or (self.is_plain(attr) and not self.has_values(attr, both)):
                    return False
            if self._excludes(attr, second):
                return False
        if any(self._excludes(attr, first) for attr in second):
            return False
        if not (self.is_decidable(first) and self.is_decidable(second)):
            return None
        groups = {self.group(attr): attr for attr in first}
        same = all(groups.get(self.group(attr), attr) == attr for attr in second)
        return True if same else None

    def _excludes(self, attr: int, term: Any) -> bool:
        """Whether an attribute is the absence of one that a term tests."""
        if not self.is_absence(attr) or self.follows_context(attr):
            return False
        source = self.attributes.all[attr].source
        return any(source in (each, self.attributes.all[each].base_id) for each in term)

    def includes(self, outer: Term, inner: Term) -> bool | None:
        """Whether all events of `inner` satisfy `outer`; None: not decided."""
        if self.is_empty(inner):
            return True
        fails = None
        for attr, sets in outer.items():
            if attr not in inner:
                fails = attr
                break
            rest = difference(inner[attr], sets)
            if rest and (not self.is_plain(attr) or self.has_values(attr, rest)):
                fails = attr
                break
        if fails is None:
            return True
        if not self.is_decidable(inner) or not (self.is_plain(fails) or self.is_absence(fails)):
            return None
        others = [a for a in inner if self.group(a) == self.group(fails) and a != fails]
        if not others:
            # x IS NULL fails where x is present, any set of x where x is absent
            return None if self.follows_context(fails) else False
        return (
            False
            if self._excludes(others[0], {fails: ()}) or self._excludes(fails, inner)
            else None
        )


def overlapping(store: Store, slot: int) -> Related:
    """Subscriptions that share an event with the one in a slot."""
    world = _World(store)
    terms = world.terms(slot)
    certain: list[int] = []
    unknown: list[int] = []
    for other in _may_overlap(world, terms).tolist():
        if other != slot:
            truth = _share(world, terms, world.terms(other))
            if truth is not False:
                (unknown if truth is None else certain).append(other)
    return Related(_ids(store, certain), _ids(store, unknown))


def _share(world: _World, first: list[Term] | None, second: list[Term] | None) -> bool | None:
    if first == [] or second == []:
        return False
    if first is None or second is None:
        return None
    truths = [world.share(one, other) for one in first for other in second]
    return True if True in truths else None if None in truths else False


def _may_overlap(world: _World, terms: list[Term] | None) -> np.ndarray:
    """Slots in order, without conjunctions whose hull on some attribute misses a single term's."""
    store = world.store
    slots = store.subscriptions.slots()
    if terms is None or len(terms) != 1:
        return slots
    layout, predicates = store.table.layout, store.table.predicates.layout
    conjunctions = slots[layout.kind[slots] == CONJUNCTION]
    size = layout.size[conjunctions].astype(np.int64)
    preds = store.table.codes_of(conjunctions)
    lo = np.full(len(world.attributes), INT_MIN)
    hi = np.full(len(world.attributes), INT_MAX)
    for attr, sets in terms[0].items():
        if not world.follows_context(attr):
            lo[attr], hi[attr] = sets[0][0], sets[-1][1]
    attrs = predicates.attr[preds]
    misses = (predicates.lo[preds] > hi[attrs]) | (predicates.hi[preds] < lo[attrs])
    gone = np.zeros(len(layout.kind), bool)
    gone[np.repeat(conjunctions, size)[misses]] = True
    return slots[~gone[slots]]


def subsumes(store: Store, slot: int, other: int) -> bool | None:
    """Whether every event of `other` is one of `slot`; None: not decided."""
    world = _World(store)
    outer, inner = world.terms(slot), world.terms(other)
    if slot == other or inner == []:
        return True
    if outer is None or inner is None:
        return None
    if store.contexts is not None:
        contexts = [store.contexts.context_of(each) for each in (slot, other)]
        tests = any(world.follows_context(attr) for term in outer for attr in term)
        if contexts[0] != contexts[1] and tests:
            return None
    truths = [_included(world, outer, term) for term in inner]
    return False if False in truths else None if None in truths else True


def _included(world: _World, outer: list[Term], term: Term) -> bool | None:
    """Whether all events of a term satisfy one of several."""
    truths = [world.includes(each, term) for each in outer]
    if True in truths:
        return True
    if len(outer) == 1:
        return truths[0]
    if world.is_empty(term):
        return True
    is_apart = all(world.share(each, term) is False for each in outer)
    return False if is_apart and world.is_decidable(term) else None


def duplicates(store: Store) -> list[list[Id]]:
    """Groups of equal normal form and context, in the order of their first members."""
    layout = store.table.layout
    groups: dict[Any, list[int]] = {}
    slots = store.subscriptions.slots()
    begin, size, kinds = layout.start[slots], layout.size[slots], layout.kind[slots]
    rows = zip(slots.tolist(), begin.tolist(), size.tolist(), kinds.tolist(), strict=True)
    for slot, start, n, kind in rows:
        is_code = kind in (CONJUNCTION, TREE)
        code = layout.code[start : start + n].tobytes() if is_code else b""
        context = None
        if store.contexts is not None and is_code:
            context = store.contexts.context_of(slot)
        groups.setdefault((kind, code, type(context), context), []).append(slot)
    return [_ids(store, slots) for slots in groups.values() if len(slots) > 1]


def _ids(store: Store, slots: list[int]) -> list[Id]:
    found: list[Id] = store.subscriptions.ids_of(np.array(slots, np.int32)).tolist()
    return found


def intersection(first: Sets, second: Sets) -> Sets:
    """Keys in both of two sorted, disjoint lists of intervals."""
    found, i, j = [], 0, 0
    while i < len(first) and j < len(second):
        lo, hi = max(first[i][0], second[j][0]), min(first[i][1], second[j][1])
        if lo <= hi:
            found.append((lo, hi))
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def difference(first: Sets, second: Sets) -> Sets:
    """Keys of the first that are not in the second."""
    holes, at = [], INT_MIN
    for lo, hi in second:
        if lo > at:
            holes.append((at, lo - 1))
        at = hi + 1
    if at <= INT_MAX:
        holes.append((at, INT_MAX))
    return intersection(first, tuple(holes))
