"""`matchwood verify`: does the index find what reading every subscription finds?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.screen import NO, Json, complain, print_json, progress, refuse

_SHOWN = 10


def verify(
    subscriptions: Annotated[str, typer.Argument(help="A file of subscriptions.")],
    events: Annotated[str, typer.Argument(help="A file of events.")],
    index: Annotated[str, typer.Option(help="Name of the index to check.")] = "auto",
    as_json: Json = False,
) -> None:
    """Match all events twice, by an index and by reading every subscription, and compare.

    Ends with 1 if an answer differs, which is a defect of Matchwood.
    """
    from pathlib import Path

    from matchwood.cli.explain import is_snapshot
    from matchwood.engine.files import read_events, read_subscriptions
    from matchwood.engine.matcher import Matcher

    if is_snapshot(Path(subscriptions)):
        refuse("expected a file of subscriptions, found a snapshot: verify what it was made of")
    rows = read_subscriptions(subscriptions).rows
    matcher, plain = Matcher(index=index), Matcher(index="scan")
    matcher.add_many(rows)
    plain.add_many(rows)
    found: dict[str, Any] = {"subscriptions": len(matcher), "events": 0, "bad": 0, "matches": 0,
                             "different": 0, "differences": []}  # fmt: skip
    with progress("events") as advance:
        for batch in read_events(events, matcher.schema):
            _compare(matcher.match_many(batch.events), plain.match_many(batch.events), found)
            advance(found["events"], None)
    if as_json:
        print_json(found)
    else:
        typer.echo(
            f"{found['subscriptions']:,} subscriptions, {found['events']:,} events, "
            f"{found['bad']:,} bad, {found['matches']:,} matches, "
            f"{found['different']:,} events with differences"
        )
    if found["differences"]:
        complain(f"event {found['differences'][0]['event']}: answers differ; please report it")
        raise typer.Exit(NO)


def _compare(found: Any, expected: Any, report: dict[str, Any]) -> None:
    for number, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if ours == theirs:
            continue
        report["different"] += 1
        if len(report["differences"]) < _SHOWN:
            report["differences"].append(
                {"event": report["events"] + number, "found": ours, "expected": theirs}
            )
    report["events"] += len(found)
    report["bad"] += len(found.errors)
    report["matches"] += len(found.ids)
