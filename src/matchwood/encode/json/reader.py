"""Reading JSON documents by a plan (`json/plan`), with compiled code (`json/read_kernels`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.encode.attributes import Attributes
from matchwood.encode.json.inputs import input_values
from matchwood.encode.json.paths import new_scratch
from matchwood.encode.json.plan import JsonPlan, count_unknown, sorting_of
from matchwood.encode.json.read_kernels import (
    MEMORY,
    OUTPUT,
    UNKNOWN,
    VIEW,
    Documents,
    Memory,
    View,
    read_documents,
)
from matchwood.encode.json.walk_kernels import Tape
from matchwood.kernel.arrays import grown
from matchwood.kernel.bound import Binding

COPIED = 4_096
"""Bytes of a document that a reader begins with."""


class JsonReader:
    """Reads documents by a plan; belongs to one thread."""

    def __init__(self, plan: JsonPlan) -> None:
        self.plan = plan
        paths, n = plan.paths, len(plan.paths.path)
        n_paths = len(plan.names)
        self._view = View(paths, plan.plan, plan.position)
        self._bound = Binding(VIEW).of(self._view)
        tape = Tape(
            np.zeros(2, np.int64), np.empty(n, np.int32), np.empty(n, np.uint8),
            np.empty(n, np.int64), np.empty(n, np.int64), np.empty(COPIED, np.uint8),
            np.zeros(1, np.bool_),
        )  # fmt: skip
        self._memory = Memory(
            tape, new_scratch(paths), np.full(n_paths, -1, np.int64), np.zeros(n_paths, np.int64),
            *sorting_of(plan.plan), np.zeros(2, np.int64),
        )  # fmt: skip
        self._binding = Binding(MEMORY)
        self._bound_memory = self._binding.of(self._memory)
        self.most = 2 * n_paths + len(plan.plan.absent)
        """Entries that a document may have."""

    def read_many(self, data: np.ndarray, begin: np.ndarray, end: np.ndarray) -> Documents:
        """The entries of documents `data[begin[i]:end[i]]`; those that are left have none."""
        n = len(begin)
        room = self.most * (1 + min(n, 64))
        output = Documents(
            np.zeros(n + 1, np.int64), np.empty(room, np.int32), np.empty(room, np.int64),
            np.zeros(n, np.bool_), np.full(2 * n * len(self.plan.inputs), -1, np.int64),
        )  # fmt: skip
        binding = Binding(OUTPUT)
        done = 0
        while n:
            bound = binding.of(output)
            done = read_documents(self._bound, self._bound_memory, data, begin, end, done, bound)
            if done == n:
                break
            size = int(end[done] - begin[done])
            if size > len(self._memory.tape.copied):
                self._make_room(size)
            else:
                room = 2 * len(output.attr)
                output = output._replace(attr=grown(output.attr, room), key=grown(output.key, room))
        used = int(output.start[n])
        return output._replace(attr=output.attr[:used], key=output.key[:used])

    def one_by_one(self, start: np.ndarray, attr: np.ndarray, key: np.ndarray) -> JsonOneByOne:
        """What reads one document after the other to these arrays, which have room for `most`."""
        inputs = np.full(2 * len(self.plan.inputs), -1, np.int64)
        return JsonOneByOne(self, Documents(start, attr, key, np.zeros(1, np.bool_), inputs))

    def read_one(self, data: np.ndarray, span: tuple[np.ndarray, np.ndarray], bound: Any) -> None:
        """Read a document to an output that is bound."""
        while not read_documents(self._bound, self._bound_memory, data, *span, 0, bound):
            self._make_room(len(data))

    @property
    def has_unknown(self) -> bool:
        """Whether predicates were left unknown since they were last counted."""
        return bool(self._memory.count.item(UNKNOWN))

    def count(self, attributes: Attributes) -> None:
        """Count the predicates that documents left unknown."""
        count_unknown(attributes, self.plan.names, self._memory.unknown)
        self._memory.count[UNKNOWN] = 0

    def forget(self) -> None:
        """Do not count them: the document is read again, in the general way."""
        self._memory.unknown[:] = 0
        self._memory.count[UNKNOWN] = 0

    def _make_room(self, size: int) -> None:
        tape = self._memory.tape._replace(copied=np.empty(size + size // 8, np.uint8))
        self._memory = self._memory._replace(tape=tape)
        self._bound_memory = self._binding.of(self._memory)


class JsonOneByOne:
    """Reads one document after the other to the same arrays."""

    def __init__(self, reader: JsonReader, output: Documents) -> None:
        self._reader, self._output = reader, output
        self._bound = Binding(OUTPUT).of(output)
        self._span = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self.count, self.forget = reader.count, reader.forget

    def read(self, data: np.ndarray) -> bool:
        """Read a document; False where it goes the general way."""
        self._span[1][0] = len(data)
        self._output.input[:] = -1
        self._reader.read_one(data, self._span, self._bound)
        return not self._output.is_left.item(0)

    def inputs(self, data: np.ndarray) -> dict[str, Any]:
        """The values of the document that was read which computed attributes read."""
        names, text = self._reader.plan.inputs, data.tobytes()
        return input_values(names, self._output.input.tolist(), text, 0, len(text))

    @property
    def has_unknown(self) -> bool:
        return self._reader.has_unknown
