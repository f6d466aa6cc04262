"""`matchwood demo`: the main job, end to end, on a generated bookshop."""

from __future__ import annotations

from typing import Annotated

import typer

from matchwood.cli.screen import NO, Json, complain, print_json, refuse, screen
from matchwood.cli.spark_session import Master


def demo(
    subscriptions: Annotated[int, typer.Option(min=1, help="How many subscriptions.")] = 100_000,
    events: Annotated[int, typer.Option(min=1, help="How many events.")] = 200_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same workload.")] = 1,
    local: Annotated[
        bool, typer.Option("--local", help="In this process, without Spark; SQLite checks.")
    ] = False,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Match a bookshop's offers with its readers' wishes on Spark, check the answers, show figures.

    A sample of the answers is compared with what Spark SQL says about the same texts.
    """
    from matchwood.cli import demo_job, demo_report, demo_spark

    if local and master is not None:
        refuse("expected --master without --local: it is Spark's")
    show = screen()
    judge = "SQLite" if local else "Spark SQL"
    if not as_json:
        demo_report.introduce(show, subscriptions, events, judge)
    if local:
        found = demo_job.run(subscriptions, events, seed)
    else:
        found = demo_spark.run(subscriptions, events, seed, master)
    if as_json:
        print_json(found.to_dict())
    else:
        demo_report.report(show, found)
    if found.check["differences"]:
        complain(f"answers differ from {judge}'s: this is a defect, please report it with the seed")
        raise typer.Exit(NO)
