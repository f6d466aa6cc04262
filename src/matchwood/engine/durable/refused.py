"""Subscriptions of a log that this version refuses: they are set aside, and match nothing.

An earlier version may have taken what is refused now.  Opening leaves such a row out of memory,
says so, and keeps it in the log, with its text, fields, context and place:

    row of the log ── refused when the folder is opened ──► set aside ──┬── replace ──► held
                                                                        └── remove  ──► gone

Each opening tries these rows again.  A checkpoint writes them once more under a number of its own,
so that they stay beyond every checkpoint, for other versions as well.  `meta` of the log lists
their ids: a refusal that is not listed may be one of the order in which the tail was carried out,
and then everything is built anew from the log; one that is listed is known not to be.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from matchwood.engine.collection import Subscription
from matchwood.engine.durable.log import Row
from matchwood.engine.input.fields import attributes_of, moment_of
from matchwood.engine.input.payloads import payload_of

_SHOWN = 5
"""Subscriptions that a warning names."""


class RefusedRow(NamedTuple):
    """A row of the log, and why it is refused."""

    row: Row
    error: Exception


class RefusedSubscription(NamedTuple):
    """The same for users, see `Matcher.refused`."""

    subscription: Subscription
    error: Exception


RefusedRows = Mapping[Any, RefusedRow]
"""By id; never changed."""


def shown(refused: RefusedRow) -> RefusedSubscription:
    """A row as users see it."""
    row = refused.row
    attributes = attributes_of(row.attributes)
    found = Subscription(
        row.id, row.text, row.context, row.priority, payload_of(row.payload),
        dict(attributes) if isinstance(attributes, list) else attributes,
        moment_of(row.expires), moment_of(row.added),
    )  # fmt: skip
    return RefusedSubscription(found, refused.error)


def is_same(before: RefusedRows, each: RefusedRow) -> bool:
    """Whether a row was set aside before, and is as it was."""
    known = before.get(each.row.id)
    return known is not None and known.row == each.row


def warn_of(folder: str, before: RefusedRows, now: RefusedRows, stacklevel: int) -> None:
    """Warn of those that are set aside now and were not before."""
    new = [each for each in now.values() if not is_same(before, each)]
    if not new:
        return
    lines = [f"  {row.id!r}: {row.text[:200]}\n{_indented(error)}" for row, error in new[:_SHOWN]]
    if len(new) > _SHOWN:
        lines.append(f"  and {len(new) - _SHOWN:,} more")
    n = "1 subscription" if len(new) == 1 else f"{len(new):,} subscriptions"
    warnings.warn(
        f"{n} in {folder!r} cannot be used by this version and match nothing; the log keeps them, "
        "see refused(). Give each another expression with replace(id, ...), or remove(id), or "
        "open the folder with a schema= that it fits:\n" + "\n".join(lines),
        RuntimeWarning,
        stacklevel=stacklevel + 1,
    )


def _indented(error: Exception) -> str:
    return textwrap.indent(str(error), " " * 6)
