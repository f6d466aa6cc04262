"""`matchwood demo`: the main job, end to end, on a generated bookshop."""

from __future__ import annotations

from typing import Annotated

import typer

from matchwood.cli.screen import NO, Json, complain, print_json, screen


def demo(
    subscriptions: Annotated[int, typer.Option(min=1, help="How many subscriptions.")] = 100_000,
    events: Annotated[int, typer.Option(min=1, help="How many events.")] = 10_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same workload.")] = 1,
    as_json: Json = False,
) -> None:
    """Match a bookshop's offers with its readers' wishes, check the answers, show figures."""
    from matchwood.cli import demo_job, demo_report

    show = screen()
    if not as_json:
        demo_report.introduce(show, subscriptions, events)
    found = demo_job.run(subscriptions, events, seed)
    if as_json:
        print_json(found.to_dict())
    else:
        demo_report.report(show, found)
    if found.check["differences"]:
        complain("answers differ from SQLite's: this is a defect, please report it with the seed")
        raise typer.Exit(NO)
