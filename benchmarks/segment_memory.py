"""The memory of the task that builds one segment of an index.

    python benchmarks/segment_memory.py WORK --subscriptions 1500000

Texts of the bookshop are written to Parquet files and built as one segment on local[2].  Meanwhile
/proc is read, many times a second, for every Python worker.  Prints one line of JSON: the most
bytes that a worker had in memory (`peak`), the most that were no mapped files (`anonymous`), the
same of the JVM, and seconds.  WORK is emptied.
"""

from __future__ import annotations

import argparse
import json
import shutil
import threading
import time
from pathlib import Path

EVERY = 0.05
"""Seconds between two looks."""


class Look:
    """The most memory that processes had, by whether they are Python workers."""

    def __init__(self) -> None:
        self.most: dict[str, dict[str, int]] = {"worker": {}, "jvm": {}}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Look:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(EVERY):
            for folder in processes():
                self._note(folder)

    def _note(self, folder: Path) -> None:
        try:
            command = (folder / "cmdline").read_bytes()
            lines = (folder / "status").read_text().splitlines()
        except OSError:
            return  # it has ended meanwhile
        kind = "worker" if b"pyspark.daemon" in command else "jvm" if b"java" in command else None
        if kind is None:
            return
        found = {name: int(line.split()[1]) * 1024 for line in lines
                 for name in ("VmHWM", "RssAnon") if line.startswith(name + ":")}  # fmt: skip
        most = self.most[kind]
        for name, size in found.items():
            most[name] = max(most.get(name, 0), size)


def processes() -> list[Path]:
    """Folders of the processes below this one."""
    import os

    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text()
        except OSError:
            continue
        parents[int(folder.name)] = int(text.rsplit(")", 1)[1].split()[1])
    below = {os.getpid()}
    while more := {each for each, parent in parents.items() if parent in below} - below:
        below |= more
    return [Path(f"/proc/{each}") for each in below - {os.getpid()}]


def main() -> None:
    from matchwood.spark import local_session, read_workload
    from matchwood.spark.indexes import build_index

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--subscriptions", type=int, default=1_500_000)
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    spark = local_session("segment memory", 2)
    try:
        made = read_workload(
            spark, "bookshop", "subscriptions", subscriptions=options.subscriptions, form="texts"
        )
        texts = f"file://{(options.work / 'texts').resolve()}"
        made.write.parquet(texts)
        began = time.perf_counter()
        with Look() as look:
            built = build_index(spark.read.parquet(texts), snapshots=str(options.work / "indexes"))
        seconds = time.perf_counter() - began
        segments = [each for each in (built.folder / "segments").iterdir() if each.is_dir()]
        print(
            json.dumps(
                {
                    "subscriptions": built.count,
                    "segments": len(segments),
                    "segment_bytes": sum(
                        f.stat().st_size for f in built.folder.rglob("*") if f.is_file()
                    ),
                    "worker_peak": look.most["worker"].get("VmHWM"),
                    "worker_anonymous": look.most["worker"].get("RssAnon"),
                    "jvm_peak": look.most["jvm"].get("VmHWM"),
                    "seconds": round(seconds, 1),
                }
            ),
            flush=True,
        )
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
