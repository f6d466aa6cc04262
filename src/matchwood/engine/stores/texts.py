"""Texts of subscriptions as UTF-8 in one byte array, so that a million of them cost their bytes.

Layout   text_start int64[S]   where a slot's text begins
         text_size  int32[S]   its length in bytes, -1 for none
         text_bytes uint8[]    all texts; freed ones are reclaimed when they are half of all
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.engine.stores.packed_integers import Starts, packed
from matchwood.kernel.arrays import doubled, grown, offsets_of, positions, slices
from matchwood.kernel.journal import Journal

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_BYTES = 2**31 - 1
"""What Arrow's 32-bit offsets reach."""


class TextArena:
    """One text, or none, per slot; what is written over goes through a journal (`savepoint`)."""

    def __init__(self, journal: Journal | None = None) -> None:
        self._journal = Journal() if journal is None else journal
        self._start: Any = np.zeros(64, np.int64)  # Starts when frozen
        self._size: Any = np.full(64, -1, np.int32)  # Packed when frozen
        self._bytes = np.zeros(1024, np.uint8)
        self._used = 0
        self._wasted = 0

    @property
    def nbytes(self) -> int:
        return int(self._start.nbytes + self._size.nbytes + self._bytes.nbytes)

    @property
    def used_bytes(self) -> int:
        """The texts themselves, without room to grow and without what finds them."""
        return self._used - self._wasted

    @property
    def n_slots(self) -> int:
        """Slots that have an entry; others have no text."""
        return len(self._size)

    def make_room(self, n: int) -> None:
        """Make entries for n slots."""
        room = doubled(len(self._start), n)
        self._start = grown(self._start, room)
        self._size = grown(self._size, room, -1)

    def get(self, slot: int) -> str | None:
        size = self._size[slot]
        if size < 0:
            return None
        start = self._start[slot]
        return self._bytes[start : start + size].tobytes().decode()

    def some(self, slots: np.ndarray) -> list[str | None]:
        """The texts of slots, in a few passes."""
        sizes = self._size[slots]
        lengths = np.maximum(sizes, 0).astype(np.int64)
        data = self._bytes[slices(self._start[slots], lengths)].tobytes()
        ends = np.cumsum(lengths)
        spans = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
        if data.isascii():
            text = data.decode()
            found: list[str | None] = [text[first:last] for first, last in spans]
        else:
            found = [data[first:last].decode() for first, last in spans]
        for at in np.flatnonzero(sizes < 0).tolist():
            found[at] = None
        return found

    def all(self, n: int) -> list[str | None]:
        """The texts of the first n slots."""
        return self.some(np.arange(n))

    def to_arrow(self, n: int) -> pa.Array | None:
        """The texts of the first n slots without a copy; None unless they lie side by side."""
        import pyarrow as pa

        sizes = self._size[:n].astype(np.int64)
        ends = offsets_of(sizes)
        if (sizes < 0).any() or (self._start[:n] != ends[:-1]).any() or ends[-1] > _MOST_BYTES:
            return None
        offsets = pa.py_buffer(ends.astype(np.int32))
        return pa.StringArray.from_buffers(n, offsets, pa.py_buffer(self._bytes[: ends[-1]]))

    def put(self, slots: np.ndarray, texts: Iterable[str | None] | pa.Array) -> None:
        """Store one text per slot, instead of the one it had; an Arrow array is copied whole."""
        data, sizes = _joined(texts)
        if not len(sizes):
            return
        slots = positions(slots)
        self.make_room(int(slots.max()) + 1)
        self._bytes = grown(self._bytes, doubled(len(self._bytes) or 1, self._used + len(data)))
        # a view of memory is written without giving up the interpreter's lock
        self._bytes.data[self._used : self._used + len(data)] = data.data
        lengths = np.maximum(sizes, 0).astype(np.int64)
        self._wasted += int(np.maximum(self._size[slots], 0).sum())
        self._journal.write(self._start, slots, self._used + np.cumsum(lengths) - lengths)
        self._journal.write(self._size, slots, sizes)
        self._used += len(data)
        self._reclaim()

    def drop(self, slots: np.ndarray) -> None:
        self._wasted += int(np.maximum(self._size[slots], 0).sum())
        self._journal.write(self._size, slots, -1)
        self._reclaim()

    def _reclaim(self) -> None:
        """Close the gaps once they are half of all."""
        if self._wasted * 2 > self._used > 4096:
            self._rewrite(np.arange(len(self._size)))

    def freeze(self, n: int) -> None:
        """Take the smallest form of the texts of n slots; from now on they are only read."""
        self.make_room(n)
        ends = np.cumsum(np.maximum(self._size[:n], 0, dtype=np.int64))
        if self._wasted or (self._start[1:n] != ends[:-1]).any():  # else they lie side by side
            self._rewrite(np.arange(n))
        self._bytes = self._bytes[: self._used].copy()
        self._size = packed(self._size[:n])
        self._start = Starts(self._size)

    def compact(self, old: np.ndarray) -> None:
        """Keep the texts of slots `old`, renumbered from 0."""
        self._rewrite(old)

    def layout(self, n: int) -> dict[str, np.ndarray]:
        return {
            "text_start": self._start[:n],
            "text_size": self._size[:n].astype(np.int32),
            "text_bytes": self._bytes[: self._used],
        }

    @classmethod
    def restore(
        cls, layout: Mapping[str, np.ndarray], prefix: str, journal: Journal | None = None
    ) -> TextArena:
        self = cls(journal)
        self._start = layout[f"{prefix}text_start"]
        self._size = layout[f"{prefix}text_size"]
        self._bytes = layout[f"{prefix}text_bytes"]
        self._used = len(self._bytes)
        return self

    def _rewrite(self, slots: np.ndarray) -> None:
        sizes = self._size[slots]
        lengths = np.maximum(sizes, 0).astype(np.int64)
        data = self._bytes[slices(self._start[slots], lengths)]
        room = doubled(64, len(slots))
        self._start = grown(np.cumsum(lengths) - lengths, room)
        self._size = grown(sizes, room, -1)
        self._bytes = grown(data, doubled(1024, len(data)))
        self._used, self._wasted = len(data), 0


def _joined(texts: Any) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of texts one after the other, and the size of each, -1 for none."""
    if hasattr(texts, "buffers"):  # an Arrow array of large strings
        offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :][: len(texts) + 1]
        data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
        return data, np.diff(offsets).astype(np.int32)
    encoded = [None if text is None else text.encode() for text in texts]
    sizes = np.array([-1 if text is None else len(text) for text in encoded], np.int32)
    return np.frombuffer(b"".join([text for text in encoded if text]), np.uint8), sizes
