"""`matchwood verify`: do the indexes find what reading every subscription finds?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.screen import NO, STREAM, Contexts, Json, complain, print_json, progress, refuse


def verify(
    subscriptions: Annotated[
        str, typer.Argument(help="A file of subscriptions, or a snapshot; - is standard input.")
    ],
    events: Annotated[
        str, typer.Argument(help="A file of events; - is standard input, as JSON lines.")
    ],
    index: Annotated[str, typer.Option(help="Name of the index to check.")] = "auto",
    contexts: Contexts = None,
    as_json: Json = False,
) -> None:
    """Match all events twice, by indexes and by reading every subscription, and compare.

    Ends with 1 if an answer differs, which is a defect of Matchwood.
    """
    from matchwood.cli.local_search import shaped
    from matchwood.cli.match_job import read_batches
    from matchwood.cli.subscriptions import open_subscriptions

    if subscriptions == events == STREAM:
        refuse("expected one of SUBSCRIPTIONS and EVENTS on standard input, found both")
    matcher, problems = open_subscriptions(subscriptions, index, contexts)
    n_left_out = len(problems)
    found: dict[str, Any] = {"subscriptions": len(matcher), "events": 0, "matches": 0,
                             "difference": None}  # fmt: skip
    with progress("events") as advance:
        for batch in read_batches(events, matcher.text_types()):
            checked = matcher.verify(shaped(batch.events))
            found["matches"] += checked.matches
            n_left_out += len(checked.errors)
            if not checked:
                found |= {"event": found["events"] + checked.events - 1, "difference": str(checked)}
                break
            found["events"] += checked.events
            advance(found["events"], None)
    if as_json:
        print_json(found)
    elif found["difference"] is None:
        typer.echo(
            f"{found['subscriptions']:,} subscriptions, {found['events']:,} events, "
            f"{found['matches']:,} matches: indexes and scan agree"
        )
    if n_left_out:
        complain(f"{n_left_out:,} subscriptions or events were left out: match names them")
    if found["difference"] is not None:
        complain(f"event {found['event']}: {found['difference']}".replace("\n", " "))
        raise typer.Exit(NO)
