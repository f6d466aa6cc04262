"""Attributes: names to dense ids, each with its type and its keys.

Some attributes are *derived*: the event encoder supplies them, no event names them.

    absence of x       present (key 1) exactly when x is absent       for  x IS NULL
    x LIKE '%a_b%'     0 or 1 whenever x is present                   for  general patterns
    x beside ctx       x in the keys that the context's values have   for  x < ctx.y, see below
    x < ctx.y + 5      no event supplies it: the context decides      for  relations

`x exact`, for constants with more digits than a double, is none of these: it is an attribute with
constants of its own, but events do not name it either (`encode.exact`).

An attribute that is not declared is *open*: it has no type, and one internal attribute for each
kind of constants that it is compared with (`encode.kinds`).

Values of the context are attributes whose name starts with `ctx.`; no event supplies them either.
Their keys must not depend on the constants of subscriptions, because a stored key has to stay right
when a constant arrives: numbers have the keys of floats, strings share one dictionary of all
the strings that were ever set.

`x IS NOT NULL` needs none of this: it is the full set of keys of x.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.attribute import Attribute, formula_of
from matchwood.encode.derived import DerivedAttributes
from matchwood.encode.dictionary import Relabelling
from matchwood.encode.exact import EXACT
from matchwood.encode.keys import OBJECT, DictionaryKeys, FloatKeys, Keys, keys_for
from matchwood.encode.kinds import KINDS, is_computed, is_internal, of_kind, split
from matchwood.encode.predicates import PredicateTable
from matchwood.encode.schema import Schema
from matchwood.errors import SchemaError
from matchwood.lang.cells import CELL
from matchwood.lang.functions.evaluate import PATH
from matchwood.lang.names import is_context

if TYPE_CHECKING:
    from matchwood.encode.expressions import ExpressionTable


class Attributes(DerivedAttributes):
    """All attributes of one matcher."""

    def __init__(
        self, schema: Schema | None = None, column_types: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self.declared = schema if schema is not None else Schema()
        if column_types is not None and not isinstance(column_types, Mapping):
            raise SchemaError(
                "expected column_types to be a mapping from names to types, "
                f"found {type(column_types).__name__}"
            )
        self.column_types = dict(column_types or {})
        """Types that attributes get at their first use; see `Matcher`."""
        self.computed: dict[int, Attribute] = {}  # by id
        self.tested_by: ExpressionTable | None = None
        """The table whose predicates test these attributes, where one is known."""
        self.computing: Any = None
        """How computed attributes of events are found, see `computing`; until the next change."""
        self.failed: Counter[str] = Counter()
        """By computed attribute: events for which it failed, as Spark would."""
        self.when_moved: Callable[[Relabelling], None] | None = None
        """Called when keys of the context's strings have moved."""
        self.when_dropped: Callable[[Attribute], None] | None = None
        """Called with a value of the context, or a pattern of one, that was dropped."""
        self.has_values: Callable[[int], bool] | None = None
        """Whether some context has a value of an attribute."""
        self.unknown: Counter[str] = Counter()
        """By attribute: values that left predicates unknown because they were of another kind."""
        self.json_plan: Any = None
        """How JSON documents are read, see `json/events`; made when there are enough of them."""
        self.dict_plan: Any = None
        """How compiled code reads dicts, see `dicts/plan`; made when there are enough of them."""
        self.table_plan: Any = None
        """How columns of tables are read, see `arrow/plan`; those of the last schema."""
        self.dict_reader: Any = None
        """What the values of dicts become, see `dicts/events`; until the next change."""
        self.n_whole = 0  # JSON documents that were read without a plan since it became old
        self.n_new = 0  # constants learned since `forget_unused`
        self.n_kept = 0  # constants that were there then
        for name, kind in (schema or {}).items():
            self.get(name, kind)
        self.n_pinned = len(self.all)
        """Attributes with lower ids are declared: they and their types stay."""

    def get(self, name: str, kind: str | None) -> Attribute:
        """The attribute of that name, made at its first use; learns its type when it had none."""
        attribute = self.by_name.get(name)
        if attribute is None:
            self.changes += 1
            base = self._base(name)
            attribute = self._new(name, None, None)
            if base is None and is_computed(name) and not name.endswith(EXACT):
                attribute.formula = formula_of(name)
                self.journal.remember_item(self.computed, attribute.id)
                self.computed[attribute.id] = attribute
            self.journal.remember_item(self.by_name, name)
            self.by_name[name] = attribute
            exact = self.by_name.get(name + EXACT)
            attribute.exact_id = -1 if exact is None else exact.id
            if base is not None:
                attribute.base_id = base.id
                kind = split(name)[1]
                assert kind is not None
                self.journal.remember_item(base.kinds, kind)
                base.kinds[kind] = attribute
                kind = KINDS[kind]
        if name.endswith(EXACT):
            self.get(name.removesuffix(EXACT), None).exact_id = attribute.id
        if attribute.type is None and kind is not None:
            self.changes += 1
            self.journal.remember_field(attribute, "type")
            attribute.keys = self.keys_of(name, kind)
            attribute.type = kind
        return attribute

    def _base(self, name: str) -> Attribute | None:
        """The open attribute that an internal one of a kind belongs to; None for any other name."""
        if not is_internal(name) or name.endswith(EXACT):
            return None
        base, kind = split(name)
        return None if kind is None else self.get(base, None)

    def is_declared(self, name: str) -> bool:
        """Whether a schema or a column gives a name its type, or it is a value of the context."""
        if is_context(name) or name in self.column_types:
            return True
        known = self.by_name.get(name)
        return known is not None and known.type is not None

    def of_kind(self, attribute: Attribute, kind: str) -> Attribute:
        """The internal attribute that holds the values of one kind."""
        found = attribute.kinds.get(kind)
        return found if found is not None else self.get(of_kind(attribute.name, kind), None)

    def keys_of(self, name: str, kind: str) -> Keys:
        """The keys of an attribute; those of the context know no constants of subscriptions."""
        if not is_context(name) or kind not in ("number", "string"):
            return keys_for(kind)
        return FloatKeys() if kind == "number" else self.context_strings

    def exact(self, attribute: Attribute) -> Attribute | None:
        """The attribute `x exact`, if some subscription has a constant that needs it."""
        if not 0 <= attribute.exact_id < len(self.all):
            return None
        found = self.all[attribute.exact_id]
        return found if found.name == attribute.name + EXACT else None

    def drop_unused(self, ids: Iterable[int], uses: np.ndarray) -> None:
        """Drop those attributes that nothing uses, and what they alone were derived from.

        uses  how often expressions mention each attribute
        """
        self.changes += 1
        pending = list(ids)
        while pending:
            attribute = self.all[pending.pop()]
            if not self._is_unused(attribute, uses):
                continue
            if attribute.is_derived:
                pending.append(attribute.source)
                if attribute.term is not None:
                    pending.append(attribute.term.context)
                    pending += [each.id for each in self.all[attribute.source].kinds.values()]
                self.drop_derived(attribute.id)
            else:
                self.journal.remember_item(self.by_name, attribute.name)
                del self.by_name[attribute.name]
                if attribute.formula is not None:
                    self.journal.remember_item(self.computed, attribute.id)
                    del self.computed[attribute.id]
                if attribute.name.endswith(EXACT):
                    base = self.by_name[attribute.name.removesuffix(EXACT)]
                    base.exact_id = -1
                    pending.append(base.id)
                if attribute.base_id >= 0:
                    base = self.all[attribute.base_id]
                    kind = split(attribute.name)[1]
                    self.journal.remember_item(base.kinds, kind)
                    del base.kinds[kind or ""]
                    pending.append(base.id)
                    self._drop_beside(attribute)
                self._give_back(attribute.id)
            if self.when_dropped is not None and (attribute.is_context or attribute.pattern):
                self.when_dropped(attribute)

    def _is_unused(self, attribute: Attribute, uses: np.ndarray) -> bool:
        """Whether no expression mentions an attribute, nothing is derived from it and no context
        has a value of it.
        """
        if attribute.id < self.n_pinned or attribute.is_beside or attribute.is_dropped:
            return False
        if attribute.id < len(uses) and uses[attribute.id]:
            return False
        if attribute.is_derived:
            return True
        if attribute.absence_id < 0:
            attribute.is_asked = False
        if attribute.kinds or (attribute.base_id >= 0 and self.all[attribute.base_id].terms):
            return False
        has_derived = attribute.absence_id >= 0 or attribute.patterns or attribute.terms
        if has_derived or attribute.exact_id >= 0 or attribute.n_references:
            return False
        return self.has_values is None or not self.has_values(attribute.id)

    def follow(
        self,
        attribute: Attribute | None,
        moved: Relabelling,
        rekey: Callable[[int, Relabelling], None],
    ) -> None:
        """Rewrite what has keys of a dictionary that was relabelled; None: that of the context."""
        if attribute is not None and attribute.keys is not self.context_strings:
            rekey(attribute.id, moved)
            return
        for each in self.by_name.values():
            if each.keys is self.context_strings:
                rekey(each.id, moved)
        if self.when_moved is not None:
            self.when_moved(moved)

    def apart(self) -> Attributes:
        """The same attributes with counters of their own, for a thread that encodes some events.

        `add_counts` adds them up.  Computed attributes keep what they became: they are for one
        thread at a time.
        """
        mine = copy(self)
        mine.unknown, mine.failed, mine.dict_reader = Counter(), Counter(), None
        return mine

    def add_counts(self, other: Attributes) -> None:
        """Count what was counted `apart`."""
        self.unknown.update(other.unknown)
        self.failed.update(other.failed)

    def links(self) -> set[tuple[str, str]]:
        """Names that are compared with each other, so that they have one type."""
        return {
            (attribute.name, self.all[term.context].name)
            for attribute in self.by_name.values()
            for term in attribute.terms
        }

    def is_of_computed(self, attribute: Attribute) -> bool:
        """Whether an attribute is a computed one, or holds the values of one that are of a kind."""
        base = self.all[attribute.base_id] if attribute.base_id >= 0 else attribute
        return base.formula is not None

    def read_by_computed(self) -> set[str]:
        """The attributes that computed ones read."""
        formulas = [each.formula for each in self.computed.values() if each.formula is not None]
        return {name.split(PATH)[0] for formula in formulas for name in formula.inputs}

    def in_events(self) -> set[str]:
        """The names that events are asked for: of attributes, and of what computed ones read."""
        names = {each.name for each in self.by_name.values() if not each.is_hidden}
        return names | self.read_by_computed()

    def declared_type(self, name: str) -> str | None:
        """The type that a schema or a column gives a name."""
        known = self.by_name.get(name)
        return self.column_types.get(name) if known is None else known.type

    def text_types(self) -> dict[str, str]:
        """The types as which texts of events are read, and `cell` for open attributes that computed
        ones read: each place that reads such a text tells what it means.
        """
        read = [name for name in self.read_by_computed() if self.declared_type(name) is None]
        return {**self.schema(), **dict.fromkeys(read, CELL)}

    @property
    def named(self) -> list[str]:
        """The names of attributes that users know."""
        return [name for name in self.by_name if not is_internal(name) or is_computed(name)]

    @property
    def nbytes(self) -> int:
        """An estimate: all of it is Python's own objects."""
        return (
            500 * len(self.by_name)
            + 100 * (self.n_derived + len(self._free))
            + (150 * self.n_constants)
        )

    @property
    def n_constants(self) -> int:
        """How many constants the dictionaries hold."""
        dictionaries = [each.keys for each in self.all if isinstance(each.keys, DictionaryKeys)]
        mine = [keys.n_constants for keys in dictionaries if keys is not self.context_strings]
        return sum(mine) + self.context_strings.n_constants

    def forget_unused(self, predicates: PredicateTable) -> None:
        """Drop dictionary constants that no predicate of the table has as an end any more.

        A dictionary that was not read yet has learned nothing: it stays as it is.
        """
        self.changes += 1
        ids, ends = predicates.ends()
        order = np.argsort(ids, kind="stable")
        ids, ends = ids[order], ends[order]
        for attribute in self.all:
            keys = attribute.keys
            if (
                isinstance(keys, DictionaryKeys)
                and keys.is_read
                and (keys is not self.context_strings)
            ):
                mine = slice(*np.searchsorted(ids, (attribute.id, attribute.id + 1)))
                keys.dictionary.keep(ends[mine])

    def trim(self) -> None:
        """Shorten the list by dropped attributes at its end."""
        n = len(self.all)
        while n and self.all[n - 1].is_dropped:
            n -= 1
        free = [id_ for id_ in self._free if id_ < n]
        self.all, self._free = self.all[:n], free

    def schema(self) -> Schema:
        """The types known so far; an open attribute has one when all its predicates agree."""
        types: dict[str, str] = {}
        for name, each in self.by_name.items():
            if is_internal(name):
                continue
            if each.type is not None and each.type != OBJECT:
                types[name] = each.type
            elif len(each.kinds) == 1:
                types[name] = next(iter(each.kinds)).replace("day", "date")
        return Schema(types)
