"""Tests over one input that are answered together, not computed one by one.

    memberships     array_contains(tags, 'x'): by the elements of the list
    pattern_tests   name RLIKE 'x[0-9]+': by characters that the patterns require

Those that are TRUE get an entry, the others are left out of the event.  That is right only where
being left out and being FALSE make no difference: where all that is ever asked of the attribute is
whether it is TRUE.  Negations are pushed down to predicates before they are encoded, so the
predicate table tells: an attribute with any other predicate (NOT, IS NULL, IS DISTINCT FROM) is
computed in the ordinary way.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from matchwood.encode.memberships import constants_of, membership
from matchwood.encode.pattern_tests import pattern_of, pattern_tests
from matchwood.encode.predicate_kernels import HIGH
from matchwood.errors import EventError

if TYPE_CHECKING:
    from matchwood.encode.attribute import Attribute
    from matchwood.encode.attributes import Attributes

T = TypeVar("T")

MANY = 16
"""Tests of one input from which on they are answered together.  Fewer are computed one by one, and
counted one by one where values are of another kind.
"""


class Grouped(Protocol):
    """Computed attributes of one input of which it is only asked whether they are TRUE."""

    @property
    def name(self) -> str:
        """The input, as formulas name it."""

    def true_for(
        self, value: Any, attributes: Attributes, problems: list[EventError]
    ) -> Collection[int]:
        """Ids of the attributes that are TRUE for a value of the input."""


def group_tests(attributes: Attributes) -> tuple[list[Grouped], list[Attribute]]:
    """Tests that are answered together, and the computed attributes that are left."""
    every = list(attributes.computed.values())
    by_list: dict[str, list[tuple[Attribute, list[Any]]]] = {}
    by_text: dict[str, list[tuple[Attribute, str]]] = {}
    for attribute in every if len(every) >= MANY and attributes.tested_by is not None else ():
        assert attribute.formula is not None
        tree = attribute.formula.tree
        if (listed := constants_of(tree)) is not None:
            by_list.setdefault(listed[0], []).append((attribute, listed[1]))
        elif (test := pattern_of(tree)) is not None:
            by_text.setdefault(test[0], []).append((attribute, test[1]))
    found: list[Grouped] = []
    grouped: set[int] = set()
    for name, tests in by_list.items():
        if chosen := _chosen(attributes, tests, grouped):
            found.append(membership(name, chosen))
    for name, texts in by_text.items():
        if some := _chosen(attributes, texts, grouped):
            found.append(pattern_tests(name, some))
    return found, [each for each in every if each.id not in grouped]


def _chosen(
    attributes: Attributes, tests: list[tuple[Attribute, T]], grouped: set[int]
) -> list[tuple[Attribute, T]]:
    """The tests of one input that may be answered together; their ids go to `grouped`."""
    if len(tests) < MANY:
        return []
    is_good = _asked_only_true(attributes, [each for each, _ in tests])
    chosen = [test for test, good in zip(tests, is_good, strict=True) if good]
    grouped.update(each.id for each, _ in chosen)
    return chosen


def _asked_only_true(attributes: Attributes, tests: list[Attribute]) -> list[bool]:
    """Whether every predicate on an attribute is that it is TRUE."""
    assert attributes.tested_by is not None
    p = attributes.tested_by.predicates.layout
    used = np.flatnonzero(p.attr[: p.count[HIGH]] >= 0)
    others = used[(p.lo[used] != 1) | (p.hi[used] != 1) | (p.n_intervals[used] != 1)]
    asked_otherwise = set(np.unique(p.attr[others]).tolist())
    return [
        each.kinds.keys() == {"bool"}
        and not each.is_asked
        and each.absence_id < 0
        and each.kinds["bool"].absence_id < 0
        and each.kinds["bool"].id not in asked_otherwise
        for each in tests
    ]
