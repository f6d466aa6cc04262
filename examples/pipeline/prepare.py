"""What the pipeline starts from: files of subscriptions and events, a snapshot, and its settings.

    python examples/pipeline/prepare.py
    cd examples/pipeline && spark-pipelines run --spec spark-pipeline.yml

A pipeline may not run jobs while it is defined, so the index is built before, in a step of its own.
Its settings are written here because Spark wants the storage as an absolute path.

Spark's own catalog lasts as long as a run, the files of its tables (spark-warehouse) last longer,
and a second run would stumble over them: they are removed here.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq

import matchwood as mw
from matchwood.workload import find_workload, plain_tables

HERE = Path(__file__).resolve().parent
SPEC = """\
# A declarative pipeline: subscriptions and events as tables, matches as a materialised view.
name: matchwood_example
storage: {storage}
catalog: spark_catalog
database: default
libraries:
  - glob:
      include: transformations/**
"""


def main() -> None:
    data = HERE / "data"
    shutil.rmtree(HERE / "spark-warehouse", ignore_errors=True)
    data.mkdir(exist_ok=True)
    workload = find_workload("bookshop", n_subscriptions=2_000, n_events=500)
    wishes = plain_tables.texts(workload, 0, 2_000)
    pq.write_table(wishes, data / "subscriptions.parquet")
    pq.write_table(plain_tables.arrays(workload, 0, 500), data / "events.parquet")
    matcher = mw.Matcher(schema=workload.schema())
    matcher.add_many(wishes)
    matcher.save(data / "snapshot")
    storage = (data / "storage").as_uri()
    (HERE / "spark-pipeline.yml").write_text(SPEC.format(storage=storage))


if __name__ == "__main__":
    main()
