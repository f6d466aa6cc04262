"""What the pipeline starts from: files of subscriptions and events, and a snapshot.

A pipeline may not run jobs while it is defined, so the index is built before, in a step of its own.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

import matchwood as mw
from matchwood.workload import find_workload, plain_tables

FOLDER = Path("/tmp/matchwood-pipeline")  # noqa: S108 - an example


def main() -> None:
    workload = find_workload("bookshop", n_subscriptions=2_000, n_events=500)
    FOLDER.mkdir(parents=True, exist_ok=True)
    wishes = plain_tables.texts(workload, 0, 2_000)
    pq.write_table(wishes, FOLDER / "subscriptions.parquet")
    pq.write_table(plain_tables.arrays(workload, 0, 500), FOLDER / "events.parquet")
    matcher = mw.Matcher(schema=workload.schema())
    matcher.add_many(wishes)
    matcher.save(FOLDER / "snapshot")


if __name__ == "__main__":
    main()
