"""What commands share: exit codes, where they print, progress.

Results go to stdout; progress and complaints go to stderr, so that `--json` leaves JSON alone on
stdout.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from matchwood.cli.interrupts import check

if TYPE_CHECKING:
    from rich.console import Console

OK, NO, USAGE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141
"""Exit codes: done; something is wrong with expressions, events or answers; wrong call or file;
interrupted; the reader of standard output is gone.
"""

STREAM = "-"
"""Stands for standard input or standard output."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]

Subscriptions = Annotated[
    str, typer.Argument(help="A file of subscriptions, or a snapshot; - is standard input.")
]

SubscriptionId = Annotated[
    str,
    typer.Option(
        "--id",
        help="The subscription; where 7 and '7' are both ids, 7 is the number, '\"7\"' the text.",
        show_default=False,
    ),
]

Event = Annotated[
    str | None,
    typer.Option(help="One event as a JSON object, instead of a file.", show_default=False),
]

Contexts = Annotated[
    str | None,
    typer.Option(
        help="A file of the values of contexts: context and one column per value.",
        show_default=False,
    ),
]

Types = Annotated[Path | None, typer.Option(help="A JSON object: the type of each attribute.")]

Advance = Callable[[int, int | None], None]
"""Called with what is done so far, and the total where it is known."""


def screen() -> Console:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True, emoji=False, markup=False)


def complain(message: str) -> None:
    typer.echo(f"matchwood: {message}", err=True)


def counted(n: int, one: str, many: str = "") -> str:
    """`1 event`, `2 events`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def refuse(message: str) -> NoReturn:
    """Print a message and end the command with the exit code of a wrong call."""
    complain(message)
    raise typer.Exit(USAGE)


def refuse_two_streams(subscriptions: str, events: str | None) -> None:
    """End the command where both are to come from standard input."""
    if subscriptions == events == STREAM:
        refuse("expected one of SUBSCRIPTIONS and EVENTS on standard input, found both")


def note(message: str) -> None:
    """Print a line on standard error that says what is done, and why."""
    typer.echo(f"matchwood: {message}", err=True)


def print_json(value: Any, to_error: bool = False) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=1, default=str)
    # a lone surrogate, escaped
    typer.echo(text.encode(errors="backslashreplace").decode(), err=to_error)


@contextmanager
def progress(what: str) -> Iterator[Advance]:
    """A bar on stderr while the block runs; nothing where stderr is no terminal.

    What it gives raises KeyboardInterrupt where an interrupt was lost.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total: check()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    console = Console(stderr=True)
    columns = (TextColumn(f"{what:<14}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)

        def advance(done: int, total: int | None) -> None:
            check()
            bar.update(task, completed=done, total=total)

        yield advance
