"""`matchwood duplicates`, `overlaps` and `subsumes`: relations between subscriptions.

`overlaps` and `subsumes` are about one subscription.  Two subscriptions share an event, or one
includes the other, or it is not decided; docs/engine.md says what is.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.screen import (
    NO,
    Json,
    SubscriptionId,
    Subscriptions,
    counted,
    print_json,
    progress,
)


def duplicates(
    subscriptions: Subscriptions,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit with 1 if there are any, or one could not be read."),
    ] = False,
    as_json: Json = False,
) -> None:
    """List the groups of subscriptions whose expressions say the same."""
    from matchwood.cli.subscriptions import open_and_tell

    matcher, n_refused = open_and_tell(subscriptions)
    groups = matcher.duplicates()
    if as_json:
        print_json({"subscriptions": len(matcher), "refused": n_refused, "duplicates": groups})
    else:
        for group in groups:
            typer.echo(" = ".join(map(repr, group)))
        n_more = sum(map(len, groups)) - len(groups)
        typer.echo(f"{counted(len(matcher), 'subscription')}: {n_more:,} could be left out")
    if strict and (groups or n_refused):
        raise typer.Exit(NO)


def overlaps(
    subscriptions: Subscriptions, subscription_id: SubscriptionId, as_json: Json = False
) -> None:
    """List the subscriptions that some event matches together with this one."""
    from matchwood.cli.subscriptions import find_id, open_and_tell

    matcher, n_refused = open_and_tell(subscriptions)
    chosen = find_id(matcher, subscription_id)
    found = matcher.overlaps(chosen)
    if as_json:
        print_json({"subscriptions": len(matcher), "refused": n_refused, "id": chosen,
                    "overlaps": list(found), "unknown": found.unknown})  # fmt: skip
        return
    for each in found:
        typer.echo(f"{chosen!r} overlaps {each!r}")
    _show_unknown(f"{chosen!r} overlaps", found.unknown)
    typer.echo(f"{counted(len(matcher), 'subscription')}: {chosen!r} overlaps {len(found):,}")


def subsumes(
    subscriptions: Subscriptions,
    subscription_id: SubscriptionId,
    other: Annotated[
        str | None,
        typer.Option(help="Tell of this subscription only; all unless given.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell which subscriptions match only events that this one matches, and the reverse.

    With --other: whether this one matches every event that the other matches.
    """
    from matchwood.cli.subscriptions import find_id, open_and_tell

    matcher, n_refused = open_and_tell(subscriptions)
    chosen = find_id(matcher, subscription_id)
    about: dict[str, Any] = {"subscriptions": len(matcher), "refused": n_refused, "id": chosen}
    if other is None:
        found = _inclusions(matcher, chosen)
        if as_json:
            print_json(about | found)
        else:
            _show_inclusions(len(matcher), chosen, found)
        return
    second = find_id(matcher, other)
    truth = matcher.subsumes(chosen, second)
    if as_json:
        print_json(about | {"other": second, "subsumes": truth})
    elif truth is None:
        _show_unknown(f"{chosen!r} subsumes", [second])
    else:
        typer.echo(f"{chosen!r} {'subsumes' if truth else 'does not subsume'} {second!r}")


def _inclusions(matcher: Any, chosen: int | str) -> dict[str, list[Any]]:
    """Both directions for all others; what is undecided in one of them is in `unknown`.

    Of two that include one another some event matches both, unless no event matches one of them.
    """
    found: dict[str, list[Any]] = {"subsumes": [], "subsumed_by": [], "unknown": []}
    related = matcher.overlaps(chosen)
    candidates = {*related, *related.unknown}
    with progress("subscriptions") as advance:
        for number, each in enumerate([id_ for id_ in matcher.ids() if id_ in candidates]):
            truths = matcher.subsumes(chosen, each), matcher.subsumes(each, chosen)
            for name, truth in zip(("subsumes", "subsumed_by"), truths, strict=True):
                if truth:
                    found[name].append(each)
            if None in truths:
                found["unknown"].append(each)
            advance(number + 1, len(candidates))
    return found


def _show_inclusions(n: int, chosen: int | str, found: dict[str, list[Any]]) -> None:
    for each in found["subsumes"]:
        typer.echo(f"{chosen!r} subsumes {each!r}")
    for each in found["subsumed_by"]:
        typer.echo(f"{each!r} subsumes {chosen!r}")
    _show_unknown(f"{chosen!r} subsumes, or is subsumed by,", found["unknown"])
    inside, outside = len(found["subsumes"]), len(found["subsumed_by"])
    of_it = f"{chosen!r} subsumes {inside:,} and is subsumed by {outside:,}"
    typer.echo(f"{counted(n, 'subscription')}: {of_it}")


def _show_unknown(what: str, ids: list[Any]) -> None:
    for each in ids:
        typer.echo(f"not decided: {what} {each!r}")
