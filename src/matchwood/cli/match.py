"""`matchwood match`: subscriptions and events from files, matches to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from matchwood.cli.screen import NO, Json, print_json, refuse, screen
from matchwood.cli.spark_session import Master


def match(
    subscriptions: Annotated[
        str, typer.Option(help="A file with the columns id and expr, or a snapshot.")
    ],
    events: Annotated[str, typer.Option(help="A file of events, one per row.")],
    out: Annotated[
        str, typer.Option(help="Where to write matches to, a folder on Spark; replaced if there.")
    ],
    local: Annotated[
        bool, typer.Option("--local", help="Match in this process, without Spark.")
    ] = False,
    index: Annotated[str, typer.Option(help="Name of the index to use.")] = "auto",
    lists: Annotated[
        bool,
        typer.Option("--lists/--pairs", help="One row per event, or one row per match."),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a subscription or event was bad.")
    ] = False,
    snapshots: Annotated[
        str | None,
        typer.Option(help="A folder that keeps indexes, for the next call.", show_default=False),
    ] = None,
    times: Annotated[
        str | None,
        typer.Option(
            help="A folder for the times of Spark's tasks, which workers can write to; "
            "shows where their time went.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="At most so many subscriptions an event, those of the highest priority.",
            show_default=False,
        ),
    ] = None,
    contexts: Annotated[
        str | None,
        typer.Option(
            help="A file of the values of contexts: context and one column per value.",
            show_default=False,
        ),
    ] = None,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Find every match of every event, on Spark, and write it to files.

    The ending of each name tells its format: .parquet .arrow .csv .json .jsonl.  Subscriptions and
    events that cannot be used are left out and described in OUT.errors.jsonl.
    """
    if local:
        from matchwood.cli import match_job

        if any(each is not None for each in (master, snapshots, times, limit, contexts)):
            refuse(
                "expected --limit, --contexts, --master, --snapshots and --times without --local: "
                "they are Spark's"
            )
        found = match_job.run(Path(subscriptions), Path(events), Path(out), index, lists)
    else:
        from matchwood.cli import match_spark

        asked = {"index": index, "snapshots": snapshots, "limit": limit}
        found = match_spark.run(subscriptions, events, out, lists, master, asked, contexts, times)
    if as_json:
        print_json(found)
    else:
        _show(found)
    if strict and found["problems"]:
        raise typer.Exit(NO)


def _show(found: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for justify in ("left", "right", "left", "right", "right"):
        table.add_column(justify=justify)
    for name, bad in (("subscriptions", "refused"), ("events", "bad")):
        part = found[name]
        table.add_row(
            name,
            f"{part['used']:,}",
            f"{part[bad]:,} {bad}",
            f"{part['seconds']:.2f} s",
            f"{part['per_second']:,.0f}/s",
        )
    table.add_row("matches", f"{found['matches']:,}", f"-> {found['out']}")
    if found["problems"]:
        table.add_row("problems", f"{found['problems']:,}", f"-> {found['errors']}")
    screen().print(table)
    if found.get("workers"):
        typer.echo(f"workers: {_shares(found['workers'])}")
    if found["compile_seconds"]:
        typer.echo(
            f"compiling, once per installation: {found['compile_seconds']:.1f} s, not counted"
        )


def _shares(seconds: dict[str, float]) -> str:
    """Where the time of Python workers went, in the order in which a batch is worked on."""
    from matchwood.spark.worker import LAPS

    total = sum(seconds.values())
    parts = [f"{what} {100 * seconds.get(lap, 0.0) / total:.1f} %" for lap, what in LAPS.items()]
    return f"{total:.1f} s, of which " + ", ".join(parts)
