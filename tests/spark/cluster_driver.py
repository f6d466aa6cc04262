"""A driver for a cluster of separate executor processes; one of them is killed during the job.

python cluster_driver.py WORK
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa

from matchwood.spark import local_session, match
from matchwood.workload.bookshop import Bookshop


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


def main(work: Path) -> None:
    shop = Bookshop(3)
    texts = [shop.subscription() for _ in range(1000)]
    events = [shop.event() for _ in range(200)]
    path = os.environ["PYTHONPATH"]
    spark = local_session(
        "cluster",
        2,
        master="local-cluster[2,1,2048]",
        **{
            "spark.executorEnv.PYTHONPATH": path,
            "spark.executor.memory": "900m",
            "spark.driver.memory": "1g",
        },
    )
    try:
        wishes = spark.createDataFrame(pa.table({"id": list(range(1000)), "expr": texts}))
        table = pa.Table.from_struct_array(pa.array(events)).append_column(
            "event_id", pa.array(range(200), pa.int64())
        )
        offers = spark.createDataFrame(table).repartition(4)
        marker = str(work / "killed")
        hurt = offers.mapInArrow(kill_once(marker), offers.schema)
        found = match(hurt, wishes)
        found.matches.write.parquet(str(work / "matches"))
        pids = spark.sparkContext.parallelize(range(4), 4).map(lambda _: os.getppid()).collect()
        (work / "facts").write_text(f"{len(set(pids))} {Path(marker).exists()}")
    finally:
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
