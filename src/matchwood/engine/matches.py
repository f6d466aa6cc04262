"""Matches: the result of a batch, without a Python object per match."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from matchwood.errors import EventError
from matchwood.kernel.arrays import offsets_of

if TYPE_CHECKING:
    import pyarrow as pa

Id = int | str


class Found(NamedTuple):
    """Which slots match each event of a batch: `slots[offsets[e]:offsets[e + 1]]` those of e."""

    offsets: np.ndarray
    slots: np.ndarray
    errors: dict[int, EventError]
    counters: dict[str, int]
    warnings: dict[int, list[EventError]] = {}  # noqa: RUF012 - never written


def kept(found: Found, keep: np.ndarray) -> Found:
    """Only the marked ones of what was found."""
    ends = offsets_of(keep)
    return found._replace(offsets=ends[found.offsets], slots=found.slots[keep])


def joined_warnings(parts: Sequence[dict[int, list[EventError]]]) -> dict[int, list[EventError]]:
    """What failed for each event in any of several parts, each problem once."""
    warnings: dict[int, list[EventError]] = {}
    for part in parts:
        for e, each in part.items():
            known = {str(one) for one in warnings.setdefault(e, [])}
            warnings[e] += [one for one in each if str(one) not in known]
    return warnings


class Later:
    """Ids that are looked up when they are asked for.

    by_slot  ids by slot, an array or `packed_integers.Packed`, which nothing changes any more
    slots    of consecutive events, one array after the other
    """

    def __init__(self, by_slot: Any, *slots: np.ndarray) -> None:
        self.by_slot, self.slots = by_slot, slots
        self._start = [0, *accumulate(map(len, slots))]

    def __len__(self) -> int:
        return self._start[-1]

    def part(self, first: int, last: int) -> np.ndarray:
        """The ids from one position to another."""
        at = min(bisect_right(self._start, first), len(self.slots)) - 1
        found: np.ndarray
        if last <= self._start[at + 1]:
            begin = self._start[at]
            found = self.by_slot[self.slots[at][first - begin : last - begin]]
        else:
            found = np.concatenate([self.by_slot[each] for each in self.slots])[first:last]
        return found


class Matches(Sequence[list[Id]]):
    """Which subscriptions match each event of a batch.

    `matches[e]` is the list of ids that match event e, in the order they were added.

    offsets   int64, one more than there are events
    ids       the ids of event e are `ids[offsets[e]:offsets[e + 1]]`; int64, or object for strings;
              looked up when first asked for, if all were found in one segment
    errors    event number -> EventError for events that could not be read; they match nothing
    warnings  event number -> what computed attributes failed for it (division by zero, overflow, a
              cast); predicates on them were unknown, the event's other matches are there
    counters  the work done: events, nodes, candidates, predicates, matches
    """

    def __init__(
        self,
        offsets: np.ndarray,
        ids: np.ndarray | Later,
        errors: dict[int, EventError],
        counters: dict[str, int],
        id_kind: str | None = None,
        warnings: dict[int, list[EventError]] | None = None,
    ) -> None:
        self.offsets = offsets
        self._ids = ids
        self.errors = errors
        self.counters = counters
        self._id_kind = id_kind
        self.warnings = warnings if warnings is not None else {}

    @property
    def ids_or_later(self) -> np.ndarray | Later:
        """`ids`, if they were looked up."""
        return self._ids

    @property
    def ids(self) -> np.ndarray:
        """All ids, event after event."""
        ids = self._ids
        if isinstance(ids, Later):
            ids = self._ids = ids.part(0, len(ids))  # threads may do this at the same time
        return ids

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ids": self.ids}

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, event: int) -> list[Id]: ...

    @overload
    def __getitem__(self, event: slice) -> list[list[Id]]: ...

    def __getitem__(self, event: int | slice) -> Any:
        if isinstance(event, slice):
            return [self[e] for e in range(*event.indices(len(self)))]
        e = range(len(self))[event]
        first, last = int(self.offsets[e]), int(self.offsets[e + 1])
        ids = self._ids
        part = ids.part(first, last) if isinstance(ids, Later) else ids[first:last]
        return part.tolist()

    def __iter__(self) -> Iterator[list[Id]]:
        return (self[e] for e in range(len(self)))

    def to_arrow(self) -> pa.Table:
        """One row per match: `event`, the number of the event, and `subscription`, its id.

        Ids are int64 where all ids of the matcher are ints, strings where all are strings, else a
        struct of `int` and `str`, one of which is null.
        """
        import pyarrow as pa

        events = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        return pa.table({"event": events, "subscription": self.arrow_ids()})

    def to_lists(self) -> pa.Table:
        """One row per event: `event` and `subscriptions`, the list of its ids."""
        import pyarrow as pa

        lists = pa.LargeListArray.from_arrays(self.offsets, self.arrow_ids())
        return pa.table({"event": np.arange(len(self)), "subscriptions": lists})

    def arrow_ids(self) -> pa.Array:
        """`ids` as an Arrow array, in the type that `to_arrow` has."""
        return ids_to_arrow(self.ids, self._id_kind)

    def to_pylist(self) -> list[list[Id]]:
        """The ids of each event, as Python lists."""
        return list(self)

    def to_pandas(self) -> Any:
        """One row per match, as `to_arrow`; ids are Python objects unless all are ints."""
        import pandas as pd

        events = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        return pd.DataFrame({"event": events, "subscription": self.ids})

    def to_polars(self) -> Any:
        """One row per match, as `to_arrow`."""
        import polars as pl

        return pl.from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        bad = f", {len(self.errors)} bad events" if self.errors else ""
        return f"<Matches: {len(self)} events, {self.offsets[-1]} matches{bad}>"

    def _repr_html_(self) -> str:
        rows = [(e, ", ".join(map(repr, self[e][:10]))) for e in range(min(len(self), 10))]
        return html_table(repr(self).strip("<>"), ("event", "subscriptions"), rows)


def id_type(kind: str) -> pa.DataType:
    """The Arrow type of ids of a kind (`Subscriptions.id_kind`)."""
    import pyarrow as pa

    if kind == "mixed":
        return pa.struct([("int", pa.int64()), ("str", pa.string())])
    return pa.int64() if kind == "int" else pa.string()


def ids_to_arrow(ids: np.ndarray, kind: str | None, free: np.ndarray | None = None) -> pa.Array:
    """Ids as an Arrow array: int64, strings, or a struct of `int` and `str` where both occur.

    So 7 and "7" are never one, and the type never depends on which ids a batch happens to match.

    kind  of the matcher's ids, `int`, `str` or `mixed`; None: of these ids
    free  rows that hold no id and become null
    """
    import pyarrow as pa

    values: list[Any] = []
    if ids.dtype == object or kind not in (None, "int"):
        values = ids.tolist()
    if kind is None:
        kinds = set(map(type, values)) if ids.dtype == object else {int}
        kind = "mixed" if len(kinds) > 1 else "str" if str in kinds else "int"
    if kind == "int" and ids.dtype != object:
        return pa.array(ids, mask=free)
    if kind != "mixed":
        return pa.array(values, id_type(kind), mask=free)
    fields = [
        pa.array([each if isinstance(each, int) else None for each in values], pa.int64()),
        pa.array([each if isinstance(each, str) else None for each in values], pa.string()),
    ]
    mask = None if free is None else pa.array(free)
    return pa.StructArray.from_arrays(fields, fields=list(id_type(kind)), mask=mask)


def plain_ids(ids: list[Any]) -> list[Any]:
    """Ids as Python has them: of a struct of `int` and `str` the one that is there."""
    if set(map(type, ids)) <= {int, str}:
        return ids
    return [
        (each["str"] if each["int"] is None else each["int"])
        if type(each) is dict and each.keys() == {"int", "str"}
        else plain_id(each)
        for each in ids
    ]


def plain_id(id_: Any) -> Any:
    """An id of a class of its own, such as an enum or NumPy's, as the int or str that it is.

    Anything else as it is.
    """
    if isinstance(id_, str):
        return str.__str__(id_)  # not str(id_): an enum has another text
    if isinstance(id_, np.integer) or (isinstance(id_, int) and not isinstance(id_, bool)):
        return int(id_)
    return id_


def html_table(title: str, names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A small HTML table, for notebooks."""
    from html import escape

    def cells(tag: str, values: Sequence[object]) -> str:
        return "".join([f"<{tag}>{escape(str(value))}</{tag}>" for value in values])

    body = "".join([f"<tr>{cells('td', row)}</tr>" for row in rows])
    return (
        f"<div><p>{escape(title)}</p><table><thead><tr>{cells('th', names)}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )
