"""Memberships: `array_contains(tags, 'x')` of many constants, found by the elements of the list.

Each constant is a computed attribute of its own, so that two of them in one subscription are two
conditions.  Computing all of them for every event would cost as much as there are constants.  Here
a hash table leads from an element of the event's list to the attributes that are TRUE; the others
are left out of the event (see `grouping`).

Hashed are the constants that Python's equality compares as Spark does: strings, and whole numbers
that doubles hold.  A list with other elements (dates, decimals, lists) is computed in the ordinary
way, and of that only what is TRUE is kept.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from matchwood.encode.computed import GivenInputs, true_of
from matchwood.errors import EventError
from matchwood.lang.functions.evaluate import PATH, plain_input
from matchwood.lang.functions.types import TypeProblem
from matchwood.lang.scalars import Attr, Call, Lit, Scalar

if TYPE_CHECKING:
    from matchwood.encode.attribute import Attribute
    from matchwood.encode.attributes import Attributes

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
    ) -> Collection[int]:
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
        return true_of(attributes, self.attributes, GivenInputs({self.name: value}), problems)


def membership(name: str, tests: list[tuple[Attribute, list[Any]]]) -> Membership:
    """The tests of one list, each with its constants."""
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


def constants_of(tree: Scalar) -> tuple[str, list[Any]] | None:
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
