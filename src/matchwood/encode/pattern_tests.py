"""Pattern tests: `name RLIKE 'x[0-9]+'` of many patterns, found by characters that they require.

Most patterns have characters that follow each other in every string that fits (`regex.required`).
A pattern is filed under one short piece of them, that which the fewest other patterns have.  The
pieces of an event's string lead to the patterns that may fit; only these are searched for.

    'foo[0-9]+'  requires 'foo'       'foo' ─► foo[0-9]+
    '^ab.*xyz$'  requires 'xyz'       'xyz' ─► ^ab.*xyz$        'a foo7' has the piece 'foo' alone
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from matchwood.encode.computed import GivenInputs, true_of
from matchwood.errors import EventError
from matchwood.lang.functions.binding import Get
from matchwood.lang.functions.regex import required
from matchwood.lang.scalars import Attr, Call, Lit, Scalar

if TYPE_CHECKING:
    from matchwood.encode.attribute import Attribute
    from matchwood.encode.attributes import Attributes

LONGEST = 3
"""Characters of a piece."""


class _Pattern(NamedTuple):
    required: str
    fits: Get
    attr_id: int


class PatternTests(NamedTuple):
    """The patterns that one string is tested with."""

    name: str
    """The attribute that holds the string; with keys of maps behind it, as inputs of a formula."""
    attributes: list[Attribute]
    by_piece: dict[int, dict[str, list[_Pattern]]]
    """Patterns by the length of a piece and the piece; \"\" is in every string."""

    def true_for(self, value: Any, attributes: Attributes, problems: list[EventError]) -> list[int]:
        """Ids of the attributes that are TRUE for the value of the string."""
        if value is None:
            return []
        if type(value) is not str:
            return true_of(attributes, self.attributes, GivenInputs({self.name: value}), problems)
        found, row = [], {self.name: value}
        for size, patterns in self.by_piece.items():
            pieces = {value[i : i + size] for i in range(len(value) - size + 1)}
            for piece in pieces & patterns.keys():
                found += [
                    each.attr_id
                    for each in patterns[piece]
                    if each.required in value and each.fits(row)
                ]
        return found


def pattern_of(tree: Scalar) -> tuple[str, str] | None:
    """The input and the pattern of a test that pieces can answer; None for any other formula."""
    if not isinstance(tree, Call) or tree.name != "rlike":
        return None
    value, pattern = tree.args
    if not isinstance(value, Attr) or not isinstance(pattern, Lit):
        return None
    return (value.name, pattern.value) if isinstance(pattern.value, str) else None


def pattern_tests(name: str, tests: list[tuple[Attribute, str]]) -> PatternTests:
    """The tests of one string, each with its pattern."""
    needed = [required(text) for _, text in tests]
    pieces = [_pieces(each) for each in needed]
    n_with = Counter(piece for each in pieces for piece in each)
    by_piece: dict[int, dict[str, list[_Pattern]]] = {}
    for (attribute, _), text, mine in zip(tests, needed, pieces, strict=True):
        assert attribute.formula is not None
        fits = attribute.formula.plain(("string",))
        assert fits is not None
        rarest = min(mine, key=lambda piece: (n_with[piece], piece))
        pattern = _Pattern(text, fits, attribute.kinds["bool"].id)
        by_piece.setdefault(len(rarest), {}).setdefault(rarest, []).append(pattern)
    return PatternTests(name, [attribute for attribute, _ in tests], by_piece)


def _pieces(text: str) -> set[str]:
    size = min(len(text), LONGEST)
    return {text[i : i + size] for i in range(len(text) - size + 1)}
