"""Logs of a small shop for streams, the definition of what must come out, and what came out."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

import matchwood as mw
from matchwood.spark.streams import match_stream as stream_module
from matchwood.spark.streams import owner

SCHEMA = "offset BIGINT, kind STRING, id STRING, expr STRING, attributes MAP<STRING, STRING>"
Record = dict[str, Any]


def expression(random: Random) -> str:
    low = random.randrange(20)
    return random.choice(
        (
            f"price BETWEEN {low} AND {low + 5} AND size > {random.randrange(3)}",
            f"price < {low} OR colour = '{random.choice('rgb')}'",
            f"colour <> '{random.choice('rgb')}' AND size = {random.randrange(5)}",
            "price <" if low == 3 else f"NOT price = {low}",  # sometimes broken
            f"price IN ({low}, 'x')" if low == 4 else "size IS NULL",  # sometimes of two types
        )
    )


def made_log(seed: int, n: int, n_ids: int = 12) -> list[Record]:
    """Subscriptions come, change and go between events; some records are poison."""
    random = Random(seed)
    log: list[Record] = [_record(0, "subscribe", "s0", "price < 5 AND size > 0 AND colour = 'r'")]
    for offset in range(1, n):
        draw = random.random()
        name = f"s{random.randrange(n_ids)}"
        if draw < 0.2:
            log.append(_record(offset, "subscribe", name, expression(random)))
        elif draw < 0.3:
            log.append(_record(offset, "unsubscribe", name))
        elif draw < 0.32:
            log.append(_record(offset, random.choice(("nonsense", "context")), name))
        else:
            values = {"price": str(random.randrange(25)), "colour": random.choice("rgbx")}
            if random.random() < 0.7:
                values["size"] = "large" if random.random() < 0.05 else str(random.randrange(6))
            log.append(_record(offset, "event", f"e{offset}", None, values))
    return log


def _record(offset: int, kind: str, id_: str, expr: Any = None, attributes: Any = None) -> Record:
    return {"offset": offset, "kind": kind, "id": id_, "expr": expr, "attributes": attributes}


def sequential(log: Iterable[Record]) -> tuple[dict[str, list[str]], int]:
    """One record after the other: the matches of every good event, and how many were refused."""
    matcher, found, refused = mw.Matcher(), {}, 0
    for record in log:
        try:
            if record["kind"] == "subscribe":
                matcher.replace(record["id"], record["expr"])
            elif record["kind"] == "unsubscribe":
                matcher.remove(record["id"])
            elif record["kind"] == "event":
                values = {
                    name: int(value) if value.isdecimal() else value
                    for name, value in record["attributes"].items()
                }
                found[record["id"]] = sorted(matcher.match(values))
            else:
                refused += 1
        except mw.MatchwoodError:
            refused += 1
    return found, refused


def write_log(folder: Path, log: list[Record], per_file: int) -> None:
    write_cuts(folder, log, range(0, len(log), per_file))


def write_cuts(folder: Path, log: list[Record], cuts: Iterable[int]) -> None:
    """Files that end before these records, each a micro-batch; Spark takes them by their time."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = sorted({0, *cuts, len(log)})
    for n, (first, last) in enumerate(pairwise(ends)):
        aside, file = folder / f".{first:06}.json", folder / f"{first:06}.json"
        aside.write_text("".join(json.dumps(record) + "\n" for record in log[first:last]))
        os.utime(aside, (1_700_000_000 + n, 1_700_000_000 + n))
        aside.rename(file)


def read_log(spark, folder: Path, files: int = 1):
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files)
    return reader.json(str(folder))


def committed(out: Path) -> dict[str, list[str]]:
    """Every event that came out; fails when one came twice."""
    found: dict[str, list[str]] = {}
    for folder in sorted((out / "matches").glob("batch=*")):
        for row in pq.read_table(folder, partitioning=None).to_pylist():
            assert row["event_id"] not in found, f"{row['event_id']} came twice"
            found[row["event_id"]] = sorted(row["subscription_ids"])
    return found


def dead_letters(out: Path) -> list[dict[str, Any]]:
    return [
        row
        for folder in sorted((out / "errors").glob("batch=*"))
        for row in pq.read_table(folder, partitioning=None).to_pylist()
    ]


def wait_for_snapshot(state: str) -> None:
    """Wait until a query that has ended has given its state back, its last snapshot written."""
    while owner.is_owned(state):
        time.sleep(0.01)


class Crash(Exception):
    pass


def crash_at_each(monkeypatch, points: list[str], run: Callable[[], None]) -> None:
    """Run a stream that crashes at a point, then at the next; and once more, to its end."""
    left = list(points)

    def crash(point: str) -> None:
        if left and left[0] == point:
            del left[0]
            raise Crash(point)

    monkeypatch.setattr(stream_module, "reached", crash)
    for point in points:
        with pytest.raises(StreamingQueryException, match=f"Crash: {point}"):
            run()
    run()
