"""Where to match: in this process, or on Spark."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from matchwood.cli.screen import STREAM, refuse, refuse_two_streams

SPARK_FROM = 2**30
"""Bytes of subscriptions and events from which Spark is worth its start: a gibibyte."""

SPARK_OPTIONS = ("--master", "--snapshots", "--times")
_ARROW = (".arrow", ".feather", ".ipc")


class Choice(NamedTuple):
    is_spark: bool
    reason: str


def choose(
    subscriptions: str, events: str, out: str, local: bool, spark: bool, wanted: list[str],
    payload: bool = False,
) -> Choice:  # fmt: skip
    """Local, unless Spark is asked for or the files are large.

    wanted   options that only Spark has
    payload  whether payloads are written, which Spark does not do
    """
    refuse_two_streams(subscriptions, events)
    others = ", ".join((["--spark"] if spark else []) + wanted)
    if local:
        if others:
            refuse(f"expected {others} without --local: it is Spark's")
        return Choice(False, "--local")
    here = only_local(subscriptions, events, out)
    if here is None and payload:
        here = "--payload is given"
    if others:
        if here:
            refuse(f"expected files that Spark takes, but {here}: leave out {others}")
        return Choice(True, others)
    if here:
        return Choice(False, here)
    remote = [path for path in (subscriptions, events, out) if "://" in path]
    if remote:
        return Choice(True, f"{remote[0]} is no path of this machine")
    size = sum(map(_size, (subscriptions, events)))
    if size < SPARK_FROM:
        return Choice(False, f"{_shown(size)} to read, Spark is for {_shown(SPARK_FROM)} and more")
    if not has_spark():
        return Choice(False, "Spark is not installed")
    return Choice(True, f"{_shown(size)} to read")


def only_local(subscriptions: str, events: str, out: str) -> str | None:
    """What Spark does not take; None where it takes everything."""
    if STREAM in (subscriptions, events):
        return "standard input is read"
    if out == STREAM:
        return "standard output is written"
    found = [path for path in (events, out) if Path(path).suffix.lower() in _ARROW]
    return f"{found[0]} is an Arrow file" if found else None


def has_spark() -> bool:
    return find_spec("pyspark") is not None


def _size(path: str) -> int:
    """Bytes of a file, or of all files in a folder; 0 where there is none."""
    source = Path(path)
    files = [each for each in source.rglob("*") if each.is_file()] if source.is_dir() else [source]
    return sum(each.stat().st_size for each in files if each.exists())


def _shown(size: int) -> str:
    for unit, bytes_ in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= bytes_:
            return f"{size / bytes_:,.1f} {unit}".replace(".0 ", " ")
    return f"{size} bytes"
