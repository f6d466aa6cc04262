"""The plan by which compiled code reads dicts (`dicts/walk_kernels`), and the memory of its walks.

It is made of the plan for JSON documents: the same paths, the same keys.  What it reads never
changes; a walk writes to a `_Memory`, which one thread has at a time.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from matchwood.encode.attributes import Attributes
from matchwood.encode.dicts.walk_kernels import (
    FULL,
    HAS_UNKNOWN,
    LEFT,
    READING,
    VIEW,
    WALK,
    Names,
    Output,
    Reading,
    View,
    Walk,
    fill_ways,
    read_dict,
    read_dicts,
)
from matchwood.encode.json.plan import JsonPlan, count_unknown, make_plan, plan_for, sorting_of
from matchwood.encode.json.walk_kernels import MAX_DEPTH, NONE
from matchwood.kernel.arrays import grown
from matchwood.kernel.bound import Binding
from matchwood.kernel.objects import IS_USABLE

WORTH_IT = 64
"""Dicts since the last change of attributes before a plan is made for dicts alone."""

MOST_STEPS = 6
"""Parts of a dotted name: with more there would be too many ways to write it."""

COPIED = 4_096
MOST_COPIED = 2**28
"""Bytes of strings that a walk begins with, and that an event may have at most."""

_NAMED = (type(None), str, int, float, bool, list, dict)
_FLAT = (bytes, tuple, datetime, date, time, timedelta, Decimal, UUID, set, frozenset, complex)
"""Types whose values have no fields."""


class DictPlan:
    """Reads dicts; see the module's docstring.

    before  an older plan, whose names are used again if they are the same
    """

    def __init__(self, plan: JsonPlan, before: DictPlan | None = None) -> None:
        self.changes = plan.changes
        self._paths = plan.names
        self._named: tuple[list[str], Names]
        if before is not None and before._paths == plan.names:
            self._named = before._named
        else:
            self._named = _names(plan)
        self.view = View(self._named[1], plan.plan)
        self._bound = Binding(VIEW).of(self.view)
        self._most = 2 * len(plan.names) + len(plan.plan.absent)
        self._sorting = [len(each) for each in sorting_of(plan.plan)]
        self._free: list[_Memory] = []

    def read(self, attributes: Attributes, event: dict[Any, Any]) -> tuple[Any, Any] | None:
        """Attributes, ascending, and keys of an event; None: it goes the general way."""
        try:
            memory = self._free.pop()
        except IndexError:
            memory = self._new()
        n = self.read_one(memory, event, memory.attr, memory.key)
        if n < 0:
            self._free.append(memory)
            return None
        if n >= HAS_UNKNOWN:
            n -= HAS_UNKNOWN
            self.count(attributes, memory)
        found = memory.attr[:n].copy(), memory.key[:n].copy()
        self._free.append(memory)
        return found

    def one_by_one(
        self, start: np.ndarray, attr: np.ndarray, key: np.ndarray, n_attributes: int
    ) -> DictOneByOne:
        """What reads one dict after the other to these arrays, which have room for all entries.

        n_attributes  those that entries may be of, computed ones among them
        """
        return DictOneByOne(self, self._new(n_attributes), start, attr, key)

    def read_one(
        self, memory: _Memory, event: dict[Any, Any], attr: np.ndarray, key: np.ndarray
    ) -> int:
        """Read an event; its number of entries, with HAS_UNKNOWN, or LEFT."""
        n = read_dict(self._bound, memory.bound, id(event), attr, key)
        while n == FULL and memory.make_room():
            n = read_dict(self._bound, memory.bound, id(event), attr, key)
        return n

    def read_many(self, attributes: Attributes, events: list[Any]) -> Output:
        """The entries of all events; those that are left have none.

        events  a list that no other code can change
        """
        try:
            memory = self._free.pop()
        except IndexError:
            memory = self._new()
        n = len(events)
        room = self._most + min(self._most, 32) * n
        output = Output(
            np.zeros(n + 1, np.int64), np.empty(room, np.int32), np.empty(room, np.int64),
            np.zeros(n, np.bool_),
        )  # fmt: skip
        done = 0
        while done < n:
            before = done
            done = read_dicts(self._bound, memory.bound, id(events), done, self._most, output)
            if done == n:
                break
            if int(output.start[done]) + self._most > len(output.attr):
                room = 2 * len(output.attr)
                output = output._replace(attr=grown(output.attr, room), key=grown(output.key, room))
            elif done == before and not memory.make_room():
                output.is_left[done], output.start[done + 1] = True, output.start[done]
                done += 1
        self.count(attributes, memory)
        self._free.append(memory)
        used = int(output.start[n])
        return output._replace(attr=output.attr[:used], key=output.key[:used])

    def count(self, attributes: Attributes, memory: _Memory) -> None:
        """Count the predicates that walks with a memory left unknown."""
        count_unknown(attributes, self._paths, memory.walk.unknown)

    def _new(self, n_attributes: int = 0) -> _Memory:
        n_held, n_marks = self._sorting
        sorting = max(n_held, n_attributes), max(n_marks, n_attributes // 64 + 1)
        return _Memory(self.view, self._most, sorting)


class _Memory:
    """What one walk writes to."""

    def __init__(self, view: View, most: int, sorting: tuple[int, int]) -> None:
        n_paths, n_nodes = len(view.plan.presence), len(view.names.path)
        double = np.zeros(1)
        deep = MAX_DEPTH + 1
        self.walk = Walk(
            np.zeros(deep, np.int64), np.zeros(deep, np.int64), np.zeros(deep, np.int32),
            np.zeros(n_nodes, np.int64), np.zeros(n_paths, np.int64),
            np.zeros(n_paths, np.int32), np.zeros(n_paths, np.uint8),
            np.zeros(n_paths, np.int64), np.zeros(n_paths, np.int64),
            np.empty(COPIED, np.uint8), double, double.view(np.int64),
            np.zeros(n_paths, np.int64),
            np.empty(sorting[0], np.int64), np.zeros(sorting[1], np.int64), np.zeros(1, np.int64),
        )  # fmt: skip
        self.attr, self.key = np.empty(most, np.int32), np.empty(most, np.int64)
        self._binding = Binding(WALK)
        self.bound = self._binding.of(self.walk)

    def make_room(self) -> bool:
        """Double the room for strings; False where an event has more than is reasonable."""
        size = 2 * len(self.walk.copied)
        if size > MOST_COPIED:
            return False
        self.walk = self.walk._replace(copied=np.empty(size, np.uint8))
        self.bound = self._binding.of(self.walk)
        return True


class DictOneByOne:
    """Reads one dict after the other to the same arrays; belongs to one thread."""

    def __init__(
        self,
        plan: DictPlan,
        memory: _Memory,
        start: np.ndarray,
        attr: np.ndarray,
        key: np.ndarray,
    ) -> None:
        self._plan, self._memory = plan, memory
        self._start, self._attr, self._key = start, attr, key
        self.has_unknown = False
        """Whether the last event left predicates unknown: `count` or `forget` comes next."""
        self.has_grown = False
        """Whether `read` made more room since `bound`, which is to be asked again."""

    def read(self, event: dict[Any, Any]) -> bool:
        """Read an event; False where it goes the general way."""
        before = self._memory.bound
        n = self._plan.read_one(self._memory, event, self._attr, self._key)
        self.has_grown |= self._memory.bound is not before
        if n < 0:
            return False
        self.has_unknown = n >= HAS_UNKNOWN
        self._start[1] = n - HAS_UNKNOWN if self.has_unknown else n
        return True

    def bound(self) -> Any:
        """A bound `Reading`, until `has_grown`; in a kernel it does the same."""
        self.has_grown = False
        reading = Reading(self._plan.view, self._memory.walk, self._attr, self._key, self._start)
        return Binding(READING).of(reading)

    def count(self, attributes: Attributes) -> None:
        """Count the predicates that the last event left unknown."""
        self._plan.count(attributes, self._memory)

    def forget(self) -> None:
        """Set the counts of this event to zero: it is read again, in the general way."""
        self._memory.walk.unknown[:] = 0


def _names(plan: JsonPlan) -> tuple[list[str], Names]:
    """All ways to reach the paths, and their texts, which have to be kept."""
    nodes: dict[tuple[str, ...], int] = {(): 0}
    ways: dict[tuple[int, str], int] = {}
    path, is_inner = [NONE], [False]
    for number, name in enumerate(plan.names):
        steps = tuple(name.split("."))
        for i in range(1, len(steps) + 1):
            if steps[:i] not in nodes:
                nodes[steps[:i]] = len(path)
                path.append(NONE)
                is_inner.append(False)
        for i in range(len(steps)):
            is_inner[nodes[steps[:i]]] = True
            for j in range(i + 1, len(steps) + 1):
                ways[nodes[steps[:i]], ".".join(steps[i:j])] = nodes[steps[:j]]
        path[nodes[steps]] = number
    texts = [text for _, text in ways]
    known = [*_NAMED, *_FLAT]
    addresses = [id(each) for each in known]
    addresses.insert(len(_NAMED), id(True))
    names = Names(
        np.array([parent for parent, _ in ways], np.int32),
        np.array(list(ways.values()), np.int32),
        np.array([id(text) for text in texts], np.int64),
        np.array([hash(text) for text in texts], np.int64),
        np.full(1 << (2 * len(ways) + 1).bit_length(), NONE, np.int32),
        np.array(path, np.int32),
        np.array(is_inner, np.bool_),
        np.array(addresses, np.int64),
    )
    fill_ways(names)
    return texts, names


def dict_plan(attributes: Attributes, n: int) -> DictPlan | None:
    """The plan by which n dicts are read; None where there is none, or it is not worth making."""
    found: DictPlan | None = attributes.dict_plan
    if found is not None and found.changes == attributes.changes:
        return found
    if not IS_USABLE:
        return None
    plan = plan_for(attributes, n, WORTH_IT)
    if plan is None or plan.is_by_hand:
        return None
    if any(name.count(".") >= MOST_STEPS for name in plan.names):
        return None
    attributes.dict_plan = DictPlan(plan, found)
    return attributes.dict_plan


def make_plans(attributes: Attributes) -> None:
    """Plan for documents and dicts at once, unless that was done since the last change."""
    plan: JsonPlan | None = attributes.json_plan
    if plan is None or plan.changes != attributes.changes:
        plan = attributes.json_plan = make_plan(attributes)
    attributes.n_whole = WORTH_IT
    dict_plan(attributes, 0)


__all__ = ["LEFT", "DictOneByOne", "DictPlan", "dict_plan", "make_plans"]
