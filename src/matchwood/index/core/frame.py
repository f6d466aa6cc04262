"""Frame: what every index does alike; what remains to an index is its structure.

An index derives from `IndexFrame` and says

    name, language, Config     what it is called, what it holds, what can be set
    _clear()                   the empty structure; at the start, and when the last slot has left
    _fill(slots)               the first slots, all statistics known at once (else `_add`)
    _add(slots)  _remove(slots)   in place; never called without slots, arrays can be written
    _thaw()                    copy what cannot be written (a memory-mapped snapshot)
    _stepper(events, scratch)  the step of a search, see `Scratch.run`; reads the structure only
    new_part()                 what it keeps in a scratch, if that is more than a `Part`
    _learn(part)               take over what searches have left in a part
    LAYOUT, SEARCH, _view()    where it binds its arrays (`kernel.bound`): what they are, what it
                               keeps in a scratch, and the arrays as they are now
    _structure()               its part of stats(), with "bytes"
    _arrays()  _take(layout)   its part of a snapshot, and back
    is_kept, _check(saved)     whether a snapshot keeps them, and what they must be
    reads_table                whether searches of values read the expression table
    draw()
    refusals(slots)            where it cannot take every expression: which of these, and why

and gets the verbs of `protocol.Index`, the count of its expressions, and checked settings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from operator import is_
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.encode.expressions import ExpressionTable
from matchwood.errors import MatchwoodError
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.protocol import CONJUNCTIONS, Hits
from matchwood.index.core.query import bind_query, in_one_piece
from matchwood.index.core.scratch import Part, Scratch, new_version
from matchwood.kernel.bound import Binding, Layout
from matchwood.kernel.checks import Column, check, check_members
from matchwood.kernel.verify_kernels import Output

Step = Callable[[int, int, np.ndarray, np.ndarray, np.ndarray], int]
"""(first event, stamp, offsets, out, counters) -> events done; see `Scratch.run`."""


def for_kernels(slots: np.ndarray) -> np.ndarray:
    """The slots as kernels are compiled for them: every second slot of an array is copied."""
    return np.require(slots, np.int32, ("C", "W"))


class Saved(NamedTuple):
    """The arrays of a snapshot, not trusted yet, and what they have to agree with."""

    table: ExpressionTable
    slots: np.ndarray
    layout: Mapping[str, np.ndarray]
    config: Any


class BoundStep:
    """A step that calls a kernel with everything bound, see `IndexFrame._bound_step`."""

    def __init__(
        self,
        kernel: Callable[..., int],
        view: tuple[Any, Any],
        binding: Binding,
        mine: Callable[[], Any],
        settings: tuple[Any, ...],
        events: EventBatch,
    ) -> None:
        self._kernel, self._settings, self._events = kernel, settings, events
        self._view, self._bound = view  # the arrays are kept as long as the step is
        self._binding, self._mine = binding, mine

    def __call__(
        self, first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
    ) -> int:
        query = bind_query(self._events, Output(offsets, out, counters))
        bound = self._binding.of(self._mine())
        return self._kernel(self._bound, bound, *self._settings, query, first, stamp)

    def with_query(self, query: Any) -> tuple[Callable[[int], int], Any]:
        """What calls the kernel for event 0 of a query that is bound, with a stamp.

        Beside it the arrays that it reads and writes to, which have to be kept as long as it is
        used; so has what the query is of.
        """
        mine = self._mine()
        bound = self._binding.of(mine)
        call = partial(self._kernel, self._bound, bound, *self._settings, query, 0)
        return call, (self._view, mine)


class IndexFrame(ABC):
    """The verbs; see the module's docstring."""

    name: ClassVar[str]
    language: ClassVar[str] = CONJUNCTIONS
    is_kept: ClassVar[bool] = False
    LAYOUT_VERSION: ClassVar[int] = 0
    """Counted up when arrays of a snapshot change; see `protocol.is_current`."""
    reads_table: ClassVar[bool] = True
    Config: ClassVar[type[IndexConfig]] = IndexConfig
    LAYOUT: ClassVar[Layout | None] = None
    SEARCH: ClassVar[Layout | None] = None

    def __init__(self, table: ExpressionTable, config: Any) -> None:
        self.config = config
        self._table = table
        self._n_live = 0
        self._version = new_version()
        self._binding = None if self.LAYOUT is None else Binding(self.LAYOUT)
        self._clear()

    @classmethod
    def build(cls, table: ExpressionTable, slots: np.ndarray, **config: Any) -> Self:
        index = cls(table, cls.Config.checked(cls.name, config))
        index.insert(slots)
        return index

    def __len__(self) -> int:
        return self._n_live

    def refusals(self, slots: np.ndarray) -> dict[int, MatchwoodError]:
        return {}

    def insert(self, slots: np.ndarray) -> None:
        slots = for_kernels(slots)
        if not len(slots):
            return
        for error in self.refusals(slots).values():
            raise error
        self._thaw()
        if self._n_live:
            self._add(slots)
        else:
            self._fill(slots)
        self._n_live += len(slots)
        self._unbind()

    def delete(self, slots: np.ndarray) -> None:
        slots = for_kernels(slots)
        if not len(slots):
            return
        self._n_live -= len(slots)
        if self._n_live == 0:
            self._clear()
        else:
            self._thaw()
            self._remove(slots)
        self._unbind()

    def settle(self) -> None:  # noqa: B027 (most indexes change in place)
        """Build what a search needs and changes have discarded: by default nothing."""

    @property
    def is_settled(self) -> bool:
        """Whether `settle` has nothing to do, where values of contexts can change that."""
        return True

    def has_view(self, view: Any) -> bool:
        """Whether its arrays are those of a view, so that what is bound to them holds."""
        return all(map(is_, self._view(), view))

    def search(self, events: EventBatch, scratch: Scratch) -> Hits:
        scratch.begin()
        step = self._stepper(events, scratch)
        hits = scratch.run(events, self._table.n_attributes, step)
        scratch.end()
        return hits

    def absorb(self, scratch: Scratch) -> None:
        self._learn(scratch.of(self))

    def new_part(self) -> Part:
        """What this index keeps in a scratch."""
        return Part()

    def stats(self) -> dict[str, Any]:
        what = "conjunctions" if self.language == CONJUNCTIONS else "expressions"
        return {
            "index": self.name,
            what: self._n_live,
            **asdict(self.config),
            **self._structure(),
        }

    def layout(self) -> dict[str, np.ndarray]:
        version = {"layout_version": np.array([self.LAYOUT_VERSION], np.int64)}
        n_live = {"n_live": np.array([self._n_live], np.int64)}
        return {**n_live, **(version if self.LAYOUT_VERSION else {}), **self._arrays()}

    @classmethod
    def restore(
        cls, table: ExpressionTable, layout: Mapping[str, np.ndarray], **config: Any
    ) -> Self:
        index = cls(table, cls.Config.checked(cls.name, config))
        index._n_live = int(layout["n_live"][0])
        index._take(layout)
        return index

    @classmethod
    def check(
        cls,
        table: ExpressionTable,
        slots: np.ndarray,
        layout: Mapping[str, np.ndarray],
        **config: Any,
    ) -> None:
        """As `protocol.CheckedIndex.check`."""
        settings = cls.Config.checked(cls.name, config)
        check(layout, {"n_live": Column("int64", 1, len(slots), len(slots) + 1)})
        cls._check(Saved(table, slots, layout, settings))

    @abstractmethod
    def draw(self) -> str: ...

    # ── binding ─────────────────────────────────────────────────────────────────────────────────

    def _view(self) -> Any:
        """The arrays as they are now: the tuple that LAYOUT describes."""
        raise NotImplementedError

    def bind(self) -> None:
        """Bind the arrays as they are now, for the owner: else the next search does it."""
        view = () if self._binding is None else self._view()
        if view and self._binding is not None:  # a settled index may search without a bound view
            self._binding.of(view)

    def _unbind(self) -> None:
        """After a change: keep no array alive that has been replaced."""
        if self._binding is not None:
            self._binding.forget(self._view())

    def _bound_step(
        self,
        kernel: Callable[..., int],
        events: EventBatch,
        scratch: Scratch,
        mine: Callable[[], Any],
        *settings: Any,
        view: Any = None,
    ) -> BoundStep:
        """The step that calls a kernel with everything bound.

        mine  gives what is written to: the tuple that SEARCH describes
        view  what is read, if not `_view()`

        kernel(bound, mine, *settings, query, first, stamp)
        """
        assert self._binding is not None
        view = self._view() if view is None else view
        bound, part = self._binding.of(view), scratch.of(self)
        if part.binding is None:
            assert self.SEARCH is not None
            part.binding = Binding(self.SEARCH)
        numbers = tuple(map(int, settings))  # as `kernel.chains` passes them
        return BoundStep(kernel, (view, bound), part.binding, mine, numbers, in_one_piece(events))

    def alone(self, events: EventBatch, scratch: Scratch) -> BoundStep | None:
        """The step for one event of values after the other, whose entries are written to `events`.

        None where this index, as it is now, has none.  The attribute ids in `events` are the
        highest that may come.
        """
        return None

    def make_room(self, scratch: Scratch) -> None:
        """After the step of `alone` has returned a number below 0: more memory for the next one."""
        raise NotImplementedError

    # ── what an index says ──────────────────────────────────────────────────────────────────────

    @abstractmethod
    def _clear(self) -> None: ...

    def _fill(self, slots: np.ndarray) -> None:
        self._add(slots)

    @abstractmethod
    def _add(self, slots: np.ndarray) -> None: ...

    @abstractmethod
    def _remove(self, slots: np.ndarray) -> None: ...

    @abstractmethod
    def _thaw(self) -> None: ...

    @abstractmethod
    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step: ...

    def _learn(self, part: Part) -> None:  # noqa: B027 (most indexes do not learn)
        """Take over what searches have left in a part: nothing, unless an index learns."""

    @abstractmethod
    def _structure(self) -> dict[str, Any]: ...

    @abstractmethod
    def _arrays(self) -> dict[str, np.ndarray]: ...

    @abstractmethod
    def _take(self, layout: Mapping[str, np.ndarray]) -> None: ...

    @classmethod
    def _check(cls, saved: Saved) -> None:
        """Raise a FormatError unless these are arrays that `_take` and every kernel can rely on."""
        raise NotImplementedError


def check_slots(name: str, saved: Saved) -> None:
    """Whether the array of this name has the slots that the index holds, each once."""
    check(saved.layout, {name: Column("int32", len(saved.slots))})
    check_members(name, saved.layout[name], saved.slots, int(saved.slots.max(initial=-1)) + 1)
