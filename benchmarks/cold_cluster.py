"""A cluster of separate executors with empty caches: match, change a subscription, match again.

    python benchmarks/cold_cluster.py WORK --subscriptions 200000

Prints one line of JSON a step: seconds by the clock and of CPU (of all, and by the driver's Python,
its JVM, executors' JVMs, compilers inside of JVMs, and workers), matches, bytes that were sent to
executors, how many subscriptions the index holds, how many kernels were compiled, by the driver and
by all workers, and how much memory of its own the driver's Python took at most to make the index,
beside mapped files.
Ends with an error if a kernel was compiled: the package must bring those of its own sources.
The results of the last step are compared with those of a matcher that has the changed table.
WORK is emptied; it gets the caches, the tables and the lines (cold_cluster.jsonl).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

CHANGED = "price IS NOT NULL"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--subscriptions", type=int, default=200_000)
    parser.add_argument("--events", type=int, default=2_000)
    parser.add_argument("--changes", type=int, default=2, help="one subscription each")
    parser.add_argument("--master", default="local-cluster[2,1,2048]")
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    caches = options.work / "caches"
    caches.mkdir(parents=True)
    os.environ["NUMBA_CACHE_DIR"] = str(caches.resolve())  # before the package is loaded
    if "PYTHONPATH" in os.environ:  # executors run in folders of their own
        paths = os.environ["PYTHONPATH"].split(os.pathsep)
        os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(each).resolve()) for each in paths)
    run(options, caches)


def run(options: argparse.Namespace, caches: Path) -> None:
    import matchwood as mw
    from matchwood.bench.spark_build import OwnMemory
    from matchwood.spark import local_session, match
    from matchwood.spark.executors import bytes_shipped

    ids, texts, events = tables(options)
    passed_on = [name for name in ("PYTHONPATH", "HOME", "NUMBA_CACHE_DIR") if name in os.environ]
    spark = local_session(
        "cold cluster",
        2,
        master=options.master,
        **{
            **{f"spark.executorEnv.{name}": os.environ[name] for name in passed_on},
            "spark.executor.memory": "900m",
            "spark.driver.memory": "1g",
        },
    )
    try:
        offers = spark.read.parquet(f"file://{events}").repartition(4)
        before = 0
        for number, step in enumerate(["cold", "unchanged", *["changed"] * options.changes]):
            if step == "changed":
                texts[len(texts) // number] = CHANGED
            rules = options.work / f"rules-{number}"
            pq.write_table(pa.table({"id": ids, "expr": texts}), rules)
            wishes = spark.read.parquet(f"file://{rules}")
            began, cpu = time.perf_counter(), cpu_by_kind()
            with OwnMemory() as own:
                found = match(offers, wishes)
            ready, cpu_ready = time.perf_counter(), cpu_by_kind()
            rows = found.matches.toArrow()
            done, cpu_done = time.perf_counter(), cpu_by_kind()
            compiled = sorted({file.parent.name for file in caches.rglob("*.nbc")})
            sent = sum(bytes_shipped().values())
            tell(
                options.work,
                step=step,
                index_seconds=round(ready - began, 2),
                match_seconds=round(done - ready, 2),
                index_cpu_seconds=between(cpu, cpu_ready),
                match_cpu_seconds=between(cpu_ready, cpu_done),
                matches=pc.sum(pc.list_value_length(rows["subscription_ids"])).as_py(),
                bytes_sent=sent - before,
                subscriptions=found.index.count,
                reused=found.index.reused,
                kernels_compiled=len(list(caches.rglob("*.nbc"))),
                driver_bytes=own.most,
            )
            before = sent
            if compiled:
                raise SystemExit(
                    "expected kernels of these sources in the package, found that the kernels of "
                    f"{', '.join(compiled)} were compiled: bin/setup, or `matchwood kernels "
                    "--compile --baseline best`, compiles them ahead"
                )
    finally:
        spark.stop()
    matcher = mw.Matcher()
    matcher.add_many(list(zip(ids, texts, strict=True)))
    table = pq.read_table(events)
    expected = matcher.match_many(table.drop_columns(["event_id"])).to_pylist()
    found_lists = dict(
        zip(rows["event_id"].to_pylist(), rows["subscription_ids"].to_pylist(), strict=True)
    )
    is_equal = [found_lists[n] for n in table["event_id"].to_pylist()] == expected
    tell(options.work, step="compared", equal=is_equal)
    if not is_equal:
        raise SystemExit("expected the lists of a matcher with the changed table, found others")


def cpu_by_kind() -> dict[str, float]:
    """CPU seconds of this process and all below it."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            parents[int(folder.name)] = int(_fields(folder / "stat")[1])
    below = {os.getpid()}
    while more := {each for each, parent in parents.items() if parent in below} - below:
        below |= more
    found = dict.fromkeys(
        ("driver", "driver's JVM", "executors", "JVMs' compilers", "workers"), 0.0
    )
    for pid in below:
        with suppress(OSError):
            folder = Path("/proc", str(pid))
            command = (folder / "cmdline").read_bytes()
            seconds = _seconds(folder / "stat")
            kind = "workers" if pid != os.getpid() else "driver"
            if command.partition(b"\0")[0].endswith(b"java"):
                kind = "driver's JVM" if b"SparkSubmit" in command else "executors"
                compilers = _compilers(folder)
                found["JVMs' compilers"] += compilers
                seconds -= compilers
            found[kind] += seconds
    return found


def _compilers(process: Path) -> float:
    seconds = 0.0
    for thread in (process / "task").iterdir():
        with suppress(OSError):
            if "Compile" in (thread / "comm").read_text():
                seconds += _seconds(thread / "stat")
    return seconds


def _seconds(stat: Path) -> float:
    return sum(map(int, _fields(stat)[11:13])) / os.sysconf("SC_CLK_TCK")


def _fields(stat: Path) -> list[str]:
    """The fields after the name, which may have blanks."""
    return stat.read_text().rsplit(")", 1)[1].split()


def between(first: dict[str, float], last: dict[str, float]) -> dict[str, float]:
    found = {kind: round(last[kind] - first[kind], 2) for kind in last}
    return {"all": round(sum(last.values()) - sum(first.values()), 2), **found}


def tell(work: Path, **told: Any) -> None:
    """Print a line, and keep it."""
    print(json.dumps(told), flush=True)
    with (work / "cold_cluster.jsonl").open("a") as lines:
        lines.write(json.dumps(told) + "\n")


def tables(options: argparse.Namespace) -> tuple[list[int], list[str], Path]:
    """Ids and texts of subscriptions, and the file of events."""
    from matchwood.workload.bookshop import Bookshop

    shop = Bookshop(3)
    texts = [shop.subscription() for _ in range(options.subscriptions)]
    made = pa.Table.from_struct_array(pa.array([shop.event() for _ in range(options.events)]))
    events = made.append_column("event_id", pa.array(range(options.events), pa.int64()))
    pq.write_table(events, options.work / "events")
    return list(range(options.subscriptions)), texts, options.work / "events"


if __name__ == "__main__":
    main()
