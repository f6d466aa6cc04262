"""`matchwood import`: rules of other systems as a file of subscriptions."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from matchwood.cli.screen import NO, STREAM, Json, complain, print_json, refuse

if TYPE_CHECKING:
    from matchwood.rules import ImportReport


def import_(
    file: Annotated[
        str, typer.Argument(help="A file of rules; - reads JSON, or lines, from standard input.")
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="eventbridge, mongo, jsonlogic or sql; guessed from the rules unless given.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str,
        typer.Option(help="The file of subscriptions to write; - is standard output, JSON lines."),
    ] = STREAM,
    arrays: Annotated[
        bool,
        typer.Option(
            "--arrays/--no-arrays", help="Whether attributes may hold lists; any element counts."
        ),
    ] = True,
    typed: Annotated[
        bool,
        typer.Option(
            "--typed", help="Values have the type of the constants that they are compared with."
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a rule was refused.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Translate EventBridge patterns, MongoDB queries, JSONLogic or SQL into subscriptions.

    Every text holds for exactly the events of its rule.  A rule that has no such text is refused,
    with the construct and its path.
    """
    from matchwood.errors import SubscriptionError
    from matchwood.rules import import_rules

    try:
        report = import_rules(_read(file), kind, arrays=arrays, typed=typed)
    except SubscriptionError as error:
        refuse(str(error))
    if as_json:
        print_json(report.to_dict())
    if out != STREAM:
        _write(report, Path(out))
    elif not as_json:
        for id_, text in report:
            typer.echo(json.dumps({"id": id_, "expr": text}, ensure_ascii=False))
    for refused in report.errors:
        complain(str(refused))
    if not as_json and out != STREAM:
        typer.echo(f"{len(report):,} subscriptions -> {out}, {len(report.errors):,} refused")
    if strict and report.errors:
        raise typer.Exit(NO)


def _read(file: str) -> Any:
    from matchwood.engine.formats.compressed import open_text
    from matchwood.engine.formats.files import format_of, read_subscriptions
    from matchwood.engine.formats.text_files import csv_rows
    from matchwood.errors import StorageError

    if file == STREAM:
        return _from_text(sys.stdin.read(), "standard input")
    path = Path(file)
    if not path.is_file():
        refuse(f"expected a file, found none at {file!r}")
    kind = format_of(path)
    try:
        if kind == "csv":
            return [row.value for row in csv_rows(path) if row.problem is None]
        if kind in ("json", "text"):
            with open_text(path) as opened:
                return _from_text(opened.read(), file)
    except (OSError, EOFError, UnicodeError) as error:
        raise StorageError(f"cannot read {file!r}: {error}") from None
    return read_subscriptions(path).rows.to_pylist()


def _from_text(text: str, source: str) -> Any:
    """One JSON value, JSON lines, or one rule per line."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or lines[0].lstrip()[0] not in "{[":
        return lines
    try:
        found = json.loads(text)
    except ValueError:
        try:
            return [json.loads(line) for line in lines]
        except ValueError as error:
            refuse(f"expected JSON, or an object per line, in {source!r}, found neither: {error}")
    return found if isinstance(found, list) or not _is_row(found) else [found]


def _is_row(found: dict[str, Any]) -> bool:
    from matchwood.rules.reading import IDS, RULES

    return any(key in found for key in IDS) and any(key in found for key in RULES)


def _write(report: ImportReport, path: Path) -> None:
    from matchwood.engine.formats.compressed import is_compressed, open_text_to_write
    from matchwood.engine.formats.files import format_of
    from matchwood.errors import StorageError

    kind = format_of(path)
    try:
        if kind in ("parquet", "arrow", "text"):
            refuse(f"expected subscriptions as .csv or .jsonl, found {str(path)!r}")
        with open_text_to_write(path, path.suffix.lower() if is_compressed(path) else "") as file:
            if kind == "csv":
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(["id", "expr"])
                writer.writerows(report)
            else:
                for id_, text in report:
                    file.write(json.dumps({"id": id_, "expr": text}, ensure_ascii=False) + "\n")
    except OSError as error:
        raise StorageError(f"cannot write {str(path)!r}: {error}") from None
