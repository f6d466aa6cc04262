"""`matchwood match`: subscriptions and events from files or a pipe, matches to a file or a pipe."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.match_choice import SPARK_OPTIONS, choose
from matchwood.cli.screen import NO, Contexts, Json, complain, note, print_json, refuse, screen
from matchwood.cli.spark_session import Master


def match(
    rules_file: Annotated[
        str | None,
        typer.Argument(metavar="SUBSCRIPTIONS", help="As --subscriptions.", show_default=False),
    ] = None,
    events_file: Annotated[
        str | None,
        typer.Argument(metavar="EVENTS", help="As --events.", show_default=False),
    ] = None,
    subscriptions: Annotated[
        str | None,
        typer.Option(
            help="A file with id and expr, or a snapshot; - is standard input.", show_default=False
        ),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(
            help="A file of events, one per row; - is standard input, as JSON lines.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str,
        typer.Option(
            help="Where to write matches to, a folder on Spark; replaced if there. "
            "- is standard output, as JSON lines."
        ),
    ] = "-",
    local: Annotated[
        bool, typer.Option("--local", help="Match in this process, however much it is.")
    ] = False,
    spark: Annotated[
        bool, typer.Option("--spark", help="Match on Spark, however little it is.")
    ] = False,
    index: Annotated[str, typer.Option(help="Name of the index to use.")] = "auto",
    lists: Annotated[
        bool | None,
        typer.Option(
            "--lists/--pairs",
            help="One row per event, or one row per match, which is the default.",
            show_default=False,
        ),
    ] = None,
    count: Annotated[
        bool, typer.Option("--count", help="One row per event: how many subscriptions match.")
    ] = False,
    exists: Annotated[
        bool, typer.Option("--exists", help="One row per event: whether a subscription matches.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a subscription or event was bad.")
    ] = False,
    snapshots: Annotated[
        str | None,
        typer.Option(
            help="Spark: a folder that keeps indexes, for the next call.", show_default=False
        ),
    ] = None,
    times: Annotated[
        str | None,
        typer.Option(
            help="Spark: a folder for the times of tasks, which workers can write to; "
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
    where: Annotated[
        str | None,
        typer.Option(
            help="Only subscriptions for whose own attributes this expression is TRUE.",
            show_default=False,
        ),
    ] = None,
    payload: Annotated[
        bool, typer.Option("--payload", help="Write the payload of the subscription to every pair.")
    ] = False,
    contexts: Contexts = None,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Find every match of every event and write it.

    Small files are matched in this process, large ones on Spark where it is installed; a line on
    standard error says which.  The ending of each name tells its format: .parquet .arrow .csv .json
    .jsonl, the last three also with .gz or .zst.  Subscriptions and events that cannot be used are
    left out and described in OUT.errors.jsonl.
    """
    rules = _one_of("SUBSCRIPTIONS", rules_file, "--subscriptions", subscriptions)
    source = _one_of("EVENTS", events_file, "--events", events)
    shape = _shape(lists, count, exists, limit, payload)
    for_spark = {"--master": master, "--snapshots": snapshots, "--times": times}
    wanted = [name for name in SPARK_OPTIONS if for_spark[name] is not None]
    choice = choose(rules, source, out, local, spark, wanted, payload)
    if choice.is_spark:
        from matchwood.cli import match_spark

        match_spark.check(rules, source, out, shape, contexts)
        note(f"matching on Spark: {choice.reason}")
        asked = {"index": index, "snapshots": snapshots, "limit": limit}
        found = match_spark.run(rules, source, out, shape, master, asked, contexts, times, where)
    else:
        from matchwood.cli import match_job

        note(f"matching in this process: {choice.reason}")
        options = match_job.Asked(index, shape, limit, where, contexts, payload)
        found = match_job.run(rules, source, out, options)
    _conclude(found, out, as_json)
    if strict and found["problems"]:
        raise typer.Exit(NO)


def _one_of(position: str, first: str | None, option: str, second: str | None) -> str:
    if (first is None) == (second is None):
        found = "neither" if first is None else "both"
        refuse(f"expected {position} or {option}, found {found}")
    return str(first if second is None else second)


def _shape(lists: bool | None, count: bool, exists: bool, limit: int | None, payload: bool) -> str:
    """What a row is, one of `result_files.PAIRS` and the others; ends the command if unclear."""
    given = {"pairs": lists is False, "lists": lists is True, "count": count, "exists": exists}
    wanted = [name for name, is_given in given.items() if is_given] or ["pairs"]
    shape = wanted[0]
    if len(wanted) > 1:
        names = " and ".join([f"--{name}" for name in wanted])
        refuse(f"expected one of --pairs, --lists, --count and --exists, found {names}")
    if payload and shape != "pairs":
        refuse(f"expected --payload with pairs, found --{shape}: leave one out")
    if limit is not None and (count or exists):
        refuse(f"expected --limit with pairs or lists, found --{shape}: leave one out")
    return shape


def _conclude(found: dict[str, Any], out: str, as_json: bool) -> None:
    """The closing lines; on standard error where matches are on standard output."""
    if out == "-":
        if as_json:
            print_json(found, to_error=True)
        else:
            n_left_out = found["subscriptions"]["refused"] + found["events"]["bad"]
            if n_left_out:
                complain(f"{n_left_out:,} subscriptions or events were left out")
    elif as_json:
        print_json(found)
    else:
        _show(found)


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
