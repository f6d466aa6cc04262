"""`matchwood explain`: why a subscription matches an event, or why it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from matchwood.cli.screen import Contexts, Json, Types, print_json, refuse
from matchwood.cli.validate import read_schema

if TYPE_CHECKING:
    from matchwood.engine.matcher import Matcher


def explain(
    event: Annotated[str, typer.Option(help="The event as a JSON object.")],
    subscriptions: Annotated[
        str | None,
        typer.Option(help="A file of subscriptions, or a snapshot; - is standard input."),
    ] = None,
    subscription_id: Annotated[
        str | None, typer.Option("--id", help="The subscription to explain.")
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
    from matchwood.engine.formats.text_files import with_moments
    from matchwood.engine.matcher import Matcher

    if (expr is None) == (subscriptions is None) or (subscriptions is None) != (
        subscription_id is None
    ):
        refuse("expected either --expr TEXT, or both --subscriptions FILE and --id ID")
    values = _read_event(event)
    if expr is not None:
        matcher = Matcher(schema=read_schema(schema))
        matcher.add("--expr", expr)
        chosen: int | str = "--expr"
    else:
        assert subscriptions is not None
        from matchwood.cli.subscriptions import open_subscriptions

        matcher = open_subscriptions(
            subscriptions, contexts=contexts, schema=read_schema(schema)
        ).matcher
        chosen = _find_id(matcher, str(subscription_id))
    found = matcher.explain(chosen, with_moments(values, matcher.text_types()))
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(str(found))


def _read_event(text: str) -> dict[str, Any]:
    from matchwood.engine.formats.text_files import read_json

    try:
        event = read_json(text)
    except ValueError as error:
        refuse(f"expected a JSON object as --event, found no JSON: {error}")
    if not isinstance(event, dict):
        refuse(f"expected a JSON object as --event, found {type(event).__name__}")
    return event


def _find_id(matcher: Matcher, text: str) -> int | str:
    """An id as it was typed, or as the whole number that it reads as."""
    if text not in matcher and text.lstrip("-").isdecimal() and int(text) in matcher:
        return int(text)
    return text
