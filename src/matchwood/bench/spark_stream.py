"""The suite `spark`, part `stream`: a log with everything in it, and how fast it is worked off.

    e e e e e e e e e e c e e ...      e event   c values of a context, one per 10 records
    s e e ... (100) e e u e e ...      s, u      subscriptions come and go, one per 100 events

So 20,000 events a second come with 200 changes of subscriptions and 2,000 updates of contexts.
Events and subscriptions are BEGen's; events have a price as well, and a tenth of the subscriptions
asks for one near the target of its context (`bound`), five to each context.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from matchwood.workload import find_workload, plain_tables
from matchwood.workload.draws import Draws

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY = 101
"""Every so many records of the log without contexts, one is a change of subscriptions."""
PER_CONTEXT = 5
CONTEXT_EVERY = 10
TOP = 10_000
"""Prices and targets are below."""
MATCHES = 20
"""Matches of an event, on average."""


def run_stream(
    spark: SparkSession, folder: Path, n_subscriptions: int, n_records: int, n_batch: int
) -> dict[str, Any]:
    """Work off a log of `n_records`, `n_batch` of them at a time."""
    from matchwood.spark import match_stream
    from matchwood.spark.worker import read_times

    n_plain = n_subscriptions - n_subscriptions // 10
    workload = find_workload(
        "begen", n_subscriptions=n_subscriptions, min_predicates=5,
        match_probability=max(1e-5, MATCHES / n_subscriptions),
    )  # fmt: skip
    files = write_log(workload, folder / "log", n_records, n_batch, n_subscriptions // 10)
    plain = plain_tables.texts(workload, 0, n_plain)
    rows = pa.concat_tables([plain.append_column("context", pa.nulls(n_plain, pa.int64())),
                             bound(workload, n_plain, n_subscriptions)])  # fmt: skip
    n_contexts = max(1, n_subscriptions // 10 // PER_CONTEXT)
    values = pa.table({"context": np.arange(n_contexts), "target": np.arange(n_contexts) * 7 % TOP})
    stream = spark.readStream.schema(spark.read.parquet(str(files[0])).schema)
    query = match_stream(
        stream.option("maxFilesPerTrigger", 1).parquet(str(folder / "log")),
        str(folder / "out"), str(folder / "state"), subscriptions=spark.createDataFrame(rows),
        contexts=values, trigger={"availableNow": True}, profile=str(folder / "times"),
    )  # fmt: skip
    query.awaitTermination()
    figures = _figures(query.recentProgress, n_subscriptions, folder)
    for side in ("driver", "workers"):
        for what, seconds in sorted(read_times(folder / "times" / side).items()):
            figures[f"{side}: {what}, s a micro-batch"] = seconds / figures["micro-batches"]
    return figures


def write_log(
    workload: Any, folder: Path, n_records: int, n_batch: int, n_bound: int
) -> list[Path]:
    """Files of a log, a micro-batch each, which Spark takes in the order of their times."""
    folder.mkdir(parents=True)
    files = []
    for n, first in enumerate(range(0, n_records, n_batch)):
        table = log_part(workload, first, min(first + n_batch, n_records), n_bound)
        files.append(folder / f"{n:05}.parquet")
        pq.write_table(table, files[-1], row_group_size=max(1, table.num_rows // 2))
        os.utime(files[-1], (1_700_000_000 + n, 1_700_000_000 + n))
    return files


def log_part(workload: Any, first: int, last: int, n_bound: int) -> pa.Table:
    """Records first .. last - 1 of the log without contexts, and the updates among them."""
    rows = plain_tables.log(workload, first, last, EVERY)
    offset = rows.column("offset").to_numpy()
    rows = _with_price(rows.set_column(0, "offset", pa.array(offset + offset // CONTEXT_EVERY)))
    update = np.arange(first // CONTEXT_EVERY, last // CONTEXT_EVERY)
    draws = Draws(1, "bench/contexts", update)
    n = len(update)
    updates = pa.table({
        "offset": update * (CONTEXT_EVERY + 1) + CONTEXT_EVERY,
        "kind": pa.array(["context"] * n, pa.string()),
        "id": draws.below("context", max(1, n_bound // PER_CONTEXT))[:, 0],
        "expr": pa.nulls(n, pa.string()),
        "attributes": pa.array([["target"]] * n, pa.list_(pa.string())),
        "values": pa.array(draws.below("value", TOP)[:, :1].tolist(), pa.list_(pa.int64())),
    })  # fmt: skip
    table = pa.concat_tables([rows, updates.cast(rows.schema)]).sort_by("offset")
    return table.append_column("context", pa.nulls(len(table), pa.int64()))


def _with_price(rows: pa.Table) -> pa.Table:
    """Events with one attribute more."""
    is_event = pa.compute.equal(rows.column("kind"), "event").to_numpy()
    at = np.flatnonzero(is_event)
    price = Draws(1, "bench/price", rows.column("offset").to_numpy()[at]).below("price", TOP)[:, 0]
    for name, more in (("attributes", pa.array(["price"] * len(at))), ("values", pa.array(price))):
        lists = rows.column(name).combine_chunks()
        flat = lists.flatten()
        sizes = pa.compute.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
        order = np.insert(
            np.arange(len(flat)), np.cumsum(sizes)[at], len(flat) + np.arange(len(at))
        )
        items = pa.concat_arrays([flat, more.cast(flat.type)]).take(pa.array(order))
        ends = np.append(0, np.cumsum(sizes + is_event)).astype(np.int32)
        whole = pa.ListArray.from_arrays(ends, items, mask=pa.array(~is_event))
        rows = rows.set_column(rows.schema.get_field_index(name), name, whole)
    return rows


def bound(workload: Any, first: int, last: int) -> pa.Table:
    """Subscriptions first .. last - 1, which follow contexts."""
    ids = np.arange(first, last)
    draws = Draws(1, "bench/bound", ids)
    other = draws.below("other", workload.n_attributes)[:, 0].tolist()
    texts = [
        f"price BETWEEN ctx.target - 50 AND ctx.target + 50 AND a{name} >= {i % 24}"
        for i, name in enumerate(other)
    ]
    return pa.table(
        {"id": ids, "expr": pa.array(texts, pa.string()), "context": (ids - first) // PER_CONTEXT}
    )


def _figures(recent: Any, n_subscriptions: int, folder: Path) -> dict[str, Any]:
    progress = [each for each in recent if each["numInputRows"]]
    took = np.array([each["durationMs"]["triggerExecution"] for each in progress]) / 1000
    kinds = pq.read_table(folder / "log", columns=["kind"])["kind"].value_counts().to_pylist()
    n = {each["values"]: each["counts"] for each in kinds}
    warm = slice(1, None) if len(took) > 1 else slice(None)
    # the first batch opens the snapshot and loads the kernels
    rows = np.array([each["numInputRows"] for each in progress])
    share = rows[warm].sum() / rows.sum() / took[warm].sum()
    return {
        "subscriptions": n_subscriptions,
        "records": int(rows.sum()),
        "micro-batches": len(progress),
        "events per second": float(n["event"] * share),
        "subscription changes per second": float((n["subscribe"] + n["unsubscribe"]) * share),
        "context updates per second": float(n["context"] * share),
        "median micro-batch, s": float(np.median(took[warm])),
        "p99 micro-batch, s": float(np.quantile(took[warm], 0.99)),
        "slowest micro-batch, s": float(took[warm].max()),
        "first micro-batch, s": float(took[0]),
    }
