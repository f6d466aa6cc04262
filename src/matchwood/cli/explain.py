"""`matchwood explain`: why a subscription matches an event, or why it does not."""

from __future__ import annotations

from typing import Annotated

import typer

from matchwood.cli.screen import Contexts, Json, Types, print_json, refuse
from matchwood.cli.validate import read_schema


def explain(
    event: Annotated[str, typer.Option(help="The event as a JSON object.")],
    subscriptions: Annotated[
        str | None,
        typer.Option(help="A file of subscriptions, or a snapshot; - is standard input."),
    ] = None,
    subscription_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="The subscription to explain; where 7 and '7' are both ids, 7 is the number, "
            "'\"7\"' the text.",
        ),
    ] = None,
    expr: Annotated[
        str | None, typer.Option(help="An expression, instead of a file and an id.")
    ] = None,
    schema: Types = None,
    contexts: Contexts = None,
    as_json: Json = False,
) -> None:
    """Show TRUE, FALSE or UNKNOWN for every part of an expression, and why it does not match.

    Dates and timestamps are written as text in the event.
    """
    from matchwood.cli.given_events import read_event, typed_event
    from matchwood.engine.matcher import Matcher

    if (expr is None) == (subscriptions is None) or (subscriptions is None) != (
        subscription_id is None
    ):
        refuse("expected either --expr TEXT, or both --subscriptions FILE and --id ID")
    values = read_event(event)
    if expr is not None:
        matcher = Matcher(schema=read_schema(schema))
        matcher.add("--expr", expr)
        chosen: int | str = "--expr"
    else:
        assert subscriptions is not None
        from matchwood.cli.subscriptions import find_id, open_subscriptions

        matcher = open_subscriptions(
            subscriptions, contexts=contexts, schema=read_schema(schema)
        ).matcher
        chosen = find_id(matcher, str(subscription_id))
    found = matcher.explain(chosen, typed_event(matcher, values))
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(str(found))
