"""The start of a stream: the state before batch 0, or the state that is there."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.engine.matcher import Matcher
from matchwood.errors import EventError, FormatError, StorageError, SubscriptionError
from matchwood.spark.columns import CONTEXT
from matchwood.spark.indexes import build_index, open_index
from matchwood.spark.storage import Storage
from matchwood.spark.streams.state import Replica, StateFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERSION = 1
NOTE = "log.json"


def begin(
    log: DataFrame, state: Storage, out: Storage, shape: str, first: Callable[[], Replica]
) -> str:
    """Make the state of a new stream, or see that state and output are those of this one; returns
    the name of the stream.
    """
    folder = StateFolder(state)
    note = state.read(NOTE)
    record = {"version": VERSION, "log": json.loads(log.schema.json()), "shape": shape,
            "stream": uuid.uuid4().hex}  # fmt: skip
    if note is not None:
        before = json.loads(note)
        if not _goes_on(before["log"], record["log"]) or before["shape"] != record["shape"]:
            raise FormatError(
                f"expected a log with the columns that {str(state)!r} began with, and perhaps new "
                f"ones that may be null, found {log.schema.simpleString()}: start a new stream, or "
                "bring back the columns"
            )
        stream = str(before.get("stream", ""))
        claim(out, stream)
        return stream
    claim(out, "")
    if not folder.snapshots():
        folder.write_snapshot(0, first().frozen())
    state.put(NOTE, json.dumps(record).encode())
    claim(out, str(record["stream"]))
    return str(record["stream"])


def _goes_on(before: Any, now: Any) -> bool:
    """Whether a type, as JSON, is that of before, perhaps with new fields that may be null."""
    if not isinstance(before, dict) or not isinstance(now, dict) or before["type"] != "struct":
        return bool(before == now)
    old = {field["name"]: field for field in before["fields"]}
    new = {field["name"]: field for field in now.get("fields", ())}
    return (
        now["type"] == "struct"
        and old.keys() <= new.keys()
        and all(_goes_on(old[name]["type"], new[name]["type"]) for name in old)
        and all(new[name]["nullable"] for name in new.keys() - old.keys())
    )


def claim(out: Storage, stream: str) -> None:
    """Mark the output as that of a stream; an error if it belongs to another one.

    Batches are known by their numbers: those of another stream would pass for done, and their
    events be lost.
    """
    found = (out.read("_stream") or b"").decode()
    is_used = found or any(name.startswith("batch=") for name in out.names("matches"))
    if found != stream and is_used:
        raise StorageError(
            f"expected output of the stream that has this state in {str(out)!r}, found that of "
            "another: choose another folder for one of the two, or remove both to begin anew"
        )
    if stream and not found:
        out.put("_stream", stream.encode())


def first_replica(
    subscriptions: DataFrame | str | None,
    contexts: Any,
    index: str,
    config: Mapping[str, Any] | None,
    schema: Schema | Mapping[str, Any] | None,
    id_type: str,
    names: frozenset[str] | None = None,
) -> Replica:
    """The state before batch 0.

    names  attributes that events have, if that is known
    """
    if contexts is not None and (subscriptions is None or isinstance(subscriptions, str)):
        raise EventError(
            "expected contexts beside a table of subscriptions: a snapshot has values of its own, "
            "and a stream that starts empty gets them from its log"
        )
    kind = pa.int64() if id_type == "bigint" else pa.string()
    if subscriptions is None:
        matcher = Matcher(index=index, schema=schema, **(config or {}))
    elif isinstance(subscriptions, str):
        matcher = Matcher.load(open_index(subscriptions).folder)
    else:
        built = build_index(
            subscriptions, index, config, schema, contexts=contexts, takes=(CONTEXT,), names=names
        )
        if built.refused.num_rows:
            first = built.refused.to_pylist()[0]
            raise SubscriptionError(
                "expected subscriptions without faults to start from, found "
                f"{built.refused.num_rows} with, the first of id {first['id']}: {first['message']}"
            )
        matcher = Matcher.load(built.folder)
    strangers = [
        each for each in matcher.context_ids() if isinstance(each, int) != (id_type == "bigint")
    ]
    if strangers:
        raise EventError(
            f"expected contexts named by {id_type}, as the log's ids are, found {strangers[0]!r}: "
            "cast the ids of one"
        )
    ids = matcher.renumber()
    try:
        ids = ids.cast(kind)
    except pa.ArrowInvalid:
        raise SubscriptionError(
            f"expected subscriptions named by {id_type}, as the log's ids are, found strings that "
            "are no numbers: cast the ids of one"
        ) from None
    versions = pa.array(range(len(matcher)), pa.int64()).to_numpy()
    return Replica(matcher, versions, ids.slice(0, len(matcher)), 0)
