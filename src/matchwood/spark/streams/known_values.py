"""Known values of a context, by dotted name, with {} for each object: what updates do to them.

An object is there once one of its fields is set, and stays when they are absent again; None for it
makes all of its fields absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matchwood.context.objects import objects_above


def with_objects(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted name, and {} for each object that they make present."""
    known = dict(values)
    for name in values:
        for above in objects_above(name):
            known.setdefault(above, {})
    return known


def undoing(values: Mapping[str, Any], known: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Updates that undo one which finds known values.

    Objects are emptied and filled again: their fields go with them, and make them present.
    """
    is_nested = any("." in name or isinstance(known.get(name), Mapping) for name in values)
    steps = [{name: known.get(name) for name in values}]
    if is_nested:
        tops = {name.partition(".")[0] for name in values}
        fields = {n: value for n, value in known.items() if n.partition(".")[0] in tops}
        steps = [dict.fromkeys(tops), dict.fromkeys(values), fields]
    return [each for each in steps if each]


def note(values: Mapping[str, Any], known: dict[str, Any]) -> None:
    """Carry out an update on known values."""
    for name, value in values.items():
        if value is not None:
            known[name] = value
            for above in objects_above(name):
                known.setdefault(above, {})
        elif isinstance(known.pop(name, None), Mapping):
            for field in [each for each in known if each.startswith(f"{name}.")]:
                del known[field]
