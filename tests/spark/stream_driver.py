"""A driver to be killed: runs the stream of a folder, and ends itself at a point if told to.

python stream_driver.py WORK [POINT NTH]     a log with contexts if there is a file WORK/contexts;
                                             events beside a table of rules if there is WORK/rules,
                                             in so many shards as WORK/shards says;
                                             out and state on the store that WORK/store names
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from matchwood.spark import local_session, match_live, match_stream
from matchwood.spark.stores import inside
from matchwood.spark.streams import heartbeat, live
from matchwood.spark.streams import match_stream as stream_module

EVERY = 1.0
"""Seconds between heartbeats of a driver whose state is on a store."""


def main(work: Path, point: str = "", nth: str = "1") -> None:
    calls = {"left": int(nth)}

    def reached(where: str) -> None:
        if where == point:
            calls["left"] -= 1
            if calls["left"] == 0:
                os.killpg(0, signal.SIGKILL)  # Python and the JVM, at once

    stream_module.reached = live.reached = reached
    heartbeat.EVERY = EVERY
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from spark.sessions import CHEAP_SESSION

    spark = local_session("killed", **{"spark.driver.memory": "1g", **CHEAP_SESSION})
    try:
        query = started(spark, work)
        (work / "started").touch()
        query.awaitTermination()
        (work / "finished").touch()
    finally:
        spark.stop()


def started(spark, work: Path):
    """The stream of a folder, on any session."""
    from spark import context_logs, logs

    if (work / "rules").exists():
        return beside_rules(spark, work)
    kind = context_logs if (work / "contexts").exists() else logs
    out, state, options = folders(work)
    return match_stream(
        kind.read_log(spark, work / "log"), out, state, snapshot_every=3,
        trigger={"availableNow": True}, schema=getattr(kind, "TYPES", None), **options,
    )  # fmt: skip


def folders(work: Path) -> tuple[str, str, dict[str, str]]:
    """Where output and state are, and the checkpoint if it is elsewhere."""
    if not (work / "store").exists():
        return str(work / "out"), str(work / "state"), {}
    address = (work / "store").read_text()
    return (
        inside(address, "out"), inside(address, "state"),
        {"checkpoint": f"file://{work}/checkpoint"},
    )  # fmt: skip


def beside_rules(spark, work: Path):
    """Events of a folder, a file a micro-batch, beside the table of rules as it is then."""
    reader = spark.readStream.schema("event_id BIGINT, a BIGINT, b BIGINT")
    events = reader.option("maxFilesPerTrigger", 1).json(str(work / "events"))
    rules, shards = str(work / "rules"), work / "shards"
    return match_live(
        events, lambda session: session.read.schema("id BIGINT, expr STRING").json(rules),
        str(work / "out"), str(work / "state"), trigger={"availableNow": True},
        shards=int(shards.read_text()) if shards.exists() else None,
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
