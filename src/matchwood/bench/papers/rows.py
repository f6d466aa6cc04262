"""Rows: the result file of a run, one JSON line for every number that was measured.

The first line, and one more for every time a run is resumed, says what the rows need to be
understood (`kind = "run"`); all others are rows (`kind = "row"`).  A row is written when it is
done, so a run that was interrupted goes on where it stopped.  A row belongs to its definition:
settings, workload and limits as a hash.  A row whose definition has changed since is measured
again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from matchwood.errors import FormatError, StorageError

FORMAT = 1
MEASURED, REFUSED, WRONG = "measured", "refused", "wrong"
"""What became of a row; a refused one has its reason and is a labelled point."""

Row = dict[str, Any]


class Results:
    """The rows of one file."""

    def __init__(self, path: Path | None, runs: list[Row], rows: list[Row]) -> None:
        self.path = path
        self.runs = runs
        self._rows = {_key(row): row for row in rows}

    @property
    def commits(self) -> str:
        """The commits whose rows these are: a file may go on with another one."""
        return ", ".join(sorted({(each["commit"] or "unknown")[:12] for each in self.runs}))

    @classmethod
    def read(cls, path: Path) -> Results:
        """All rows of a file; the last line may be half, from a run that was killed."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise StorageError(f"expected a result file, found {error.strerror}: {path}") from None
        data = [each for number, line in enumerate(lines, 1) if (each := _line(path, number, line,
                len(lines)))]  # fmt: skip
        runs = [each for each in data if each.get("kind") == "run"]
        if not runs or runs[0].get("format") != FORMAT:
            raise FormatError(
                f"expected a result file of the suite papers, format {FORMAT}, found none: {path}"
            )
        return cls(path, runs, [each for each in data if each.get("kind") == "row"])

    @classmethod
    def begin(cls, path: Path, run: Mapping[str, Any]) -> Results:
        """Open a file to add to: a new one, or one that the same preset and seed began."""
        head = {"kind": "run", "format": FORMAT, **run}
        found = cls.read(path) if path.exists() else cls(path, [], [])
        for name in ("preset", "seed"):
            if found.runs and found.runs[0].get(name) != head.get(name):
                raise FormatError(
                    f"{path}: expected results of {name} {head.get(name)!r}, found those of "
                    f"{found.runs[0].get(name)!r}: choose another file with --out"
                )
        found.runs.append(head)
        found._write(head)
        return found

    @property
    def preset(self) -> str:
        return str(self.runs[0]["preset"])

    @property
    def suite(self) -> str:
        return str(self.runs[0]["suite"])

    def add(self, row: Row) -> None:
        """Keep a row and write it at once."""
        self._rows[_key(row)] = row
        self._write({"kind": "row", **row})

    def find(self, case: str, point: int, series: str) -> Row | None:
        return self._rows.get((case, point, series))

    def done(self, case: str, point: int, series: str, definition: str) -> Row | None:
        """A row that need not be measured again."""
        row = self.find(case, point, series)
        return row if row and row["definition"] == definition and row["state"] != WRONG else None

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def _write(self, data: Mapping[str, Any]) -> None:
        assert self.path is not None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            torn = self.path.exists() and self.path.read_bytes()[-1:] not in (b"", b"\n")
            with self.path.open("a", encoding="utf-8") as file:
                file.write(("\n" if torn else "") + json.dumps(data) + "\n")
        except OSError as error:
            raise StorageError(
                f"expected a result file that can be written, found {error.strerror}: {self.path}"
            ) from None


def definition(data: Mapping[str, Any]) -> str:
    """A short hash of what a row measures."""
    text = json.dumps(data, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _key(row: Row) -> tuple[str, int, str]:
    return row["case"], row["point"], row["series"]


def _line(path: Path, number: int, line: str, n_lines: int) -> Row | None:
    try:
        data = json.loads(line)
    except ValueError:
        if number == n_lines or number > 1:
            return None  # half a line: its row is measured again
        raise FormatError(f"{path}: expected JSON lines, found {line[:40]!r}") from None
    return data if isinstance(data, dict) else None
