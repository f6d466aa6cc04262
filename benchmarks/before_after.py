"""Two versions of the package side by side: build, batch, one event, one change of a context.

    python benchmarks/before_after.py both BEFORE/src AFTER/src before.json after.json --suite vcr
    PYTHONPATH=AFTER/src python benchmarks/before_after.py run after.json --index agile
    python benchmarks/before_after.py compare before.json after.json

`both` starts `run` for each case and each version in turn, some times over, keeps the least of each
figure and prints the table.  Rows of other cases that the files have already stay, so one suite can
be measured after the other, or one case again; files of other versions are refused.  `run` measures
the version that PYTHONPATH names, through public names only.  Each case is warmed up on a part of
its workload first, so that nothing is compiled while it is measured.  Times are CPU time of the
process and its children, the least of some rounds; events are distinct dicts.  `compare` prints a
table and fails where the versions give other answers: the checksum covers the ids of every event,
in order, from the batch and from single calls.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import matchwood
from matchwood import Matcher
from matchwood.workload import Workload, event_dicts, find_workload

SUITES = {
    "betree": (
        (("be_tree",), ("begen:small", "ads:small"), 1.0),
        (("scan", "k_index", "gryphon", "counting", "propagation"), ("begen:small",), 0.1),
    ),
    "pstree": (
        (("pst_bloom", "pst_hash"), ("begen:small", "ads:small"), 1.0),
        (("op_index",), ("begen:small",), 0.1),
    ),
    "vcr": ((("vcr", "r_tree"), ("skew2d:figure-6a",), 1.0),),
    "atree": (
        (("a_tree",), ("abegen:small",), 1.0),
        (("bop", "bdd", "dewey_id", "interval_id"), ("abegen:small",), 0.1),
    ),
    "agile": (
        (("agile",), ("context:small",), 1.0),
        (("eager", "partial", "no_index", "translation", "gbu"), ("context:small",), 0.1),
    ),
}
"""Indexes and workloads, with the share of the workload's subscriptions: less for baselines."""

CASES = {
    f"{index} {workload}": (suite, share)
    for suite, parts in SUITES.items()
    for indexes, workloads, share in parts
    for index in indexes
    for workload in workloads
}

FIGURES = ("build", "batch", "single", "change")
N_EVENTS, BUILDS, ROUNDS, N_CHANGES = 200, 2, 5, 200
WARM_UP = 2_000


def cpu() -> float:
    """Seconds of CPU time of this process and of children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def least(rounds: int, call: Callable[[], Any]) -> tuple[float, Any]:
    """The least CPU time of some calls, and what the last returned."""
    times, found = [], None
    for _ in range(rounds):
        begin = cpu()
        found = call()
        times.append(cpu() - begin)
    return min(times), found


def build(index: str, workload: Workload) -> Matcher:
    n = workload.n_subscriptions
    m = Matcher(index, schema=workload.schema())
    contexts = getattr(workload, "contexts", None)
    if contexts is not None:
        m.set_context_many(contexts(0, n))
    report = m.add_many(workload.subscriptions(0, n))
    if report.errors:
        raise SystemExit(f"{index}: {len(report.errors)} subscriptions were refused")
    return m


def with_ids(matches: Any) -> Any:
    """Matches whose ids have been looked up: some versions do that when they are first read."""
    len(matches.ids)
    return matches


def checksum(offsets: np.ndarray, ids: np.ndarray) -> int:
    return zlib.crc32(np.asarray(ids, np.int64).tobytes(), zlib.crc32(offsets.tobytes()))


def measure(index: str, workload: Workload) -> dict[str, Any]:
    """One row: microseconds a subscription, an event and a change; the checksum of the answers."""
    n = workload.n_subscriptions
    seconds, m = least(BUILDS, lambda: build(index, workload))
    row: dict[str, Any] = {"n": n, "build": seconds / n * 1e6}
    events = event_dicts(workload.events(0, N_EVENTS), 0, N_EVENTS)
    seconds, many = least(ROUNDS, lambda: with_ids(m.match_many(events)))
    row["batch"] = seconds / N_EVENTS * 1e6
    seconds, single = least(ROUNDS, lambda: [m.match(event) for event in events])
    row["single"] = seconds / N_EVENTS * 1e6
    row["matches"] = len(many.ids)
    row["checksum"] = checksum(many.offsets, many.ids)
    offsets = np.cumsum([0, *map(len, single)])
    if checksum(offsets, np.array([each for ids in single for each in ids])) != row["checksum"]:
        raise SystemExit(f"{index}: single events and a batch give other answers")
    if hasattr(workload, "updates"):
        row["change"] = changes(m, workload)
        row["checksum"] = zlib.crc32(
            str(m.match_many(events).ids.tolist()).encode(), row["checksum"]
        )
    return row


def changes(m: Matcher, workload: Any) -> float:
    """Microseconds for one `set_context` of those that the workload names."""
    profile, attribute, move = workload.updates(0, N_CHANGES)
    values = workload.values(0, workload.n_subscriptions)
    bound = workload.is_bound(0, workload.n_subscriptions)
    rows = [
        (int(i), {workload.names[a]: float(workload.quantised(values[i, a] + by))})
        for i, a, by in zip(profile, attribute, move, strict=True)
        if bound[i]
    ]
    seconds, _ = least(ROUNDS, lambda: [m.set_context(*row) for row in rows])
    return seconds / len(rows) * 1e6


def chosen(suite: str, index: str) -> list[str]:
    """Cases of a suite (all if there is no name) that begin so."""
    return [case for case in CASES if suite in ("", CASES[case][0]) and case.startswith(index)]


def read(out: Path, version: str) -> dict[str, Any]:
    """The rows that a file has already; a file of another version is refused."""
    if not out.exists():
        return {}
    found = json.loads(out.read_text())
    if found["version"] != version:
        raise SystemExit(f"{out} has rows of {found['version']}, not of {version}: remove it")
    rows: dict[str, Any] = found["rows"]
    return rows


def write(out: Path, version: str, rows: dict[str, Any]) -> None:
    ordered = {case: rows[case] for case in CASES if case in rows}
    out.write_text(json.dumps({"version": version, "rows": ordered}, indent=1))


def run(out: Path, cases: list[str], part: float) -> None:
    version = str(Path(matchwood.__file__).parents[1])
    rows = read(out, version)
    for case in cases:
        index, name = case.split(" ")
        whole = find_workload(name, n_events=N_EVENTS)
        n = int(whole.n_subscriptions * part * CASES[case][1])
        begin = time.monotonic()
        measure(index, whole.with_parameters(n_subscriptions=min(n, WARM_UP)))
        warm = time.monotonic()
        rows[case] = measure(index, whole.with_parameters(n_subscriptions=n))
        print(
            f"{case}: warm-up {warm - begin:.0f} s, then {time.monotonic() - warm:.0f} s",
            rows[case], flush=True,
        )  # fmt: skip
        write(out, version, rows)


def both(sources: list[Path], outs: list[Path], cases: list[str], part: float, rounds: int) -> int:
    """Measure two versions in turn, each case in a process of its own; print the table."""
    versions = [str(each.resolve()) for each in sources]
    kept = [read(*each) for each in zip(outs, versions, strict=True)]
    for case in cases:
        found: list[list[dict[str, Any]]] = [[], []]
        for turn in range(2 * rounds):
            side = turn & 1
            row = run_aside(sources[side], case, part)
            if row is None:
                print(f"{case}: {sources[side]} cannot run it", file=sys.stderr)
                break
            found[side].append(row)
        for side, rows in enumerate(found):
            if len(rows) < rounds:
                continue
            if len({row["checksum"] for row in rows}) > 1:
                raise SystemExit(f"{case}: {sources[side]} gives other answers in another run")
            least_of = {each: min(row[each] for row in rows) for each in FIGURES if each in rows[0]}
            kept[side][case] = rows[0] | least_of
            write(outs[side], versions[side], kept[side])
    return compare(*outs)


def run_aside(source: Path, case: str, part: float) -> dict[str, Any] | None:
    """The row of a case, measured in a process that has that source; None if it fails."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "row.json"
        command = [sys.executable, __file__, "run", str(out), "--index", case, "--part", str(part)]
        environment = {**os.environ, "PYTHONPATH": str(source.resolve())}
        if subprocess.run(command, env=environment, check=False).returncode:
            return None
        row: dict[str, Any] = json.loads(out.read_text())["rows"][case]
        return row


def compare(before: Path, after: Path) -> int:
    """Print the table; 1 if any answers differ."""
    old, new = (json.loads(path.read_text())["rows"] for path in (before, after))
    print("| case | subscriptions | matches an event | what | before, µs | after, µs | ratio |")
    print("|---|---|---|---|---|---|---|")
    wrong = 0
    for case in old.keys() & new.keys():
        if old[case]["checksum"] != new[case]["checksum"]:
            print(f"{case}: other answers: {old[case]} {new[case]}", file=sys.stderr)
            wrong = 1
    for case in [case for case in old if case in new]:
        a, b = old[case], new[case]
        head = f"| {case} | {a['n']:,} | {a['matches'] / N_EVENTS:,.0f} |"
        for what in FIGURES:
            if what in a and what in b:
                ratio = b[what] / a[what]
                print(f"{head} {what} | {a[what]:,.1f} | {b[what]:,.1f} | {ratio:.2f} |")
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    runs, boths = verbs.add_parser("run"), verbs.add_parser("both")
    runs.add_argument("out", type=Path)
    boths.add_argument("sources", type=Path, nargs=2, help="folders that hold the package")
    boths.add_argument("outs", type=Path, nargs=2, help="files for the rows of each version")
    boths.add_argument("--rounds", type=int, default=2, help="processes for each case and version")
    for each in (runs, boths):
        each.add_argument("--suite", default="", choices=("", *SUITES), help="only its cases")
        each.add_argument("--index", default="", help="only cases that begin so")
        each.add_argument("--part", type=float, default=1.0, help="share of the subscriptions")
    compares = verbs.add_parser("compare")
    compares.add_argument("before", type=Path)
    compares.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.verb == "compare":
        sys.exit(compare(given.before, given.after))
    cases = chosen(given.suite, given.index)
    if given.verb == "both":
        sys.exit(both(given.sources, given.outs, cases, given.part, given.rounds))
    run(given.out, cases, given.part)
