"""What PSTBloom and PSTHash share: settings, arrays, and the memory they take.

The arrays are in the table of `bloom`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import IndexFrame
from matchwood.index.core.scratch import Part, Scratch, n_attributes_of, new_version
from matchwood.index.pst import entries
from matchwood.index.pst.access import (
    SEEN,
    Statistics,
)
from matchwood.index.pst.bloom_build import (
    lay_cuts,
)
from matchwood.index.pst.bloom_change import (
    ENTRIES_FULL,
    IDS_FULL,
    RECORDS_FULL,
    SPACES_FULL,
    Division,
    Limits,
    Tables,
)
from matchwood.index.pst.bloom_match import N_LEARNED, N_SAMPLED, Search, absorb_events
from matchwood.index.pst.draw import draw_spaces
from matchwood.index.pst.entries import Entries
from matchwood.index.pst.records import (
    HIGH,
    NO_ACCESS,
    NONE,
    Homes,
    Records,
)
from matchwood.index.pst.signatures import Signatures
from matchwood.index.pst.spaces import Spaces
from matchwood.kernel.arrays import doubled, grown
from matchwood.kernel.column_lists import ColumnStore
from matchwood.kernel.id_list_kernels import NO_BLOCK
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.owner import Owner
from matchwood.kernel.verify_kernels import COUNTERS

ODDS, OPERATORS = "odds", "operators"
SIGNATURE_BITS = (0, 64, 128, 256)
_SMALL = 64
MOST_LEARNED = 2**20
"""Values that wait in a scratch to be counted; when more do, events are no longer sampled."""
OFTEN = 0.5
"""An attribute that more events have than this share is no news: its bits stand for keys."""


@dataclass(frozen=True, kw_only=True)
class DivisionConfig(IndexConfig):
    """How attributes are divided into spaces.

    space_size       records that a space holds before it is split; 0 splits at every end, as the
                     paper does; more saves memory where an attribute has few expressions
    max_spaces       spaces of an attribute; more tell more values apart
    max_points       the same where nearly all access predicates are single values, which then have
                     a space each
    max_records      spaces that an expression is listed in; an access predicate that meets more
                     goes to the coarse division of its attribute
    """

    space_size: int = 16
    max_spaces: int = 1024
    max_points: int = 2**20
    max_records: int = 24

    def __post_init__(self) -> None:
        self._expect_integer("space_size", 0)
        self._expect_integer("max_spaces", 1, 2**24)
        self._expect_integer("max_points", 0, 2**24)
        self._expect_integer("max_records", 1)


@dataclass(frozen=True, kw_only=True)
class Config(DivisionConfig):
    """What can be set, in addition to how attributes are divided.

    signature_bits   bits that sieve candidates: 0, 64, 128 or 256; more let fewer pass in vain and
                     cost 8 bytes a record for every 64
    ranking          of predicates before events have been seen: by their "odds", or by their
                     "operators" as in section 3.3
    learn_every      every so many events are counted; 0: none
    window           counted events after which all counts are halved
    """

    signature_bits: int = 64
    ranking: str = ODDS
    learn_every: int = 16
    window: int = 65_536

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect_one("signature_bits", *SIGNATURE_BITS)
        self._expect_one("ranking", ODDS, OPERATORS)
        self._expect_integer("learn_every", 0)
        self._expect_integer("window", 64)


class PSTFrame(IndexFrame, Owner):
    """Owns the spaces, the records in them and the entries that records point to."""

    OWNED: ClassVar[Mapping[str, str]] = {
        "_spaces": "space_",
        "_records": "record_",
        "_entries": "entry_",
        "_homes": "home_",
        "_statistics": "statistics_",
        "_signatures": "signature_",
    }

    def _clear(self) -> None:
        self._is_thawed = True
        self._spaces = ColumnStore(
            Spaces, 2 * _SMALL, cut=np.empty(0, np.int64), uses=np.empty(0, np.int32)
        )
        marks = np.empty((0, self._mark_words), np.int64)
        self._records = ColumnStore(Records, _SMALL, mark=marks)
        self._entries = Entries(
            word=np.zeros(256, np.int64),
            origin=np.full(_SMALL, MAX_KEY, np.int64),
            free=np.full(entries.N_CLASSES, -1, np.int64),
            count=np.zeros(2, np.int64),
            skipped=np.zeros(1, np.int64),
        )
        self._homes = Homes(
            ref=np.full(_SMALL, NONE, np.int32),
            access=np.full(_SMALL, NO_ACCESS, np.int32),
            space_seen=np.zeros(_SMALL, np.int32),
            count=np.array([0, NONE], np.int64),
        )
        self._statistics = Statistics(
            uses=np.zeros(_SMALL, np.int64),
            lo=np.full(_SMALL, MAX_KEY, np.int64),
            hi=np.full(_SMALL, MIN_KEY, np.int64),
            values=np.zeros(_SMALL, np.int64),
            seen=np.zeros(_SMALL, np.int64),
            total=np.zeros(2, np.int64),
        )
        self._signatures = Signatures(
            low=np.zeros(_SMALL, np.int64),
            scale=np.zeros(_SMALL, np.float64),
        )
        self._sieve = np.zeros(3, np.int64)
        self._version = new_version()

    @property
    def _mark_words(self) -> int:
        """Words of a record's signature."""
        return int(self.config.signature_bits // 64)

    @property
    def _limits(self) -> Limits:
        c = self.config
        return Limits(c.space_size, c.max_spaces, c.max_records, int(c.ranking == OPERATORS))

    @property
    def _division(self) -> Division:
        """The arrays as they are now, for kernels that change them."""
        return Division(self._spaces.lists, self._records.lists, self._homes, self._entries)

    @property
    def _tables(self) -> Tables:
        return Tables(self._table.layout, self._table.predicates.layout)

    def _grow(self, full: int, size: int) -> None:
        """Make room where an insertion (of an expression of this size) found none."""
        if full == ENTRIES_FULL:
            self._make_words(max(4 * size + _SMALL, len(self._entries.word) // 4))
        elif full == SPACES_FULL:
            self._spaces.grow(2 * int(self._spaces.lists.size.max(initial=0)) + 8)
        elif full == IDS_FULL:
            self._make_ids(2 * len(self._homes.space_seen))
        elif full == RECORDS_FULL:
            self._records.grow(2 * int(self._records.lists.size.max(initial=0)) + 8)

    @property
    def _is_sparse(self) -> bool:
        top, freed = self._entries.count.tolist()
        return top > 1024 and freed > 0.75 * top

    def _held(self) -> np.ndarray:
        return np.flatnonzero(self._homes.ref != NONE).astype(np.int32)

    # ── searching ───────────────────────────────────────────────────────────────────────────────

    def new_part(self) -> Part:
        part = Part()
        part.arrays = self._new_search()
        return part

    def _new_search(self) -> Any:
        """What a search writes to."""
        return Search(
            posted=np.full(_SMALL, -1, np.int64),
            found=np.empty(2 * _SMALL, np.int64),
            picks=np.empty(_SMALL, np.int32),
            seen=np.empty(0, np.int64),
            clock=np.zeros(1, np.int64),
            work=np.zeros(len(COUNTERS), np.int64),
            sieve=np.zeros(3, np.int64),
            absent=np.zeros(self._mark_words, np.int64),
            learned=np.empty((_SMALL, 2), np.int32),
            count=np.zeros(2, np.int64),
        )

    def _prepared(self, events: EventBatch, scratch: Scratch) -> tuple[EventBatch, bool, bool, Any]:
        """Events, whether all of them have values alone, whether to learn, and what to write to."""
        is_plain = events.are_values
        part = scratch.of(self)
        if part.version != self._version:  # what was learned is about other spaces
            part.arrays.count[:] = 0
            part.version = self._version
        x = part.arrays = self._with_room(part.arrays, events, is_plain)
        learns = is_plain and self.config.learn_every > 0 and x.count[N_LEARNED] < MOST_LEARNED
        if learns:
            x = part.arrays = _with_room_to_learn(x, events)
        plain = events._replace(more=events.more[:0]) if is_plain else events
        return plain, is_plain, bool(learns), x

    def _learn(self, part: Part) -> None:
        """Count the events that were sampled, and forget half at the end of a window."""
        x = part.arrays
        self._sieve += x.sieve
        x.sieve[:] = 0
        if part.version == self._version and x.count[N_SAMPLED]:
            absorb_events(x, self._homes, self._statistics)
            self._forget()
        x.count[:] = 0

    def _forget(self) -> None:
        """Halve all counts at the end of a window, so that what is long ago counts little."""
        if self._statistics.total[SEEN] > self.config.window:
            self._statistics.total[SEEN] //= 2
            np.floor_divide(self._statistics.seen, 2, out=self._statistics.seen)
            np.floor_divide(self._homes.space_seen, 2, out=self._homes.space_seen)

    def _with_room(self, x: Any, events: EventBatch, is_plain: bool) -> Any:
        """The arrays of a search, long enough for the index as it is now."""
        attributes = max(self._table.n_attributes, n_attributes_of(events))
        if len(x.posted) < attributes:
            x = x._replace(posted=np.full(doubled(_SMALL, attributes), -1, np.int64))
        if len(x.found) < 2 * len(x.posted):
            x = x._replace(found=np.empty(2 * len(x.posted), np.int64))
        if len(x.picks) <= self._n_live:
            x = x._replace(picks=np.empty(doubled(_SMALL, self._n_live + 1), np.int32))
        if not is_plain and len(x.seen) < len(self._homes.ref):
            x = x._replace(seen=np.zeros(len(self._homes.ref), np.int64))
        return x

    def _structure(self) -> dict[str, Any]:
        tried, passed, held = self._sieve.tolist()
        access = self._homes.access[self._homes.access != NO_ACCESS]
        return {
            "spaces": int(self._spaces.lists.size.sum(dtype=np.int64)),
            "records": self._records.n_ids,
            "wide": int((access < 0).sum()),
            "signature_false_positives": (passed - held) / max(1, tried - held),
            "events_counted": int(self._statistics.total[SEEN]),
            "bytes": self.nbytes,
        }

    def draw(self) -> str:
        return draw_spaces(self.name, self._n_live, self._spaces.lists, self._records.lists)

    def _arrays(self) -> dict[str, np.ndarray]:
        # an array that matching wrote to once; readers of this format expect it
        return {**self.saved(), "signature_absent": np.zeros(self._mark_words, np.int64)}

    def _to_save(self, name: str, arrays: Any) -> Any:
        if isinstance(arrays, Entries):
            top = int(arrays.count[entries.TOP]) + entries.AHEAD
            return arrays._replace(word=arrays.word[:top])
        return arrays

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._is_thawed = False
        self.take(layout)

    def _owned(self, name: str, arrays: Any) -> Any:
        """Free entries are dropped: the links between them were not checked.  What searches learn
        is counted in arrays that are never a snapshot's own.
        """
        if isinstance(arrays, Entries):
            return arrays._replace(free=np.full_like(arrays.free, -1))
        if isinstance(arrays, Homes):
            return arrays._replace(space_seen=arrays.space_seen.copy())
        if isinstance(arrays, Statistics):
            return Statistics(*[each.copy() for each in arrays])
        return arrays

    def _thaw(self) -> None:
        if not self._is_thawed:
            self._is_thawed = True
            self.thaw()

    def _make_places(self, slots: np.ndarray) -> None:
        """Make the arrays long enough for every slot and attribute."""
        h, x, s = self._homes, self._statistics, self._signatures
        n = int(slots.max()) + 1
        if n <= len(h.ref) and self._table.n_attributes <= len(x.uses):
            return
        n = doubled(len(h.ref), n)
        self._homes = h._replace(ref=grown(h.ref, n, NONE), access=grown(h.access, n, NO_ACCESS))
        a = doubled(len(x.uses), self._table.n_attributes)
        self._spaces.make_lists(2 * a)
        self._entries = self._entries._replace(origin=grown(self._entries.origin, a, int(MAX_KEY)))
        self._statistics = x._replace(
            uses=grown(x.uses, a),
            lo=grown(x.lo, a, int(MAX_KEY)),
            hi=grown(x.hi, a, int(MIN_KEY)),
            values=grown(x.values, a),
            seen=grown(x.seen, a),
        )
        self._signatures = s._replace(low=grown(s.low, a), scale=grown(s.scale, a))

    def _open_dimensions(self, dims: np.ndarray) -> None:
        """Give dimensions without cuts one space each."""
        dims = np.unique(dims)
        dims = dims[self._spaces.lists.room[dims] == NO_BLOCK]
        n = len(dims)
        self._spaces.make_room(2 * n)
        self._make_ids(int(self._homes.count[HIGH]) + n)
        cuts = np.full(n, MIN_KEY)
        lay_cuts(self._spaces.lists, self._records.lists, self._homes, dims, np.arange(n + 1), cuts)

    def _make_ids(self, n: int) -> None:
        """Ids for so many spaces."""
        self._records.make_lists(n)
        n = len(self._records.lists.size)
        self._homes = self._homes._replace(space_seen=grown(self._homes.space_seen, n))

    def _make_words(self, n: int) -> None:
        """Room for so many more words of entries."""
        top = int(self._entries.count[entries.TOP])
        word = np.zeros(top + n, np.int64)  # memory that is not touched costs nothing yet
        word[:top] = self._entries.word[:top]
        self._entries = self._entries._replace(word=word)

    def _trim_words(self) -> None:
        top = int(self._entries.count[entries.TOP])
        word = self._entries.word[: top + top // 64 + _SMALL].copy()
        self._entries = self._entries._replace(word=word)


def _with_room_to_learn(x: Any, events: EventBatch) -> Any:
    """Room for the values of all events; memory that is not touched costs nothing."""
    used = int(x.count[N_LEARNED])
    needed = used + len(events.attr)
    if needed <= len(x.learned):
        return x
    learned = np.empty((doubled(len(x.learned), needed), 2), np.int32)
    learned[:used] = x.learned[:used]
    return x._replace(learned=learned)
