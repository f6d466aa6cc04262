"""Translation: a tree becomes an OR of conjunctions, and an index for conjunctions holds these.

Idea.    (P1 OR P2) AND P3 is P1 AND P3, or P2 AND P3.  Any conjunctive index finds the conjunctions
         that an event satisfies; an expression matches when one of its own is among them.
Source.  The translation-based method of the A-Tree paper (sections 2 and 6.4).
Differs. The index below is a setting.  Predicates on one attribute are merged inside a conjunction,
         and what cannot be true is left out.  Equal conjunctions are held once for all.
         Built again after changes: at once where the index below may refuse something (k_index,
         vcr), so that inserting one by one is slow there.
Cost.    What the index below costs, for as many conjunctions as there are: 4^4 for an AND of four
         ORs of four.  A tree with more than `limit` is refused.
Layout   terms   an expression table of its own, whose conjunctions the index below holds
         owners  lists, by conjunction: the expressions that have it (see list_kernels)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.encode.expression_kernels import CONJUNCTION, UNUSED
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.merge_kernels import BETWEEN, Leaves
from matchwood.errors import ExpansionError, MatchwoodError
from matchwood.forms.cost import MAX_DNF_TERMS
from matchwood.index.baselines.list_kernels import Lists
from matchwood.index.baselines.translation_kernels import Terms, count_terms, expand
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import IndexFrame, Step
from matchwood.index.core.protocol import ANY, CONJUNCTIONS, Hits, Index
from matchwood.index.core.registry import find_index
from matchwood.index.core.scratch import Scratch
from matchwood.index.core.static import StaticFrame
from matchwood.kernel.arrays import bytes_of, slices
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


class Translated(NamedTuple):
    """What is built; see the module's docstring."""

    terms: ExpressionTable
    base: Index
    owners: Lists


class Translation(StaticFrame[Translated]):
    """Owns the conjunctions, their index, and the expressions that have each of them."""

    name: ClassVar[str] = "translation"
    language: ClassVar[str] = ANY
    Config: ClassVar[type[IndexConfig]] = TranslationConfig

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

    def _must_build_now(self, slots: np.ndarray) -> bool:
        return find_index(self.config.base).refusals is not IndexFrame.refusals

    def _build(self, slots: np.ndarray) -> Translated:
        terms, known, counts = ExpressionTable(), dict[bytes, int](), self._counted(slots)
        pairs = [np.empty(0, np.int64)]
        first = 0
        while first < len(slots):
            last, total = first + 1, int(counts[first])
            while last < len(slots) and total + counts[last] <= _CHUNK:
                total += int(counts[last])
                last += 1
            pairs.append(self._encode(terms, known, slots[first:last], counts[first:last]))
            first = last
        by_term = np.sort(np.concatenate(pairs))
        start = np.searchsorted(by_term >> 32, np.arange(len(terms.layout.kind) + 1))
        base = find_index(self.config.base).build(terms, terms.slots_of(CONJUNCTION))
        base.settle()
        return Translated(terms, base, Lists(start, (by_term & 0xFFFFFFFF).astype(np.int32)))

    def _counted(self, slots: np.ndarray) -> np.ndarray:
        """How many conjunctions each expression expands to."""
        longest = int(self._table.layout.size[slots].max(initial=0))
        found = np.empty(len(slots), np.int64)
        scratch = np.empty((2, longest), np.int64)
        count_terms(self._table.layout, slots, scratch[0], scratch[1], found)
        return found

    def _encode(
        self,
        table: ExpressionTable,
        known: dict[bytes, int],
        slots: np.ndarray,
        counts: np.ndarray,
    ) -> np.ndarray:
        """Put the conjunctions of some expressions into a table; conjunction << 32 | expression.

        known   conjunctions of the table by code; equal ones are put once
        """
        leaves, row_of = self._rows(slots)
        codes, starts = self._expanded(slots, counts, row_of)
        n, high = len(starts) - 1, len(table.layout.kind)
        unused = np.flatnonzero(table.layout.kind == UNUSED)[:n]
        fresh = np.concatenate([unused, np.arange(high, high + n - len(unused))]).astype(np.int32)
        table.encode(leaves, starts, codes, fresh)
        kept = np.full(n, -1, np.int64)
        x = table.layout
        for i, term in enumerate(fresh.tolist()):
            if x.kind[term] == CONJUNCTION:  # else it cannot be true
                start = x.start[term]
                key = x.code[start : start + x.size[term]].tobytes()
                kept[i] = known.setdefault(key, term)
        table.release(fresh[kept != fresh])
        held = kept >= 0
        pairs: np.ndarray = np.unique(kept[held] << 32 | np.repeat(slots, counts)[held])
        return pairs

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
        scratch = Terms(terms, size, np.empty((longest + 1, 2), np.int64))
        buffer = np.empty(1 << 16, np.int32)
        codes, starts, base = [], [np.zeros(1, np.int64)], 0
        for slot, n in zip(slots.tolist(), counts.tolist(), strict=True):
            code_start = np.zeros(n + 1, np.int64)
            while True:
                used = expand(x, slot, p, row_of, scratch, buffer, code_start)
                if used >= 0:
                    break
                buffer = np.empty(2 * len(buffer), np.int32)
            codes.append(buffer[:used].copy())
            starts.append(code_start[1:] + base)
            base += int(used)
        return np.concatenate(codes), np.concatenate(starts)

    # ── matching ────────────────────────────────────────────────────────────────────────────────

    def search(self, events: EventBatch, scratch: Scratch) -> Hits:
        """The conjunctions' hits, each replaced by its owners, none twice."""
        base, (start, owner) = self._built.base, self._built.owners
        hits = base.search(events, scratch)
        n_owners = start[hits.slots + 1] - start[hits.slots]
        event = np.repeat(np.arange(events.n_events), np.diff(hits.offsets))
        at = slices(start[hits.slots], n_owners)
        pairs = np.unique(np.repeat(event, n_owners) << 32 | owner[at])
        counters = hits.counters.copy()
        counters[CANDIDATES] = counters[MATCHES] = len(pairs)
        offsets = np.searchsorted(pairs >> 32, np.arange(events.n_events + 1))
        return Hits(offsets, (pairs & 0xFFFFFFFF).astype(np.int32), counters)

    def absorb(self, scratch: Scratch) -> None:
        if self._kept is not None:
            self._kept.base.absorb(scratch)

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        raise AssertionError("the index below matches")

    # ── looking at it ───────────────────────────────────────────────────────────────────────────

    def _structure(self) -> dict[str, Any]:
        x = self._built
        below = x.base.stats()
        return {
            "conjunctions": len(x.base),
            "base_bytes": below["bytes"],
            "bytes": below["bytes"] + x.terms.nbytes + bytes_of(x.owners),
        }

    def draw(self) -> str:
        self.settle()
        base = self._built.base
        return (
            f"translation of {len(self)} expressions to {len(base)} conjunctions\n└── {base.draw()}"
        )
