"""`matchwood validate`: parse and type-check expressions without matching anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from matchwood.cli.screen import NO, Json, Types, print_json, refuse


def validate(
    file: Annotated[
        str | None,
        typer.Argument(
            help="One expression per line (.txt), or a table with the columns id and expr; "
            "- is standard input."
        ),
    ] = None,
    expr: Annotated[str | None, typer.Option(help="Check this expression instead.")] = None,
    schema: Types = None,
    as_json: Json = False,
) -> None:
    """Parse and type-check expressions; each error shows its line, its column and a caret.

    An attribute has one type, so expressions of one file are checked against each other too.
    """
    from matchwood.cli.subscriptions import add_rows, read_rows
    from matchwood.engine.formats.files import SubscriptionRows
    from matchwood.engine.matcher import Matcher

    if (file is None) == (expr is None):
        refuse("expected either a FILE (or -) or --expr TEXT")
    matcher = Matcher(schema=read_schema(schema))
    rows = SubscriptionRows([(1, expr)]) if expr is not None else read_rows(str(file))
    errors = add_rows(matcher, rows, "checking")
    source = "standard input" if file == "-" else file or "--expr"
    found = {
        "texts": len(matcher) + len(errors),
        "fine": len(matcher),
        "errors": errors,
        "schema": dict(matcher.schema),
    }
    if as_json:
        print_json(found)
    else:
        _show(source, found)
    if found["errors"]:
        raise typer.Exit(NO)


def read_schema(path: Path | None) -> dict[str, Any] | None:
    """The types of attributes from a JSON file; the command ends if it has no such thing."""
    if path is None:
        return None
    from matchwood.encode.schema import Schema
    from matchwood.errors import SchemaError

    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            Schema(found)
            return found
    except OSError as error:
        refuse(f"cannot read the schema {str(path)!r}: {error.strerror}")
    except ValueError as error:
        refuse(f"expected a JSON object as the schema {str(path)!r}, found no JSON: {error}")
    except SchemaError as error:
        refuse(f"cannot use the schema {str(path)!r}: {error}")
    refuse(f"expected a JSON object as the schema {str(path)!r}, found {type(found).__name__}")


def _show(source: str, found: dict[str, Any]) -> None:
    from matchwood.cli.problems import as_text

    for each in found["errors"]:
        typer.echo(as_text(source, each))
    n, fine = found["texts"], found["fine"]
    typer.echo(f"{n:,} expression{'' if n == 1 else 's'}: {fine:,} fine, {n - fine:,} not")
    types = ", ".join([f"{name} {kind}" for name, kind in found["schema"].items()])
    if types:
        typer.echo(f"attributes: {types}")
