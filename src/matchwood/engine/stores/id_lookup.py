"""Id lookup: from an id to its slot, for subscriptions that do not change; without a dict of all.

ints in runs      the runs, sorted by value
other ints        sorted by value: nothing is kept while ids ascend with their slots, else the
                  slots in that order, 4 bytes an id
strings           sorted by 32 bits of their hash: 8 bytes an id; what has the hash is compared
ints beside them  a dict of these

One id is sought by `bisect` in a memoryview: NumPy would give up the interpreter's lock, and a
change of many ids would have to wait for it each time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from matchwood.engine.stores.packed_integers import Narrow, Packed, Runs

_BITS = 2**32 - 1
_LEAST, _MOST = -(2**63), 2**63 - 1


class Numbers(Protocol):
    """Slots by int."""

    @property
    def nbytes(self) -> int: ...

    def get(self, number: int) -> int | None: ...

    def has_any(self, numbers: np.ndarray) -> bool:
        """Whether one of these int64 is here."""
        ...


class IdLookup:
    """Slots by id, as a dict would find them: 1.0 finds 1, and what has no hash is a TypeError."""

    def __init__(self, numbers: Numbers, names: Names | None = None) -> None:
        self._numbers, self._names = numbers, names

    @property
    def nbytes(self) -> int:
        return self._numbers.nbytes + (0 if self._names is None else self._names.nbytes)

    def get(self, id_: Any) -> int | None:
        hashed = hash(id_)
        if isinstance(id_, str):
            return None if self._names is None else self._names.get(id_, hashed)
        try:
            number = int(id_)
        except (TypeError, ValueError, OverflowError):
            return None
        return self._numbers.get(number) if number == id_ and _LEAST <= number <= _MOST else None

    def has_any(self, ids: Sequence[Any]) -> bool:
        """Whether one of some ids is here."""
        kinds = set(map(type, ids))
        if kinds == {int} and min(ids) >= _LEAST and max(ids) <= _MOST:
            return self._numbers.has_any(np.array(ids, np.int64))
        if kinds == {str}:
            return self._names is not None and self._names.has_any(ids)
        return any(self.get(id_) is not None for id_ in ids)


def lookup_of_ints(ids: Packed) -> IdLookup:
    """The lookup of subscriptions whose ids are all ints, by slot."""
    return IdLookup(_RunNumbers(ids) if isinstance(ids, Runs) else _SortedNumbers(ids))


def lookup_of_names(ids: Sequence[Any], name: Callable[[int], Any]) -> IdLookup:
    """The lookup of subscriptions with string ids, and maybe ints beside them.

    ids   by slot; they are not kept
    name  gives the id of a slot
    """
    slots = np.array([slot for slot, id_ in enumerate(ids) if isinstance(id_, str)], np.int32)
    numbers = {id_: slot for slot, id_ in enumerate(ids) if not isinstance(id_, str)}
    return IdLookup(_FewNumbers(numbers), Names(slots, [ids[slot] for slot in slots], name))


class Names:
    """Slots by string."""

    def __init__(self, slots: np.ndarray, names: Sequence[str], name: Callable[[int], Any]) -> None:
        hashes = _hashes(names)
        order = np.argsort(hashes, kind="stable")
        self._hash, self._slots, self._name = hashes[order], slots[order], name

    @property
    def nbytes(self) -> int:
        return int(self._hash.nbytes + self._slots.nbytes)

    def get(self, id_: str, hashed: int) -> int | None:
        short, hashes = hashed & _BITS, self._hash.data
        at = bisect_left(hashes, short)
        while at < len(hashes) and hashes[at] == short:
            slot = int(self._slots[at])
            if self._name(slot) == id_:
                return slot
            at += 1
        return None

    def has_any(self, names: Sequence[str]) -> bool:
        if not len(self._hash):
            return False
        hashes = _hashes(names)
        at = np.minimum(np.searchsorted(self._hash, hashes), len(self._hash) - 1)
        near = np.flatnonzero(self._hash[at] == hashes).tolist()
        return any(self.get(names[i], hash(names[i])) is not None for i in near)


class _FewNumbers:
    """Ints beside strings."""

    def __init__(self, slots: dict[int, int]) -> None:
        self._slots = slots
        self.get = slots.get

    @property
    def nbytes(self) -> int:
        return 100 * len(self._slots)

    def has_any(self, numbers: np.ndarray) -> bool:
        return not self._slots.keys().isdisjoint(numbers.tolist())


class _RunNumbers:
    """Ints in runs; ids are distinct, so a run of several counts upwards, and none overlap."""

    def __init__(self, ids: Runs) -> None:
        order = np.argsort(ids.value, kind="stable")
        size = np.diff(np.append(ids.first, len(ids)))
        self._value, self._first, self._size = ids.value[order], ids.first[order], size[order]

    @property
    def nbytes(self) -> int:
        return int(3 * self._value.nbytes)

    def get(self, number: int) -> int | None:
        run = bisect_right(self._value.data, number) - 1
        offset = number - int(self._value[run])
        return int(self._first[run]) + offset if run >= 0 and offset < self._size[run] else None

    def has_any(self, numbers: np.ndarray) -> bool:
        run = np.searchsorted(self._value, numbers, side="right") - 1
        offset = (numbers - self._value[run]).view(np.uint64)  # without a sign it is always right
        return bool(((run >= 0) & (offset < self._size[run].view(np.uint64))).any())


class _SortedNumbers:
    """Other ints; `_slots` has the slots by value unless that is their own order."""

    def __init__(self, ids: np.ndarray | Narrow) -> None:
        self._ids, self._lowest = (
            (ids.differences, int(ids.lowest)) if isinstance(ids, Narrow) else (ids, 0)
        )
        self._slots: np.ndarray | None = None
        if not (self._ids[1:] > self._ids[:-1]).all():
            self._slots = np.argsort(self._ids, kind="stable").astype(np.int32)

    @property
    def nbytes(self) -> int:
        return 0 if self._slots is None else int(self._slots.nbytes)

    def get(self, number: int) -> int | None:
        sought, ids = number - self._lowest, self._ids.data
        if self._slots is None:
            slot = at = bisect_left(ids, sought)
        else:
            slots = self._slots.data
            at = bisect_left(slots, sought, key=ids.__getitem__)
            slot = slots[at] if at < len(ids) else at
        return slot if at < len(ids) and ids[slot] == sought else None

    def has_any(self, numbers: np.ndarray) -> bool:
        known = self._ids if self._slots is None else self._ids[self._slots]
        if not len(known):
            return False
        limits = np.iinfo(known.dtype)
        offset = numbers - self._lowest  # what wraps around is below the lowest, or far above
        sought = offset[(offset >= limits.min) & (offset <= limits.max)].astype(known.dtype)
        at = np.minimum(np.searchsorted(known, sought), len(known) - 1)
        return bool((known[at] == sought).any())


def _hashes(names: Sequence[str]) -> np.ndarray:
    """32 bits of each hash: those of Python, which differ from process to process."""
    found = np.fromiter(map(hash, names), np.int64, len(names))
    return (found & _BITS).astype(np.uint32)
