"""A driver for a cluster of separate executor processes that must not compile anything.

python kernels_driver.py WORK
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa

from matchwood.spark import local_session, match
from matchwood.workload.bookshop import Bookshop


def main(work: Path) -> None:
    shop = Bookshop(3)
    passed_on = ("PYTHONPATH", "HOME", "NUMBA_CACHE_DIR")
    spark = local_session(
        "cluster",
        2,
        master="local-cluster[2,1,2048]",
        **{
            **{f"spark.executorEnv.{name}": os.environ[name] for name in passed_on},
            "spark.executor.memory": "900m",
            "spark.driver.memory": "1g",
        },
    )
    try:
        texts = [shop.subscription() for _ in range(1000)]
        wishes = spark.createDataFrame(pa.table({"id": list(range(1000)), "expr": texts}))
        events = pa.Table.from_struct_array(pa.array([shop.event() for _ in range(200)]))
        table = events.append_column("event_id", pa.array(range(200), pa.int64()))
        found = match(spark.createDataFrame(table).repartition(4), wishes)
        found.matches.write.parquet(str(work / "matches"))
    finally:
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
