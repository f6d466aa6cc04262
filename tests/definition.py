"""What a matcher has to find by the definition of correct (`naive`), contexts included.

An index may not be the judge of contexts: `scan` leaves them to `agile`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matchwood as mw
from naive import flatten, in_context, matches


def by_definition(m: mw.Matcher, event: Mapping[str, Any]) -> list[Any]:
    """The ids of all subscriptions that hold for an event, each of them evaluated."""
    values = {id_: m.context(id_) for id_ in m.context_ids()}
    return [
        id_
        for id_, each in m.items()
        if matches(m.expression(id_), in_context(flatten(event), values.get(each.context, {})))
    ]
