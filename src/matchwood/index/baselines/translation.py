"""Translation: a tree becomes an OR of conjunctions, and an index for conjunctions holds these.

Idea.    (P1 OR P2) AND P3 is P1 AND P3, or P2 AND P3.  Any conjunctive index finds the conjunctions
         that an event satisfies; an expression matches when one of its own is among them.
Source.  The translation-based method of the A-Tree paper (sections 2 and 6.4).
Differs. The index below is a setting.  Predicates on one attribute are merged inside a conjunction,
         and what cannot be true is left out.  Equal conjunctions are held once, whoever has them.
Cost.    What the index below costs, for as many conjunctions as there are: 4^4 for an AND of four
         ORs of four.  A tree with more than `limit` is refused.
Layout   conjunctions   an expression table of its own, and the index below
         pair_term      int32[N]   a conjunction and
         pair_slot      int32[N]   an expression that has it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.encode.expression_kernels import CONJUNCTION, UNUSED, ExpressionLayout
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.merge_kernels import BETWEEN, Leaves
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.encode.predicates import PredicateTable
from matchwood.errors import ExpansionError, MatchwoodError
from matchwood.forms.cost import MAX_DNF_TERMS
from matchwood.index.baselines.translation_kernels import count_terms, expand
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import IndexFrame, Step
from matchwood.index.core.protocol import ANY, CONJUNCTIONS, Hits
from matchwood.index.core.registry import find_index
from matchwood.kernel.verify_kernels import CANDIDATES, MATCHES

_CHUNK = 200_000
"""Conjunctions encoded at a time."""


@dataclass(frozen=True, kw_only=True)
class TranslationConfig(IndexConfig):
    """What can be set.

    base   the index that holds the conjunctions
    limit  most conjunctions of an expression; more are refused with ExpansionError
    """

    base: str = "pst_bloom"
    limit: int = MAX_DNF_TERMS

    def __post_init__(self) -> None:
        self._expect_integer("limit", 1)
        self._expect("base", isinstance(self.base, str), "the name of an index for conjunctions")
        language = find_index(self.base).language
        self._expect("base", language == CONJUNCTIONS, "an index for conjunctions")


class Translation(IndexFrame):
    """Owns the conjunctions, their index, and who has which."""

    name: ClassVar[str] = "translation"
    language: ClassVar[str] = ANY
    Config: ClassVar[type[IndexConfig]] = TranslationConfig

    def _clear(self) -> None:
        self._terms = ExpressionTable()
        self._base = find_index(self.config.base).build(self._terms, np.empty(0, np.int32))
        self._pair_term = np.empty(0, np.int32)
        self._pair_slot = np.empty(0, np.int32)
        self._known: dict[bytes, int] | None = {}
        self._owners: tuple[np.ndarray, np.ndarray] | None = None

    # ── changing ────────────────────────────────────────────────────────────────────────────────

    def refusals(self, slots: np.ndarray) -> dict[int, MatchwoodError]:
        """Expressions with more conjunctions than the limit."""
        limit, counts = self.config.limit, self._counted(slots)
        return {
            int(slots[i]): ExpansionError(
                f"translation: expected at most {limit:,} conjunctions of an expression, found "
                f"{int(counts[i]):,}: raise the limit (limit={int(counts[i])}), or use a_tree",
                int(counts[i]),
                limit,
            )
            for i in np.flatnonzero(counts > limit)
        }

    def _add(self, slots: np.ndarray) -> None:
        counts = self._counted(slots)
        terms, owners = [self._pair_term], [self._pair_slot]
        first = 0
        while first < len(slots):
            last, total = first + 1, int(counts[first])
            while last < len(slots) and total + counts[last] <= _CHUNK:
                total += int(counts[last])
                last += 1
            mine, owner = self._encode(slots[first:last], counts[first:last])
            terms.append(mine)
            owners.append(owner)
            first = last
        self._pair_term, self._pair_slot = np.concatenate(terms), np.concatenate(owners)
        self._owners = None

    def _counted(self, slots: np.ndarray) -> np.ndarray:
        """How many conjunctions each expression expands to."""
        longest = int(self._table.layout.size[slots].max(initial=0))
        found = np.empty(len(slots), np.int64)
        scratch = np.empty((2, longest), np.int64)
        count_terms(self._table.layout, slots, scratch[0], scratch[1], found)
        return found

    def _encode(self, slots: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Conjunctions of some expressions: each pair of one and its owner, none twice."""
        known = self._codes()  # before the new ones join the table, where they may be equal
        leaves, row_of = self._rows(slots)
        codes, starts = self._expanded(slots, counts, row_of)
        n = len(starts) - 1
        unused = np.flatnonzero(self._terms.layout.kind == UNUSED)[:n]
        high = len(self._terms.layout.kind)
        fresh = np.concatenate([unused, np.arange(high, high + n - len(unused))]).astype(np.int32)
        self._terms.encode(leaves, starts, codes, fresh)
        owner = np.repeat(slots, counts)
        kept = np.full(n, -1, np.int32)
        x, new = self._terms.layout, []
        for i, term in enumerate(fresh.tolist()):
            if x.kind[term] != CONJUNCTION:  # cannot be true
                continue
            start = x.start[term]
            key = x.code[start : start + x.size[term]].tobytes()
            kept[i] = known.setdefault(key, term)
            if kept[i] == term:
                new.append(term)
        self._terms.release(np.setdiff1d(fresh, np.array(new, np.int32)))
        self._base.insert(np.array(new, np.int32))
        held = kept >= 0
        pairs = np.unique(kept[held].astype(np.int64) << 32 | owner[held])
        return (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32)

    def _rows(self, slots: np.ndarray) -> tuple[Leaves, np.ndarray]:
        """The intervals of all predicates in use, as leaves x BETWEEN low AND high."""
        p = self._table.predicates.layout
        code = np.concatenate([self._table.code_of(slot) for slot in slots.tolist()])
        preds = np.unique(code[code >= 0])
        sizes = p.n_intervals[preds].astype(np.int64)
        row_of = np.full(len(p.attr), -1, np.int64)
        row_of[preds] = np.cumsum(sizes) - sizes
        ends = [pair for pred in preds.tolist() for pair in self._table.predicates.intervals(pred)]
        keys = np.array(ends, np.int64).reshape(-1)
        n = int(sizes.sum())
        leaves = Leaves(
            np.repeat(p.attr[preds], sizes),
            np.full(n, BETWEEN, np.uint8),
            np.arange(0, 2 * n + 1, 2),
            keys,
            keys,
            np.zeros(2 * n, np.int8),
        )
        return leaves, row_of

    def _expanded(
        self, slots: np.ndarray, counts: np.ndarray, row_of: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        x, p = self._table.layout, self._table.predicates.layout
        longest = int(x.size[slots].max())
        terms, size = np.empty((2, longest), np.int64)
        stack = np.empty((longest + 1, 2), np.int64)
        buffer = np.empty(1 << 16, np.int32)
        codes, starts, base = [], [np.zeros(1, np.int64)], 0
        for slot, n in zip(slots.tolist(), counts.tolist(), strict=True):
            code_start = np.zeros(n + 1, np.int64)
            while True:
                used = expand(x, slot, p, row_of, terms, size, stack, buffer, code_start)
                if used >= 0:
                    break
                buffer = np.empty(2 * len(buffer), np.int32)
            codes.append(buffer[:used].copy())
            starts.append(code_start[1:] + base)
            base += int(used)
        return np.concatenate(codes), np.concatenate(starts)

    def _codes(self) -> dict[bytes, int]:
        """Conjunctions by code; after a snapshot was read, made when they are first needed."""
        if self._known is None:
            x = self._terms.layout
            self._known = {
                x.code[x.start[term] : x.start[term] + x.size[term]].tobytes(): term
                for term in self._terms.slots_of(CONJUNCTION).tolist()
            }
        return self._known

    def _remove(self, slots: np.ndarray) -> None:
        gone = np.isin(self._pair_slot, slots)
        before = np.unique(self._pair_term[gone])
        self._pair_term, self._pair_slot = self._pair_term[~gone], self._pair_slot[~gone]
        unowned = before[~np.isin(before, self._pair_term)]
        self._owners = None
        if len(unowned):
            known = self._codes()
            for term in unowned.tolist():
                del known[self._terms.code_of(term).tobytes()]
            self._base.delete(unowned)
            self._terms.release(unowned)

    # ── matching ────────────────────────────────────────────────────────────────────────────────

    def match_batch(self, events: EventBatch) -> Hits:
        """The conjunctions' hits, each replaced by its owners, none twice."""
        hits = self._base.match_batch(events)
        start, owner = self._owned()
        n_owners = start[hits.slots + 1] - start[hits.slots]
        event = np.repeat(np.arange(events.n_events), np.diff(hits.offsets))
        firsts = np.cumsum(n_owners) - n_owners
        at = np.repeat(start[hits.slots] - firsts, n_owners) + np.arange(int(n_owners.sum()))
        pairs = np.unique(np.repeat(event, n_owners) << 32 | owner[at])
        counters = hits.counters.copy()
        counters[CANDIDATES] = counters[MATCHES] = len(pairs)
        offsets = np.searchsorted(pairs >> 32, np.arange(events.n_events + 1))
        return Hits(offsets, (pairs & 0xFFFFFFFF).astype(np.int32), counters)

    def _owned(self) -> tuple[np.ndarray, np.ndarray]:
        """Expressions by conjunction."""
        if self._owners is None:
            order = np.argsort(self._pair_term, kind="stable")
            start = np.searchsorted(
                self._pair_term[order], np.arange(len(self._terms.layout.kind) + 1)
            )
            self._owners = start, self._pair_slot[order].astype(np.int64)
        return self._owners

    def _stepper(self, events: EventBatch) -> Step:
        raise AssertionError("the index below matches")

    # ── looking at it, keeping it ───────────────────────────────────────────────────────────────

    def _structure(self) -> dict[str, Any]:
        below = self._base.stats()
        pairs = self._pair_term.nbytes + self._pair_slot.nbytes
        return {
            "conjunctions": len(self._base),
            "base_bytes": below["bytes"],
            "bytes": below["bytes"] + self._terms.nbytes + pairs,
        }

    def draw(self) -> str:
        return (
            f"translation of {len(self)} expressions to {len(self._base)} conjunctions\n"
            f"└── {self._base.draw()}"
        )

    def _arrays(self) -> dict[str, np.ndarray]:
        parts = {
            "below": self._base.layout(),
            "terms": self._terms.layout._asdict(),
            "predicates": self._terms.predicates.layout._asdict(),
        }
        own = {
            f"{part}_{name}": array for part, each in parts.items() for name, array in each.items()
        }
        return {**own, "pair_term": self._pair_term, "pair_slot": self._pair_slot}

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        def part(prefix: str) -> dict[str, np.ndarray]:
            return {k[len(prefix) :]: v for k, v in layout.items() if k.startswith(prefix)}

        predicates = PredicateTable(PredicateLayout(**part("predicates_")))
        self._terms = ExpressionTable(ExpressionLayout(**part("terms_")), predicates)
        self._base = find_index(self.config.base).restore(self._terms, part("below_"))
        self._pair_term, self._pair_slot = layout["pair_term"], layout["pair_slot"]
        self._known = self._owners = None

    def _thaw(self) -> None:
        def free(array: np.ndarray) -> np.ndarray:
            return array if array.flags.writeable else array.copy()

        table = self._terms
        table.layout = ExpressionLayout(*map(free, table.layout))
        table.predicates.layout = PredicateLayout(*map(free, table.predicates.layout))
