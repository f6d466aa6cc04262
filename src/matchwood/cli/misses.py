"""`matchwood near` and `matchwood why-not`: which subscriptions just miss an event, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from matchwood.cli.screen import (
    Contexts,
    Event,
    Json,
    SubscriptionId,
    Subscriptions,
    complain,
    counted,
    print_json,
    refuse,
    refuse_two_streams,
)

Events = Annotated[
    str | None,
    typer.Argument(
        help="A file of events; - is standard input, as JSON lines.", show_default=False
    ),
]


def near(
    subscriptions: Subscriptions,
    events: Events = None,
    event: Event = None,
    limit: Annotated[
        int, typer.Option(min=1, help="At most so many an event, those of the highest priority.")
    ] = 10,
    as_json: Json = False,
) -> None:
    """Find the subscriptions that miss an event by one predicate, and that predicate.

    Subscriptions with a context are left out.
    """
    one = _one_event(subscriptions, events, event)
    from matchwood.cli.subscriptions import open_and_tell

    matcher, n_refused = open_and_tell(subscriptions)

    def ask(values: Any) -> dict[str, Any]:
        found = matcher.near(values, limit)
        return {"near": [
            {"id": miss.id, "missing": str(miss.missing), "found": miss.found} for miss in found
        ]}  # fmt: skip

    rows, n_bad = _answers(matcher, events, one, ask)
    if as_json:
        about = {"subscriptions": len(matcher), "refused": n_refused, "bad": n_bad}
        print_json(about | {"events": rows})
        return
    for row in rows:
        for miss in row["near"]:
            lacks = f"{miss['id']!r} lacks {miss['missing']}: {miss['found']}"
            typer.echo(_of_event(row, one) + lacks)
    n_misses = sum([len(row["near"]) for row in rows])
    typer.echo(
        f"{counted(len(matcher), 'subscription')}, {counted(len(rows), 'event')}: "
        f"{counted(n_misses, 'near miss', 'near misses')}"
    )


def why_not(
    subscriptions: Subscriptions,
    subscription_id: SubscriptionId,
    events: Events = None,
    event: Event = None,
    contexts: Contexts = None,
    as_json: Json = False,
) -> None:
    """Tell why a subscription does not match events: the fewest predicates that fail.

    `explain` shows every part of the expression for one event.
    """
    one = _one_event(subscriptions, events, event)
    from matchwood.cli.subscriptions import find_id, open_and_tell

    matcher, _ = open_and_tell(subscriptions, contexts)
    chosen = find_id(matcher, subscription_id)

    def ask(values: Any) -> dict[str, Any]:
        reasons = matcher.why_not(chosen, values)
        return {"matches": not reasons, "reasons": reasons}

    rows, n_bad = _answers(matcher, events, one, ask)
    if as_json:
        print_json({"id": chosen, "bad": n_bad, "events": rows})
        return
    for row in rows:
        for reason in row["reasons"]:
            typer.echo(_of_event(row, one) + reason)
    n_matches = sum([row["matches"] for row in rows])
    typer.echo(f"{chosen!r} matches {n_matches:,} of {counted(len(rows), 'event')}")


def _one_event(subscriptions: str, events: str | None, event: str | None) -> dict[str, Any] | None:
    """The event of `--event`, None if there is a file; before anything else is read."""
    if (events is None) == (event is None):
        found = "neither" if event is None else "both"
        refuse(f"expected either EVENTS (or -) or --event JSON, found {found}")
    refuse_two_streams(subscriptions, events)
    from matchwood.cli.given_events import read_event

    return None if event is None else read_event(event)


def _answers(
    matcher: Any, events: str | None, one: Any, ask: Callable[[Any], dict[str, Any]]
) -> tuple[list[dict[str, Any]], int]:
    """The answer for every event, with its id or number, and how many could not be read."""
    from matchwood.cli.given_events import numbered_events, typed_event
    from matchwood.errors import EventError

    if one is not None:
        return [{"event": one.get("event_id", 0)} | ask(typed_event(matcher, one))], 0
    rows, n_bad = [], 0
    for name, values in numbered_events(matcher, str(events)):
        try:
            rows.append({"event": name} | ask(values))
        except EventError:
            n_bad += 1
    if n_bad:
        complain(f"{counted(n_bad, 'event')} left out: match names them")
    return rows, n_bad


def _of_event(row: dict[str, Any], one: Any) -> str:
    """What tells one event of many."""
    return "" if one is not None else f"event {row['event']!r}: "
