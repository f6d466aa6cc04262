"""The bookshop as DataFrames, in every shape that events may have."""

from __future__ import annotations

import json
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from matchwood.workload.bookshop import Bookshop


def shop(n_subscriptions: int, n_events: int, seed: int = 3) -> tuple[list[str], list[dict]]:
    made = Bookshop(seed)
    texts = [made.subscription() for _ in range(n_subscriptions)]
    return texts, [made.event() for _ in range(n_events)]


def flat(event: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in event.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return value.isoformat() if isinstance(value, date) else str(value)


def texts_frame(spark, texts: list[str], parts: int = 3):
    table = pa.table({"id": list(range(len(texts))), "expr": texts})
    return spark.createDataFrame(table).repartition(parts)


def events_frame(spark, events: list[dict], shape: str, parts: int = 3):
    ids = pa.array(range(len(events)), pa.int64())
    if shape == "wide":
        table = pa.Table.from_struct_array(pa.array(events)).append_column("event_id", ids)
    elif shape == "struct":
        table = pa.table({"event_id": ids, "attributes": pa.array(events)})
    else:
        cells = [{name: text(v) for name, v in flat(e).items()} for e in events]
        if shape == "map":
            column = pa.array([list(e.items()) for e in cells], pa.map_(pa.string(), pa.string()))
            table = pa.table({"event_id": ids, "attributes": column})
        else:
            names = pa.array([list(e) for e in cells])
            values = pa.array([list(e.values()) for e in cells])
            table = pa.table({"event_id": ids, "attributes": names, "values": values})
    return spark.createDataFrame(table).repartition(parts)


def lists(frame) -> dict[Any, list[Any]]:
    rows = frame.toArrow().to_pylist()
    found = {row["event_id"]: row["subscription_ids"] for row in rows}
    assert len(found) == len(rows), json.dumps("an event came twice")
    return found
