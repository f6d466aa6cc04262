"""`matchwood verify`: do the indexes find what reading every subscription finds?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import typer

from matchwood.cli.screen import (
    NO,
    Contexts,
    Json,
    Subscriptions,
    complain,
    print_json,
    progress,
    refuse_two_streams,
)


def verify(
    subscriptions: Subscriptions,
    events: Annotated[
        str, typer.Argument(help="A file of events; - is standard input, as JSON lines.")
    ],
    index: Annotated[str, typer.Option(help="Name of the index to check.")] = "auto",
    sample: Annotated[
        int | None,
        typer.Option(
            min=1, help="Only so many events, drawn from all of them.", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of --sample; another one, other events.")] = 0,
    contexts: Contexts = None,
    as_json: Json = False,
) -> None:
    """Match events twice, by indexes and by reading every subscription, and compare.

    Ends with 1 if an answer differs, which is a defect of Matchwood.
    """
    from matchwood.cli.local_search import shaped
    from matchwood.cli.subscriptions import open_subscriptions

    refuse_two_streams(subscriptions, events)
    matcher, problems = open_subscriptions(subscriptions, index, contexts)
    n_left_out = len(problems)
    found: dict[str, Any] = {"subscriptions": len(matcher), "events": 0, "read": 0,
                             "matches": 0, "difference": None}  # fmt: skip
    with progress("events") as advance:
        for batch, numbers, n_read in _batches(events, matcher.text_types(), sample, seed, advance):
            found["read"] = n_read
            checked = matcher.verify(shaped(batch))
            found["matches"] += checked.matches
            n_left_out += len(checked.errors)
            if checked.difference is not None:
                number = int(numbers[checked.events - 1])
                difference = replace(checked.difference, number=number)
                found |= {"event": number, "difference": str(difference)}
                break
            found["events"] += checked.events
            if sample is None:
                advance(found["events"], None)
    if as_json:
        print_json(found)
    elif found["difference"] is None:
        typer.echo(
            f"{found['subscriptions']:,} subscriptions, {_compared(found, sample)} events, "
            f"{found['matches']:,} matches: indexes and scan agree"
        )
    if n_left_out:
        complain(f"{n_left_out:,} subscriptions or events were left out: match names them")
    if found["difference"] is not None:
        complain(found["difference"].replace("\n", " "))
        raise typer.Exit(NO)


def _compared(found: dict[str, Any], sample: int | None) -> str:
    return f"{found['events']:,}" + ("" if sample is None else f" of {found['read']:,}")


def _batches(
    events: str, types: dict[str, str], sample: int | None, seed: int, advance: Any
) -> Iterator[tuple[Any, Any, int]]:
    """Events to compare, their numbers, and how many were read so far; a sample after all."""
    from matchwood.cli.event_sample import EventSample
    from matchwood.cli.match_job import read_batches

    n_read = 0
    drawn = None if sample is None else EventSample(sample, seed)
    for batch in read_batches(events, types):
        first, n_read = n_read, n_read + len(batch.events)
        if drawn is None:
            yield batch.events, range(first, n_read), n_read
        else:
            drawn.add(batch)
            advance(n_read, None)
    if drawn is not None:
        for some, numbers in drawn.batches():
            yield some, numbers, n_read
