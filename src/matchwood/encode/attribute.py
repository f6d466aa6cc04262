"""One attribute: its name, its type and keys, and what is derived from it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakValueDictionary

from matchwood.encode.keys import Keys
from matchwood.encode.kinds import is_internal, shown
from matchwood.lang.functions.evaluate import Formula
from matchwood.lang.names import is_context
from matchwood.lang.scalars import tree_of

_FORMULAS: WeakValueDictionary[str, Formula] = WeakValueDictionary()


def formula_of(name: str) -> Formula:
    """What computes an attribute; attributes of several segments and matchers share it."""
    found = _FORMULAS.get(name)
    return _FORMULAS.setdefault(name, Formula(tree_of(name))) if found is None else found


@dataclass(slots=True)
class Pattern:
    """A general LIKE pattern of a string attribute, supplied as an attribute of its own."""

    attr_id: int
    regex: re.Pattern[str]


class Term(NamedTuple):
    """What a relation compares its attribute with: a value of the context, moved by an offset."""

    op: str
    context: int  # attribute id of the context's value
    offset: int | float
    is_float: bool  # tells an offset 1.0 from 1


@dataclass(slots=True)
class Attribute:
    id: int
    name: str
    type: str | None
    keys: Keys | None
    absence_id: int = -1
    patterns: dict[str, Pattern] = field(default_factory=dict)
    source: int = -1  # derived: the attribute it comes from
    pattern: str | None = None  # derived from a pattern: which
    term: Term | None = None  # derived from a relation: which
    terms: dict[Term, int] = field(default_factory=dict)  # relations of this attribute
    beside_id: int = -1  # the attribute `x beside ctx`
    is_beside: bool = False  # derived: such an attribute
    n_references: int = 0  # a value of the context: relations that refer to it
    is_dropped: bool = False  # nothing uses it: the id is free
    exact_id: int = -1  # the attribute `x exact`
    kinds: dict[str, Attribute] = field(default_factory=dict)  # open: its values by kind
    base_id: int = -1  # values of one kind: the open attribute they belong to
    is_asked: bool = False  # open: some subscription asks for its presence
    formula: Formula | None = None  # computed: what computes it
    is_hidden: bool = field(init=False)  # no event may name it

    def __post_init__(self) -> None:
        self.is_hidden = is_internal(self.name) or is_context(self.name)

    @property
    def is_context(self) -> bool:
        """Whether this is a value of the context; no event supplies it."""
        return self.source < 0 and is_context(self.name)

    @property
    def is_plain(self) -> bool:
        """Whether one key is all that a value of this kind becomes."""
        if self.patterns or self.beside_id >= 0 or self.exact_id >= 0:
            return False
        return self.type not in ("timestamp", "date")

    @property
    def label(self) -> str:
        """The name as messages show it."""
        return shown(self.name)

    @property
    def is_derived(self) -> bool:
        return self.source >= 0
