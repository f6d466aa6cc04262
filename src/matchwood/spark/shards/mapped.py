"""Shards that a worker keeps mapped from task to task.

    task of shard 3 ──► open already?  ──► its matcher
                        no: room for it, then map it

Idea.    Spark gives a shard to any worker, in the order of numbers, call after call.  So what was
         opened last is needed again last, and is closed where room is needed; shards of other
         builds, which this one does not have, are closed before.
Key.     What a shard contains, not where it is: a later version has the shards that it did not
         change under another folder, and they stay open.
Memory.  As many as take together no more than building one shard took, which `max_bytes` limits.
         A task that builds closes them before (`shards/build`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from matchwood.engine.matcher import Matcher
from matchwood.spark.shards.save import Shard
from matchwood.spark.worker import Location, generation

OPEN_BYTES = 4 << 20
"""What an open shard takes beside its files, at most: 3.0 MB were seen with 2,000 rows of BEGen."""


@dataclass
class _Open:
    matcher: Matcher
    ids: pa.Array
    build: str


@dataclass
class Mapped:
    """The open shards of a process, by what they contain."""

    n_opened: int = 0
    """How many were opened so far."""
    _open: dict[str, _Open] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    def shard(self, path: str, build: str, most: int) -> tuple[Matcher, pa.Array]:
        """A shard and its ids by slot.

        build  what is being matched with
        most   how many may be open
        """
        location = Location(path)
        key = generation(location.folder())
        found = self._open.get(key)
        if found is None:
            self._make_room(build, most)
            matcher = location.open()
            found = self._open[key] = _Open(matcher, matcher.arrow_ids(), build)
            self.n_opened += 1
        found.build = build
        return found.matcher, found.ids

    def close(self) -> None:
        """Close all."""
        self._open.clear()

    def _make_room(self, build: str, most: int) -> None:
        others = [key for key, each in self._open.items() if each.build != build]
        last = [key for key in reversed(self._open) if key not in others]
        for key in [*others, *last][: max(0, len(self._open) - most + 1)]:
            del self._open[key]


mapped = Mapped()


def n_mapped(shards: Sequence[Shard]) -> int:
    """How many shards a worker keeps open."""
    limit, n, total = max((each.peak for each in shards), default=0), 0, 0
    for size in sorted((each.bytes + OPEN_BYTES for each in shards), reverse=True):
        total += size
        n += total <= limit
    return max(1, n)
