"""Ids that are given: which are valid, and the errors for those that are not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from matchwood.engine.matches import Id, plain_id, plain_ids
from matchwood.errors import SubscriptionError


def used_id(id_: Any) -> SubscriptionError:
    """The error for an id that a subscription has already."""
    return SubscriptionError(
        f"expected a new id, found {id_!r}, which is taken: use replace() to change it"
    )


def missing(id_: Any) -> SubscriptionError:
    """The error for an id that no subscription has."""
    return SubscriptionError(
        f"expected the id of a subscription, found {id_!r}: no such subscription; "
        "add it first, or use replace()"
    )


def list_of_ids(ids: Any) -> list[Any]:
    """Ids that were given together; SubscriptionError for one alone: letters of a str are ids."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise SubscriptionError(
            f"expected a list of ids, found {type(ids).__name__}: use remove() for one"
        )
    return plain_ids(ids.to_pylist() if hasattr(ids, "to_pylist") else list(ids))


def check_id(id_: Any, what: str = "a subscription's id") -> Id:
    """An id as Python's own int or str; SubscriptionError for anything else."""
    if type(id_) is not int and type(id_) is not str:
        id_ = plain_id(id_)
        if type(id_) is not int and type(id_) is not str:
            raise SubscriptionError(
                f"expected an int or a str as {what}, found {type(id_).__name__} {id_!r}"
            )
    if isinstance(id_, int) and not -(2**63) <= id_ < 2**63:
        raise SubscriptionError(
            f"expected an id of 64 bits, found one of {id_.bit_length() + 1} bits: use a str"
        )
    if isinstance(id_, str) and not id_.isascii():
        try:
            id_.encode()
        except UnicodeEncodeError:
            raise SubscriptionError(
                f"expected an id of Unicode characters, found a lone surrogate in {id_!r}"
            ) from None
    return id_


def are_plain(ids: list[Any]) -> bool:
    """Whether ids are surely valid: all ints of 64 bits, or all ASCII strings."""
    kinds = set(map(type, ids))
    if kinds == {int}:
        return bool(min(ids) >= -(2**63) and max(ids) < 2**63)
    return kinds == {str} and "".join(ids).isascii()
