"""Memberships: `array_contains(tags, 'x')` of many constants, found by the elements of the list.

Each constant is a computed attribute of its own, so that two of them in one subscription are two
conditions.  Computing all of them for every event would cost as much as there are constants.  Here
a hash table leads from an element of the event's list to the attributes that are TRUE; the others
are left out of the event.

That is right only where being left out and being FALSE make no difference: where all that is ever
asked of the attribute is whether it is TRUE.  Negations are pushed down to predicates before they
are encoded, so the predicate table tells: an attribute with any other predicate (NOT, IS NULL, IS
DISTINCT FROM) is computed in the ordinary way.

Hashed are the constants that Python's equality compares as Spark does: strings, and whole numbers
that doubles hold.  A list with other elements (dates, decimals, lists) is computed in the ordinary
way, and of that only what is TRUE is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from matchwood.encode.computed import GivenInputs, KnownValues, compute
from matchwood.encode.predicate_kernels import HIGH
from matchwood.errors import EventError
from matchwood.lang.functions.evaluate import PATH, plain_input
from matchwood.lang.functions.types import TypeProblem
from matchwood.lang.scalars import Attr, Call, Lit, Scalar

if TYPE_CHECKING:
    from matchwood.encode.attribute import Attribute
    from matchwood.encode.attributes import Attributes

MANY = 16
"""Tests of one list from which on they are answered by its elements.  Fewer are computed one by
one, and counted one by one where elements are of another kind.
"""

_EXACT = 2**53  # whole numbers up to here are doubles


class Membership(NamedTuple):
    """The constants that are looked for in one list."""

    name: str
    """The attribute that holds the list; with keys of maps behind it, as inputs of a formula."""
    label: str
    by_constant: dict[Any, list[int]]
    """Ids of the attributes that are TRUE when the list has this element."""
    attributes: list[Attribute]
    """All of them, for values that have to be computed."""
    has_texts: bool
    has_numbers: bool

    def true_for(
        self, value: Any, attributes: Attributes, problems: list[EventError]
    ) -> Iterable[int]:
        """Ids of the attributes that are TRUE for the value of the list.

        Elements of another kind than some constants are counted once, for the list.
        """
        if value is None:
            return ()
        if type(value) is not list:
            try:
                value = plain_input(value)
            except TypeProblem:
                return self._computed(value, attributes, problems)
            if type(value) is not list:
                return self._computed(value, attributes, problems)
        ids: dict[int, None] = {}
        is_other = False
        for each in value:
            kind = type(each)
            if kind is str:
                is_other = is_other or self.has_numbers
            elif kind is int or kind is float:
                is_other = is_other or self.has_texts
            elif each is None:
                continue
            else:
                return self._computed(value, attributes, problems)
            for id_ in self.by_constant.get(each, ()):
                ids[id_] = None
        if is_other:
            attributes.unknown[self.label] += 1
        return ids

    def _computed(
        self, value: Any, attributes: Attributes, problems: list[EventError]
    ) -> list[int]:
        """The same for a value that is no list, or one with elements that are not hashed."""
        found = []
        inputs = GivenInputs({self.name: value})
        for attribute in self.attributes:
            try:
                if compute(attributes, attribute, inputs) is True:
                    found.append(attribute.kinds["bool"].id)
            except EventError as error:
                problems.append(error)
        return found


class Computing(NamedTuple):
    """How the computed attributes of an event are found."""

    key: tuple[int, int]
    """What it was made from: the changes of the attributes and of the predicate table."""
    ordinary: list[Attribute]
    memberships: list[Membership]
    known: list[KnownValues]
    """Of each ordinary one: what its values before became."""
    absences: list[Attribute]
    """Of computed attributes, those of which it is asked whether they are NULL."""


def computing(attributes: Attributes) -> Computing:
    """How computed attributes are found, made again when something has changed since."""
    table = attributes.tested_by
    key = (attributes.changes, -1 if table is None else table.n_encoded)
    found: Computing | None = attributes.computing
    if found is None or found.key != key:
        found = attributes.computing = _made(attributes, key)
    return found


def _made(attributes: Attributes, key: tuple[int, int]) -> Computing:
    every = list(attributes.computed.values())
    by_list: dict[str, list[tuple[Attribute, list[Any]]]] = {}
    for attribute in every if len(every) >= MANY and attributes.tested_by is not None else ():
        assert attribute.formula is not None
        test = _membership(attribute.formula.tree)
        if test is not None:
            by_list.setdefault(test[0], []).append((attribute, test[1]))
    memberships = []
    hashed: set[int] = set()
    for name, tests in by_list.items():
        if len(tests) < MANY:
            continue
        is_asked_only_true = _asked_only_true(attributes, [each for each, _ in tests])
        chosen = [test for test, good in zip(tests, is_asked_only_true, strict=True) if good]
        if chosen:
            memberships.append(_group(name, chosen))
            hashed.update(each.id for each, _ in chosen)
    ordinary = [each for each in every if each.id not in hashed]
    absences = [each for each in attributes.absences if attributes.is_of_computed(each)]
    return Computing(key, ordinary, memberships, [KnownValues() for _ in ordinary], absences)


def _group(name: str, tests: list[tuple[Attribute, list[Any]]]) -> Membership:
    by_constant: dict[Any, list[int]] = {}
    for attribute, constants in tests:
        for constant in dict.fromkeys(constants):
            by_constant.setdefault(constant, []).append(attribute.kinds["bool"].id)
    texts = sum(isinstance(each, str) for each in by_constant)
    return Membership(
        name,
        name.replace(PATH, "."),
        by_constant,
        [attribute for attribute, _ in tests],
        texts > 0,
        texts < len(by_constant),
    )


def _membership(tree: Scalar) -> tuple[str, list[Any]] | None:
    """The list and the constants of a test that hashing can answer; None for any other formula."""
    if not isinstance(tree, Call) or not isinstance(tree.args[0], Attr):
        return None
    wanted = tree.args[1:]
    if tree.name == "arrays_overlap" and isinstance(wanted[0], Call) and wanted[0].name == "array":
        wanted = wanted[0].args
    elif tree.name != "array_contains":
        return None
    constants = [each.value for each in wanted if isinstance(each, Lit)]
    if len(constants) < len(wanted) or len({*map(type, constants)}) != 1:
        return None
    return (tree.args[0].name, constants) if all(map(_is_hashed, constants)) else None


def _is_hashed(constant: Any) -> bool:
    return type(constant) is str or (type(constant) is int and -_EXACT <= constant <= _EXACT)


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
