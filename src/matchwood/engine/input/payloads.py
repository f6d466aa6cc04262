"""Payloads: what users attach to a subscription and get back as it was, kept as JSON text."""

from __future__ import annotations

import json
from typing import Any

from matchwood.errors import SubscriptionError


def payload_text(value: Any) -> str | None:
    """A payload as it is kept; what JSON would change is refused."""
    if value is None:
        return None
    try:
        text = json.dumps(value, allow_nan=False)
        if _is_same(json.loads(text), value):
            return text
        found = f"{str(value)[:60]!r}, which JSON would change"
    except (TypeError, ValueError, RecursionError) as error:
        found = f"what JSON cannot hold: {error}"
    raise SubscriptionError(
        "expected a payload of dict (with str keys), list, str, int, float, bool and None, "
        f"found {found}"
    )


def _is_same(read: Any, given: Any) -> bool:
    """Whether values are equal and of the same types, inside of lists and dicts, too."""
    if type(read) is not type(given):
        return False
    if isinstance(read, dict):
        return read.keys() == given.keys() and all(_is_same(read[k], given[k]) for k in read)
    if isinstance(read, list):
        return all(map(_is_same, read, given))
    return bool(read == given) or read != read


def payload_of(text: str | None) -> Any:
    """The payload of a text that is kept."""
    return None if text is None else json.loads(text)
