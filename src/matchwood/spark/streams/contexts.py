"""Contexts in a stream: what a record says of them, and their values during a batch.

    offset     10       11     12       13     14             a batch, as every worker has it
    record     event    ann    event    bob    event
    values     before    └──►  ann's     └──►  ann's and bob's
               ◄───── back ─────  step by step  ───── on ─────►

Idea.    Updates are changes, decided and written like those of subscriptions.  A worker takes the
         events that it has in the order of their offsets, and carries out the updates between them
         on its own replica, from wherever that is: before the first update is carried out, what
         each of them replaces is found, so that values go back as well.  So events are still
         matched in parallel, and every worker ends a batch with the same values.
Cost.    Every task carries out the updates of the batch, some at a time: the events between them
         are searched at once, see `matchwood.engine.stores.context_changes`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from matchwood.engine.formats.text_files import with_moments
from matchwood.engine.matcher import Matcher
from matchwood.engine.stores.context_changes import ContextChange
from matchwood.errors import EventError, MatchwoodError
from matchwood.lang.cells import read_cell
from matchwood.lang.names import CONTEXT as PREFIX
from matchwood.spark.errors import error_row
from matchwood.spark.streams.known_values import note, undoing, with_objects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECORD = ("offset", "kind", "id", "expr")
CONTEXT = "context"
CONTEXT_OF = "context"
"""A kind of records; and the column, which a log may lack, of the context of a subscription."""
IS_EVENT = "kind = 'event' AND offset IS NOT NULL"
ADD, SET = "add", "set"
_TAGS = {"date": date.fromisoformat, "timestamp": datetime.fromisoformat}


class Update(NamedTuple):
    """Values that a context gets at an offset; None makes one absent."""

    offset: int
    context: Any
    values: dict[str, Any]


class Timeline:
    """The updates of one batch on one matcher, which is before, among or after them."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._updates: list[Update] = []
        self._replaced: list[list[dict[str, Any]]] = []
        self._offsets = np.empty(0, np.int64)
        self._at = 0
        matcher.hold_strings()  # values go back, and events are encoded with strings of both ends

    def __len__(self) -> int:
        return len(self._updates)

    def append(self, update: Update) -> None:
        """Append an update; it is carried out when a caller moves past it.

        Events are to be encoded after an update with a new string was carried out once.
        """
        self._updates.append(update)

    def go(self, n: int) -> None:
        """Carry out updates, or take them back, until the first n of them are carried out."""
        if n > len(self._replaced):
            self._look_ahead()
        some = self._updates[min(self._at, n) : max(self._at, n)]
        steps = [(each.context, each.values) for each in some]
        if n < self._at:
            replaced = zip(some, self._replaced[n : self._at], strict=True)
            steps = [(each.context, old) for each, olds in [*replaced][::-1] for old in olds]
        if len(steps) == 1:
            self._matcher.set_context(*steps[0])
        elif steps:
            self._matcher.set_context_many(_last_values(steps))
        self._at = n

    def _look_ahead(self) -> None:
        """Find what each update replaces that was not carried out yet, with one look at contexts.

        Valid because none is carried out before this call has seen it.
        """
        rest = self._updates[len(self._replaced) :]
        ids = list(dict.fromkeys(each.context for each in rest))
        now = {
            id_: with_objects(known)
            for id_, known in zip(ids, self._matcher.contexts(ids), strict=True)
        }
        for _, context, values in rest:
            known = now[context]
            self._replaced.append(undoing(values, known))
            note(values, known)

    def end(self) -> None:
        """After all of them, as the next batch begins."""
        self.go(len(self))

    def changes(self, offsets: np.ndarray) -> list[ContextChange]:
        """What happens between events with these offsets, which ascend."""
        if not len(self):
            return []
        if len(self._offsets) != len(self):
            self._offsets = np.array([each.offset for each in self._updates], np.int64)
        before = np.searchsorted(self._offsets, offsets)  # how many lie before each event
        events = np.flatnonzero(np.diff(before, prepend=-1))
        done = [None, *before[events].tolist()]
        steps = [(each.context, each.values) for each in self._updates]
        return [
            ContextChange(e, partial(self.go, now), None if was is None else steps[was:now])
            for e, was, now in zip(events.tolist(), done[:-1], done[1:], strict=True)
        ]


def _last_values(steps: list[tuple[Any, dict[str, Any]]]) -> list[tuple[Any, dict[str, Any]]]:
    """Steps that leave the same values: the last of each, where no name is inside of another and
    there are no strings, all of which have to be known before events are encoded.
    """
    known: dict[Any, dict[str, Any]] = {}
    for context, values in steps:
        for name, value in values.items():
            if "." in name or isinstance(value, (str, Mapping)):
                return steps
        known.setdefault(context, {}).update(values)
    return list(known.items())


def carry_out(matcher: Matcher, rows: pa.Table, batch: int) -> Timeline:
    """Take what a batch adds and sets.

    In the order in which it was decided, if an update has a name without a type: types are learned
    from both.  Else the order decides nothing, and what is added is added at once, and updates
    wait until events come to them.
    """
    timeline = Timeline(matcher)
    names = [each for each in ("context", "values") if each in rows.column_names]
    changes = rows.select(["op", "version", "offset", "expr", "id", *names])
    updates: list[Update] = []
    if "values" in names:
        is_set = changes.filter(pa.compute.equal(changes.column("op"), SET))
        columns = (is_set.column(name).to_pylist() for name in ("offset", "id", "values"))
        updates = [
            Update(offset, id_, values_of(text)) for offset, id_, text in zip(*columns, strict=True)
        ]
    for each in updates:
        timeline.append(each)
    if are_known(matcher.schema, (each.values for each in updates)):
        _add(matcher, changes.filter(pa.compute.equal(changes.column("op"), ADD)), batch)
        if any(isinstance(value, str) for each in updates for value in each.values.values()):
            timeline.end()  # a new string changes what events are encoded to: all come first
        return timeline
    kept = changes.filter(pa.compute.is_in(changes.column("op"), pa.array([ADD, SET])))
    ops, at, n_set = kept.column("op").to_pylist(), 0, 0
    for op, same in groupby(ops):
        n = len(list(same))
        if op == ADD:
            _add(matcher, kept.slice(at, n), batch)
        else:
            try:
                for _ in range(n):  # one by one: a type is that of the first value
                    n_set += 1
                    timeline.go(n_set)
            except MatchwoodError as error:
                raise _strange(batch, error) from error
        at += n
    return timeline


def are_known(types: Mapping[str, str], updates: Iterable[Iterable[str]]) -> bool:
    """Whether every name that updates give a value to has a type."""
    return all(types.get(PREFIX + name) for name in {n for each in updates for n in each})


def _add(matcher: Matcher, rows: pa.Table, batch: int) -> None:
    if not len(rows):
        return
    table = pa.table({"id": rows.column("version"), "expr": rows.column("expr")})
    if "context" in rows.column_names:
        table = table.append_column("context", rows.column("context"))
    refused = matcher.add_many(table, processes=1).errors
    if refused:
        raise _strange(batch, refused[0].error)


def _strange(batch: int, error: Exception) -> MatchwoodError:
    return MatchwoodError(
        f"expected every change of batch {batch} to be taken as it was decided, found "
        f"{error}: the state is not what the driver had"
    )


# -- records -------------------------------------------------------------------------------------


def read_records(records: DataFrame, shape: str) -> tuple[pa.Table, int | None]:
    """The records of a batch that are no events, and the highest offset of all: in one job."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    columns = [*RECORD, *([CONTEXT_OF] if CONTEXT_OF in records.columns else [])]
    values = ["attributes", *(["values"] if shape == "arrays" else [])]
    only = [f.when(f.col("kind") == CONTEXT, f.col(name)).alias(name) for name in values]
    seen = Observation()
    seen_all = records.observe(seen, f.max("offset").alias("last"))
    rest = seen_all.where(f"NOT coalesce({IS_EVENT}, false)").select(*columns, *only)
    return rest.toArrow(), seen.get["last"]


def set_contexts(matcher: Matcher, rows: list[dict[str, Any]], shape: str) -> list[dict[str, Any]]:
    """Carry out records of contexts; returns what is wrong with those that were refused.

    The rows of those that were taken get `text`, which is what they set.
    """
    types: Mapping[str, str] = matcher.schema
    errors: list[dict[str, Any]] = []
    if _set_at_once(matcher, rows, shape, types):
        return errors
    for row in rows:
        row["text"] = None
        try:
            values = read_values(row["attributes"], row.get("values"), shape, types)
            matcher.set_context(row["id"], values)
        except MatchwoodError as error:
            errors.append(error_row("record", row["id"], error))
            continue
        row["text"] = values_text(values)
        if any(PREFIX + name not in types for name in values):
            types = matcher.schema
    return errors


def _set_at_once(
    matcher: Matcher, rows: list[dict[str, Any]], shape: str, types: Mapping[str, str]
) -> bool:
    """Carry out all records by one call; False, with nothing changed, if one of them is refused or
    a type would be learned.
    """
    try:
        values = [read_values(row["attributes"], row.get("values"), shape, types) for row in rows]
        if not are_known(types, values):
            return False
        updates = [(row["id"], each) for row, each in zip(rows, values, strict=True)]
        matcher.set_context_many(updates)
    except MatchwoodError:
        return False
    for row, each in zip(rows, values, strict=True):
        row["text"] = values_text(each)
    return True


def read_values(attributes: Any, values: Any, shape: str, types: Mapping[str, str]) -> Any:
    """The values that a record gives to a context, by name; dotted where they were nested.

    types  of the names that are known, with `ctx.` before them
    """
    if attributes is None:
        raise EventError("expected the values of a context in attributes, found null")
    if shape == "struct":  # a null may be a field that the record did not have
        return {name: value for name, value in _flat(attributes) if value is not None}
    if shape == "json":
        return _from_json(attributes, types)
    pairs = attributes
    if shape == "arrays":
        if len(attributes) != len(values or ()):
            raise EventError("expected as many attributes as values, found another number")
        pairs = zip(attributes, values, strict=True)
    return dict(_once(_read(name, value, types) for name, value in pairs))


def names_of(attributes: Any, shape: str) -> list[str]:
    """The names that a record may give a value to; one that no type has if it cannot be read."""
    unknown = [""]
    if attributes is None:
        return unknown
    if shape == "struct":
        return [name for name, value in _flat(attributes) if value is not None]
    if shape == "json":
        try:
            return list(_from_json(attributes, {}))
        except MatchwoodError:
            return unknown
    names = attributes if shape == "arrays" else [name for name, _ in attributes]
    return [name or "" for name in names]


def _from_json(text: str, types: Mapping[str, str]) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EventError(f"expected a JSON object, found no JSON: {error}") from None
    if not isinstance(found, dict):
        raise EventError(f"expected a JSON object, found {type(found).__name__}")
    return dict(_once(_flat(with_moments(found, types, PREFIX))))


def _read(name: str | None, value: Any, types: Mapping[str, str]) -> tuple[str, Any]:
    if name is None:
        raise EventError("expected a name for every value of a context, found null")
    if isinstance(value, dict):  # a field per type, of which one is not null
        value = next((each for each in value.values() if each is not None), None)
    if isinstance(value, str):
        kind = types.get(PREFIX + name)
        if kind is None:
            raise EventError(
                f"expected a known type for {PREFIX + name!r}, found the text {value!r} for a "
                "name that no expression has used: declare its type with schema="
            )
        value = read_cell(kind, value)
    return name, value


def _once(pairs: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for name, value in pairs:
        if name in seen:
            raise EventError(f"expected the value {name!r} once, found it twice")
        seen.add(name)
        yield name, value


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


# -- on disk -------------------------------------------------------------------------------------


def values_text(values: Mapping[str, Any]) -> str:
    """Values as they are written down, each with its type."""
    return json.dumps({name: _tagged(value) for name, value in values.items()})


def values_of(text: str) -> dict[str, Any]:
    """The values of a text that `values_text` made."""
    return {name: _untagged(value) for name, value in json.loads(text).items()}


def _tagged(value: Any) -> Any:
    if isinstance(value, datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    return value


def _untagged(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((tag, text),) = value.items()
    return Decimal(text) if tag == "decimal" else _TAGS[tag](text)
