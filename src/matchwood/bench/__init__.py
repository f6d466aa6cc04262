"""Benchmarks: suites as data, answers checked before a time is kept, one table and one JSON file.

    list_suites()                        name, description and presets of each
    report = run_suite("scan", "smoke")  runs it and writes the JSON file
    report.table()                       for the screen
    report.to_json()                     for machines

docs/benchmarks.md tells how to read the table and how to add a suite or a workload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matchwood.bench.report import Report
from matchwood.bench.suite import Suite, find_suite, list_suites

if TYPE_CHECKING:
    from matchwood.index.core.protocol import Index

__all__ = ["Report", "Suite", "find_suite", "list_suites", "run_suite"]


def run_suite(
    name: str | Suite,
    preset: str,
    out: Path | None = None,
    progress: Callable[[str, int, int], Any] | None = None,
    only_indexes: Sequence[str] | None = None,
    seed: int | None = None,
    extra_indexes: Mapping[str, type[Index]] | None = None,
) -> Report:
    """Run a suite; raises WrongAnswers, a MatchwoodError, when an index disagrees with scan.

    name           a suite, its name, or the path of a .toml file
    preset         how much of it: `smoke` takes seconds, `small` minutes
    out            where the JSON goes: a file that ends in .json, or a folder; bench-results/
                   unless given
    progress       called with (what was done, steps done, steps in all)
    only_indexes   labels or names of indexes; all unless given
    seed           of the workloads; theirs unless given
    extra_indexes  classes by name, in addition to those of the registry
    """
    from matchwood.bench.runner import run_suite as run

    return run(name, preset, out, progress, only_indexes, seed, extra_indexes)
