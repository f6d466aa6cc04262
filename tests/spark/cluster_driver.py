"""A cluster of separate executor processes, asked as Classic and as Connect.

python cluster_driver.py WORK                  Classic: repeated calls, and an executor is killed
python cluster_driver.py WORK sc://HOST:PORT   a Connect client of the same cluster
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa

from matchwood.spark import indexes, known_rows, local_session, match, match_sharded, register_sql
from matchwood.spark.executors import bytes_shipped
from matchwood.workload.bookshop import Bookshop

sys.path.insert(0, str(Path(__file__).parents[1]))
from spark.sessions import CHEAP_SESSION

N_SUBSCRIPTIONS, N_EVENTS = 1000, 200
PASSED_ON = ("PYTHONPATH", "HOME", "NUMBA_CACHE_DIR")


def kill_once(marker: str):
    """A step that kills the executor of its task, the first time that it runs at all."""

    def run(batches):
        import os
        import signal
        from pathlib import Path

        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            yield from batches
            return
        parent = os.getppid()  # the daemon that forks workers; its parent is the executor
        stat = Path(f"/proc/{parent}/stat").read_text()
        executor = int(stat.rsplit(")", 1)[1].split()[1])
        os.kill(executor, signal.SIGKILL)
        yield from batches

    return run


def executors(batches):
    import os

    import pyarrow as pa

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"pid": [os.getppid()] * batch.num_rows})


def n_executors(spark, wanted: int = 2, seconds: float = 60) -> int:
    """How many executors run tasks; the one that takes the place of a killed one comes later."""
    last = time.monotonic() + seconds
    while True:
        found = spark.range(0, 4, 1, 4).mapInArrow(executors, "pid long").distinct().count()
        if found >= wanted or time.monotonic() > last:
            return found
        time.sleep(0.5)


def lists(rows) -> dict[int, list[int]]:
    return {row.event_id: row.subscription_ids for row in rows.collect()}


def frames(spark, parts: int = 4):
    shop = Bookshop(3)
    texts = [shop.subscription() for _ in range(N_SUBSCRIPTIONS)]
    events = [shop.event() for _ in range(N_EVENTS)]
    wishes = spark.createDataFrame(pa.table({"id": list(range(N_SUBSCRIPTIONS)), "expr": texts}))
    table = pa.Table.from_struct_array(pa.array(events)).append_column(
        "event_id", pa.array(range(N_EVENTS), pa.int64())
    )
    return spark.createDataFrame(table).repartition(parts), wishes


def classic(work: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    spark = local_session(
        "cluster",
        2,
        master="local-cluster[2,1,2048]",
        **{
            **CHEAP_SESSION,
            **{f"spark.executorEnv.{name}": os.environ[name] for name in PASSED_ON},
            "spark.executor.memory": "900m",
            "spark.driver.memory": "1g",
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": port,
        },
    )
    known_rows.SMALL = 100  # as of a large table: the file is sent to executors
    try:
        offers, wishes = frames(spark)
        marker = str(work / "killed")
        hurt = offers.mapInArrow(kill_once(marker), offers.schema)
        match(hurt, wishes).matches.write.parquet(str(work / "matches"))
        n_running = n_executors(spark)
        again = [match(offers, wishes), match(offers, wishes.where("id < 500"))]
        sent = bytes_shipped()
        other = wishes.selectExpr("id", "IF(id = 500, 'price IS NOT NULL', expr) AS expr")
        changed = lists(match(offers, other).matches)
        sent_later = {k: n for k, n in bytes_shipped().items() if k not in sent}
        again_read, read_again = [], indexes.read_again
        indexes.read_again = lambda *given: again_read.append(1) or read_again(*given)
        other = other.selectExpr("id", "IF(id = 501, 'price IS NULL', expr) AS expr")
        is_last_reused = match(offers, other).index.reused
        told = {"executors": n_running, "killed": Path(marker).exists(),
                "again": [lists(each.matches) for each in again],
                "reused": again[0].index.reused, "sent": sent, "changed": changed,
                "sent_later": sent_later, "read again": len(again_read),
                "last reused": is_last_reused}  # fmt: skip
        (work / "classic.json").write_text(json.dumps(told))
        if find_spec("grpc") is not None:
            asked = [sys.executable, __file__, str(work), f"sc://127.0.0.1:{port}"]
            subprocess.run(asked, check=True, timeout=400)
    finally:
        spark.stop()


def connect(work: Path, address: str) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(address).getOrCreate()
    try:
        offers, wishes = frames(spark)
        found = [match(offers, wishes), match(offers, wishes),
                 match(offers, wishes.where("id < 500"), pairs=True)]  # fmt: skip
        pairs: dict[int, list[int]] = {}
        for row in found[2].matches.orderBy("event_id", "subscription_id").collect():
            pairs.setdefault(row.event_id, []).append(row.subscription_id)
        shards = match_sharded(offers, wishes, str(work / "shards"), shards=3)
        kept = match_sharded(offers, wishes, str(work / "shards"), shards=3)
        register_sql(spark)
        offers.createOrReplaceTempView("offers")
        asked = f"SELECT * FROM matchwood_match(TABLE(offers), '{found[0].index.folder}')"
        told = {
            "kind": type(spark).__module__,
            "match": [lists(each.matches) for each in found[:2]],
            "pairs": pairs,
            "errors": [each.errors.count() for each in found],
            "sharded": lists(shards.matches),
            "kept": [kept.reused, lists(kept.matches)],
            "sql": lists(spark.sql(asked)),
        }
        (work / "connect.json").write_text(json.dumps(told))
    finally:
        spark.stop()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        connect(Path(sys.argv[1]), sys.argv[2])
    else:
        classic(Path(sys.argv[1]))
