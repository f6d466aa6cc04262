"""A matcher of the subscriptions that a command is given: a file, a stream or a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from matchwood.cli.field_texts import typed_rows
from matchwood.cli.problems import Problem, subscription_problems
from matchwood.cli.screen import STREAM, complain, counted, progress, refuse
from matchwood.cli.standard_input import standard_input
from matchwood.engine.formats.files import (
    SubscriptionRows,
    read_contexts,
    read_stream_subscriptions,
    read_subscriptions,
)
from matchwood.engine.formats.text_files import read_json
from matchwood.engine.matcher import Matcher
from matchwood.engine.matches import Id
from matchwood.errors import EventError, SubscriptionError


class Opened(NamedTuple):
    """A matcher, and the subscriptions that were left out."""

    matcher: Matcher
    problems: list[Problem]


def open_subscriptions(
    source: str, index: str = "auto", contexts: str | None = None, schema: Any = None
) -> Opened:
    """A matcher of a snapshot, a file, a folder of files, or standard input.

    contexts  a file of the values of contexts
    """
    path = Path(source)
    is_empty = path.is_dir() and not any(path.iterdir())
    if source != STREAM and (is_snapshot(path) or is_empty):  # empty: the error says what one has
        if index != "auto":
            refuse("expected no --index with a snapshot, which has an index already")
        matcher, problems = Matcher.load(path), []
    else:
        matcher = Matcher(index=index, schema=schema)
        problems = add_rows(matcher, read_rows(source), "subscriptions")
    if contexts is not None:
        _set_contexts(matcher, contexts)
    return Opened(matcher, problems)


def open_and_tell(source: str, contexts: str | None = None) -> tuple[Matcher, int]:
    """A matcher, and how many subscriptions were left out, which standard error says, too."""
    matcher, problems = open_subscriptions(source, contexts=contexts)
    if problems:
        complain(f"{counted(len(problems), 'subscription')} left out: validate names them")
    return matcher, len(problems)


def find_id(matcher: Matcher, text: str) -> Id:
    """The id that a text names; SubscriptionError if no subscription has it.

    As JSON, which is how `match` prints ids, if there is such an id: 7 is the number, "7" in its
    quotes the text.  Else the text as it is.
    """
    try:
        read = read_json(text)
    except (ValueError, RecursionError):
        read = text
    for id_ in (read, text):
        if type(id_) in (int, str) and id_ in matcher:
            found: Id = id_
            return found
    raise SubscriptionError(f"expected the id of a subscription, found {text!r}: there is none")


def is_snapshot(path: Path) -> bool:
    return (path / "manifest.json").is_file()


def read_rows(source: str) -> SubscriptionRows:
    """The rows of a file, a folder of files, or standard input."""
    if source == STREAM:
        with standard_input() as file:
            return read_stream_subscriptions(file)
    return read_subscriptions(source)


def add_rows(matcher: Matcher, rows: SubscriptionRows, what: str) -> list[Problem]:
    """Add rows with their fields; returns a problem for every row that was left out."""
    typed, problems = typed_rows(rows)
    with progress(what) as advance:
        refused = matcher.add_many(typed.rows, progress=advance).errors
    found = problems + subscription_problems(typed, refused)
    return sorted(found, key=lambda each: (each.get("file_line", 0), each["row"]))


def _set_contexts(matcher: Matcher, path: str) -> None:
    ids, values = read_contexts(path)
    seen: set[Any] = set()
    for id_ in ids:
        if id_ in seen:
            raise EventError(f"expected every context once, found {id_!r} again in {path!r}")
        seen.add(id_)
    matcher.set_context_many(values)
