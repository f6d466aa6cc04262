"""Report: a run as a table for people and as JSON for machines.

A report wraps the plain data of the result file, so a file that was written long ago prints the
same table as on its first day.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from matchwood.bench.kept import KeptRun
from matchwood.bench.results import metrics
from matchwood.errors import FormatError, StorageError

_Cell = Callable[[float], str]


class Report(KeptRun):
    """A finished run of a suite of indexes."""

    @classmethod
    def read(cls, path: Path) -> Report:
        """A report from its file."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise StorageError(f"expected a result file, found {error.strerror}: {path}") from None
        except ValueError:
            data = None
        if not isinstance(data, dict) or data.get("format") != 1:
            raise FormatError(f"expected a result file of format 1, found another: {path}")
        return cls(data, path)

    @property
    def command(self) -> str:
        """What to type to run this again."""
        arguments = self.data["arguments"]
        words = ["matchwood bench run", "--suite", arguments["suite"]]
        words += ["--preset", arguments["preset"]]
        for index in arguments["index"]:
            words += ["--index", f"'{index}'" if " " in index else index]
        if arguments["seed"] is not None:
            words += ["--seed", str(arguments["seed"])]
        return " ".join(words)

    def to_json(self) -> str:
        """Everything that was measured, and the metrics that the table shows."""
        cases = [
            {**case, "indexes": [{**row, "metrics": metrics(row, case)} for row in case["indexes"]]}
            for case in self.data["cases"]
        ]
        return json.dumps({**self.data, "command": self.command, "cases": cases}, indent=1)

    def table(self) -> str:
        """What the screen shows: one row per case and index, and where the rest of time went.

        Plain text as wide as it must be: a terminal that is too narrow hides no number.
        """
        data = self.data
        title = f"suite {data['suite']}, preset {data['preset']}: {data['description']}"
        parts = [self._rows(), self._case_lines(), self._notes(), [""], self._footer()]
        return "\n".join([title, "", *[line for part in parts for line in part]])

    def _rows(self) -> Iterator[str]:
        cases = self.data["cases"]
        shown = [(case, row, metrics(row, case)) for case in cases for row in case["indexes"]]
        columns = [
            each
            for each in _COLUMNS
            if each[1] in _ALWAYS or any(m.get(each[1]) for *_, m in shown)
        ]
        heads = ["case", "index", *[title for title, *_ in columns], "answers"]
        lines = [
            [
                case["label"],
                row["label"],
                *[_cell(found.get(name), shape) for _, name, shape in columns],
                row["answers"],
            ]
            for case, row, found in shown
        ]
        if not any(case["label"] for case in cases):
            heads, lines = heads[1:], [line[1:] for line in lines]
        yield from _aligned(heads, lines)
        yield ""

    def _case_lines(self) -> Iterator[str]:
        for case in self.data["cases"]:
            took = case["seconds"]
            load = ", ".join([f"{name} {took[name]:.2f}" for name in _LOADING if name in took])
            answers = case["answers"]
            yield (
                f"{case['label'] or case['workload']}: "
                f"{case['subscriptions']['total']:,} subscriptions, "
                f"{case['n_predicates']:,} distinct predicates, "
                f"table {case['table_bytes'] / 1e6:,.1f} MB, {case['n_events']:,} events"
            )
            yield (
                f"  {answers['matches'] / max(1, answers['events']):,.1f} matches an event; "
                f"{answers['events']:,} events checked, answers {answers['sha256'][:12]}"
            )
            yield f"  seconds: {load}"

    def _notes(self) -> Iterator[str]:
        seen: dict[str, None] = {}
        for case in self.data["cases"]:
            for row in case["indexes"]:
                if row["note"]:
                    seen[f"{row['label']}: {row['note']}"] = None
        yield from seen

    def _footer(self) -> Iterator[str]:
        data = self.data
        machine, versions = data["machine"], data["versions"]
        software = ", ".join([f"{name} {number}" for name, number in versions.items()])
        yield "spread: (slowest - fastest) / median pass; x scan: times faster than scan"
        yield f"{machine['cpu']}, {machine['cores']} cores"
        yield software
        commit = data["commit"] or "unknown"
        changed = ", changed since" if commit.endswith("+") else ""
        yield f"commit {commit[:12]}{changed}"
        yield f"{data['started'][:10]}, {data['seconds']:.0f} s in all"
        yield f"again: {self.command}"
        if self.path is not None:
            yield f"result: {self.path}"


def _aligned(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns under heads of one or two lines: numbers to the right, words to the left."""
    pairs = [head.split("\n") if "\n" in head else ["", head] for head in heads]
    above, below = zip(*pairs, strict=True)
    rows = [above, below, *lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    words = {i for i, head in enumerate(heads) if head in _WORDS}
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(width) if i in words else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
        if number == 1:
            yield "  ".join(["-" * width for width in widths])


def _significant(value: float) -> str:
    """Three digits, no exponent: 0.0123, 1.23, 123, 12,345."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 2 if abs(value) < 1 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits if abs(value) >= 0.1 else 4}f}"


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _cell(value: float | None, shape: _Cell) -> str:
    return "-" if value is None else shape(value)


_LOADING = ("generate", "read", "resolve", "store", "events", "encode events")
_WORDS = ("case", "index", "answers")
_ALWAYS = ("us_per_event", "spread", "build_seconds", "megabytes", "compile_seconds")

_COLUMNS: tuple[tuple[str, str, _Cell], ...] = (
    ("µs per\nevent", "us_per_event", _significant),
    ("spread", "spread", _percent),
    ("x scan", "times_faster_than_scan", _significant),
    ("tried per\nmatch", "candidates_per_match", _significant),
    ("predicates\nper event", "predicates_per_event", _significant),
    ("nodes per\nevent", "nodes_per_event", _significant),
    ("build\ns", "build_seconds", _significant),
    ("MB", "megabytes", _significant),
    ("compile\ns", "compile_seconds", _significant),
    ("deletes\nper s", "deletes_per_second", _significant),
)
"""Title, metric and shape of each column; those of work are left out where there is none."""
