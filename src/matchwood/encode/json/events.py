"""Events from JSON text: one walk over the bytes, only the paths in use are read.

    events = JsonLines(['{"price": 12}', '{"price": 40, "tags": ["new"]}'])
    matcher.match_many(events)

A document goes one of three ways, all with the same answer as `json.loads` and a dict:

    compiled   walk (`json/walk_kernels`) and keys (`json/key_kernels`) in one step (`json/reader`);
               computed attributes from the values that the walk found (`json/inputs`)
    by hand    walk, then a dict of the values that are in use
    whole      `json.loads`: what the walk does not decide, and all while the plan is not worth
               making (`json/plan`)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any

import numpy as np

from matchwood.encode.attributes import Attributes
from matchwood.encode.event_batch import EncodedEvents, EventBatch, merged
from matchwood.encode.events import encode_events, with_computed
from matchwood.encode.json.inputs import inputs_of
from matchwood.encode.json.line_kernels import split_lines
from matchwood.encode.json.paths import walk
from matchwood.encode.json.plan import JsonPlan, plan_for
from matchwood.encode.json.reader import JsonReader
from matchwood.encode.json.walk_kernels import (
    COPIED,
    DOUBLE,
    FALSE,
    INTEGER,
    LIST,
    OBJECT,
    STRING,
    TRUE,
    Tape,
)
from matchwood.errors import EventError
from matchwood.lang.literals import LiteralError
from matchwood.lang.moments import read_date, read_timestamp

LINE_LENGTH = 256
"""Bytes of a line for which there is room at first; shorter ones take more steps."""

Buffer = bytes | bytearray | memoryview | str
_MOMENTS = {"date": read_date, "timestamp": read_timestamp}


class JsonLines:
    """JSON documents, one event each.

    documents  a buffer with one document per line, where blank lines are skipped; or an iterable of
               documents, bytes or str
    """

    def __init__(self, documents: Buffer | Iterable[Buffer]) -> None:
        if isinstance(documents, (bytes, bytearray, memoryview, str)):
            self._text = as_bytes(documents)
            self._data = np.frombuffer(self._text, np.uint8)
            self._begin, self._end = _lines(self._data)
        elif not isinstance(documents, Iterable):
            raise EventError(
                f"expected JSON lines or a list of documents, found {type(documents).__name__}"
            )
        else:
            texts = [_text_of(each) for each in documents]
            lengths = np.array([len(each) for each in texts], np.int64)
            self._text = b"".join(texts)
            self._data = np.frombuffer(self._text, np.uint8)
            self._end = np.cumsum(lengths)
            self._begin = self._end - lengths

    def __len__(self) -> int:
        return len(self._begin)

    def text(self, number: int) -> bytes:
        """One document."""
        return self._text[self._begin[number] : self._end[number]]

    def __iter__(self) -> Iterator[Any]:
        """The documents as `json.loads` reads them."""
        return (json.loads(self.text(number)) for number in range(len(self)))

    def event_slices(self, attributes: Attributes) -> JsonSlices:
        """The documents, to be encoded slice by slice."""
        return JsonSlices(attributes, self)

    def documents(self, first: int, last: int) -> JsonLines:
        """Documents first .. last - 1."""
        some = copy(self)
        some._begin, some._end = self._begin[first:last], self._end[first:last]
        return some

    def encode_entries(self, attributes: Attributes) -> EncodedEvents:
        """Encode all documents; what is wrong with one never stops the others."""
        plan = plan_for(attributes, 0)
        if plan is None:
            return self._by_hand(attributes, range(len(self)), None, None)
        if plan.is_by_hand:
            tape = walk(self._data, self._begin, self._end, plan.paths)
            return self._by_hand(attributes, range(len(self)), plan, tape)
        try:
            reader = plan.readers.pop()
        except IndexError:
            reader = JsonReader(plan)
        documents = reader.read_many(self._data, self._begin, self._end)
        reader.count(attributes)
        plan.readers.append(reader)
        start, attr, key, is_left = documents[:4]
        inputs = inputs_of(plan, documents, self._text, self._begin, self._end)
        read = with_computed(
            attributes, EventBatch(start, attr, key, key), inputs, is_left.tolist()
        )
        left = np.flatnonzero(is_left)
        if not len(left):
            return read
        tape = walk(self._data, self._begin[left], self._end[left], plan.paths)
        numbers = left.tolist()
        others = merged(read.batch, numbers, self._by_hand(attributes, numbers, plan, tape))
        return others._replace(warnings={**read.warnings, **others.warnings})

    def _by_hand(
        self,
        attributes: Attributes,
        numbers: Iterable[int],
        plan: JsonPlan | None,
        tape: Tape | None,
    ) -> EncodedEvents:
        """Encode some documents through dicts; their numbers count from 0 in the result.

        tape  of these documents alone
        """
        moments = {
            name: _MOMENTS[each.type]
            for name, each in attributes.by_name.items()
            if each.type in _MOMENTS and not each.is_hidden
        }
        events: list[Any] = []
        errors: dict[int, EventError] = {}
        for i, number in enumerate(numbers):
            event = None
            if plan is not None and tape is not None and not tape.is_odd[i]:
                event = self._values(plan, tape, i)
            try:
                if event is None:
                    event = json.loads(self.text(number))
                    if not isinstance(event, Mapping):
                        raise ValueError(f"found {type(event).__name__}")
            except (ValueError, RecursionError) as error:
                event = {}
                errors[i] = EventError(
                    f"expected a JSON object, {_problem(error)}: {self._start_of(number)}"
                )
            events.append(_with_moments(event, moments) if moments else event)
        encoded = encode_events(attributes, events)
        return encoded._replace(errors={**encoded.errors, **errors})

    def _values(self, plan: JsonPlan, tape: Tape, number: int) -> dict[str, Any] | None:
        """The values in use of a document of a tape; None where it has to be read whole."""
        event: dict[str, Any] = {}
        for i in range(int(tape.start[number]), int(tape.start[number + 1])):
            kind, value, end = int(tape.kind[i]), int(tape.value[i]), int(tape.end[i])
            if kind == OBJECT:  # present itself, and what is in it
                return None
            event[plan.names[tape.path[i]]] = self._value(tape, kind, value, end)
        return event

    def _value(self, tape: Tape, kind: int, value: int, end: int) -> Any:
        if kind in (FALSE, TRUE):
            return kind == TRUE
        if kind == INTEGER:
            return value
        if kind == DOUBLE:
            return float(np.int64(value).view(np.float64))
        text = (tape.copied if kind == COPIED else self._data)[value:end].tobytes()
        if kind == LIST:
            return json.loads(text)
        assert kind in (STRING, COPIED)
        return text.decode()

    def _start_of(self, number: int) -> str:
        text = self.text(number)[:60].decode(errors="replace")
        return repr(text)


class JsonSlices:
    """Documents that are encoded slice by slice; see `event_batch.Slices`."""

    n_slow = 0

    def __init__(self, attributes: Attributes, lines: JsonLines) -> None:
        self._lines = lines
        self.n_events = len(lines)
        self.is_free = not attributes.computed
        plan_for(attributes, len(lines))  # once: documents of a slice alone may be too few

    def part(self, attributes: Attributes, first: int, last: int) -> EncodedEvents:
        return self._lines.documents(first, last).encode_entries(attributes)


def _problem(error: Exception) -> str:
    text = str(error)
    return text if text.startswith("found ") else f"found no JSON ({text[:120]})"


def as_bytes(document: Any) -> bytes:
    """The text of a document; EventError for anything else."""
    if isinstance(document, str):
        return document.encode("utf-8", "surrogatepass")
    if isinstance(document, (bytes, bytearray, memoryview)):
        return bytes(document)
    raise EventError(f"expected JSON text as bytes or str, found {type(document).__name__}")


def _text_of(document: Any) -> bytes:
    """The text of one of many documents; of what is none, a text that is no JSON and names it."""
    is_text = isinstance(document, (str, bytes, bytearray, memoryview))
    return as_bytes(document) if is_text else f"<{type(document).__name__}>".encode()


def _lines(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the lines of a buffer begin and end, without those that are blank."""
    room = 16 + len(data) // LINE_LENGTH
    found: list[tuple[np.ndarray, np.ndarray]] = []
    at = 0
    while True:
        begin, end = np.empty(room, np.int64), np.empty(room, np.int64)
        n, at = split_lines(data, at, begin, end)
        found.append((begin[:n], end[:n]))
        if at >= len(data):
            break
        room *= 2
    if len(found) == 1:
        return found[0]
    return np.concatenate([each[0] for each in found]), np.concatenate([each[1] for each in found])


def _with_moments(event: Mapping[str, Any], moments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Strings of attributes that are declared as dates or times, as such; others stay."""
    changed = dict(event)
    for name, read in moments.items():
        owner, key = changed, name
        while key not in owner and "." in key:
            head, _, key = key.partition(".")
            inner = owner.get(head)
            if not isinstance(inner, Mapping):
                break
            owner[head] = dict(inner)
            owner = owner[head]
        if isinstance(owner.get(key), str):
            try:
                owner[key] = read(owner[key])
            except LiteralError:
                continue
    return changed
