"""`matchwood stats`: what subscriptions hold and how much memory they take."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.screen import Json, print_json, screen


def stats(
    subscriptions: Annotated[
        str,
        typer.Argument(
            help="A folder written by Matcher.save, or a file of subscriptions; "
            "- is standard input."
        ),
    ],
    as_json: Json = False,
) -> None:
    """Show the sizes, the memory and the attributes of a snapshot or of a file."""
    from matchwood.cli.subscriptions import open_subscriptions

    matcher = open_subscriptions(subscriptions).matcher
    found = matcher.stats()
    del found["work"], found["compile_seconds"]  # those of this process, which did nothing yet
    found["schema"] = dict(matcher.schema)
    if as_json:
        print_json(found)
    else:
        _show(found)


def _show(found: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    for name in ("subscriptions", "conjunctions", "trees", "always_true", "never_true"):
        table.add_row(name.replace("_", " "), f"{found[name]:,}")
    table.add_row("distinct predicates", f"{found['predicates']:,}")
    for name, size in found["bytes"].items():
        table.add_row(f"bytes, {name}", f"{size:,}")
    table.add_row("bytes per subscription", f"{found['bytes_per_subscription']:,.1f}")
    table.add_row("index", ", ".join([each["index"] for each in found["indexes"]]))
    screen().print(table)
    types = ", ".join([f"{name} {kind}" for name, kind in found["schema"].items()])
    typer.echo(f"attributes: {types or 'none'}")
