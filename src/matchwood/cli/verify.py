"""`matchwood verify`: do the indexes find what reading every subscription finds?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from matchwood.cli.screen import NO, Json, complain, print_json, progress, refuse


def verify(
    subscriptions: Annotated[str, typer.Argument(help="A file of subscriptions, or a snapshot.")],
    events: Annotated[str, typer.Argument(help="A file of events.")],
    index: Annotated[str, typer.Option(help="Name of the index to check.")] = "auto",
    as_json: Json = False,
) -> None:
    """Match all events twice, by indexes and by reading every subscription, and compare.

    Ends with 1 if an answer differs, which is a defect of Matchwood.
    """
    from matchwood.cli.explain import is_snapshot, open_matcher
    from matchwood.engine.files import read_events

    if is_snapshot(Path(subscriptions)) and index != "auto":
        refuse("expected no --index beside a snapshot: it has its own")
    matcher = open_matcher(Path(subscriptions), index=index)
    found: dict[str, Any] = {"subscriptions": len(matcher), "events": 0, "matches": 0,
                             "difference": None}  # fmt: skip
    with progress("events") as advance:
        for batch in read_events(events, matcher.schema):
            checked = matcher.verify(batch.events)
            found["matches"] += checked.matches
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
    if found["difference"] is not None:
        complain(f"event {found['event']}: {found['difference']}".replace("\n", " "))
        raise typer.Exit(NO)
