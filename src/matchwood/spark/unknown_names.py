"""Subscriptions that test a column which the events do not have.

Spark SQL refuses such an expression; here the subscription is refused, alone and with its reason,
because `prise < 20` would never match, without any sign of the mistake.  Names are case-sensitive.
Only where the columns give the names (wide events and structs); a name that `schema=` declares may
be absent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.attributes import Attributes
from matchwood.encode.events import EncodedEvents, encode_events
from matchwood.encode.leaves import LeafBatch
from matchwood.engine.input.parsing import parse_texts
from matchwood.engine.matcher import Matcher
from matchwood.errors import SchemaError
from matchwood.lang.names import is_context
from matchwood.lang.scalars import attributes_of, is_computed, tree_of
from matchwood.spark.errors import error_row
from matchwood.spark.shapes import ATTRIBUTES

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

Names = Collection[str] | None
"""Names that subscriptions may use; None: any.  What stands with COLLATED after it, too, may not be
read by a formula."""

COLLATED = "\0collated"


def names_of_events(events: StructType, shape: str) -> frozenset[str] | None:
    """Names of columns and of fields inside; None where the shape tells none."""
    if shape == "struct":
        return names_of_events(events[ATTRIBUTES].dataType, "wide")  # type: ignore[arg-type]
    if shape != "wide":
        return None
    return frozenset(name for each in events for name in _flat(each.name, each.dataType))


def is_collated(kind: DataType) -> bool:
    """Whether the strings of a type are compared in another way than by their bytes."""
    return kind.typeName() == "string" != kind.simpleString()


def parse_known(texts: Sequence[Any], known: Names) -> tuple[LeafBatch, list[int], dict[int, Any]]:
    """As `parse_texts`; texts with other names are refused."""
    leaves, rows, refused = parse_texts(texts)
    strangers = _strangers(leaves, rows, known)
    if not strangers:
        return leaves, rows, refused
    refused |= strangers
    good = [row for row in rows if row not in refused]
    leaves, again, _ = parse_texts([texts[row] for row in good])
    return leaves, [good[row] for row in again], refused


def unknown_names(texts: Sequence[Any], known: Names) -> dict[int, SchemaError]:
    """What is wrong with texts that use other names, by row; texts that cannot be read are none."""
    if known is None:
        return {}
    leaves, rows, _ = parse_texts(texts)
    return _strangers(leaves, rows, known)


def _strangers(leaves: LeafBatch, rows: Sequence[int], known: Names) -> dict[int, SchemaError]:
    if known is None:
        return {}
    unknown = {at: _unknown(name, known) for name, at in leaves.names.items()}
    unknown = {at: name for at, name in unknown.items() if name is not None}
    found: dict[int, SchemaError] = {}
    for number, row in enumerate(rows) if unknown else ():
        tested = leaves.attr[leaves.row_start[number] : leaves.row_start[number + 1]]
        first = next((unknown[at] for at in tested if at in unknown), None)
        if first is not None:
            found[row] = _error(first, known)
    return found


def without_unknown(rows: pa.Table, known: Names) -> tuple[pa.Table, list[dict[str, Any]]]:
    """A table of predicates without the subscriptions that have other names; and error rows."""
    if known is None or not rows.num_rows:
        return rows, []
    names = rows.column("attribute").combine_chunks()
    each = names.dictionary if pa.types.is_dictionary(names.type) else names.unique()
    strangers = [name for name in each.to_pylist() if name and _unknown(name, known)]
    if not strangers:
        return rows, []
    plain = names.cast(pa.string()) if pa.types.is_dictionary(names.type) else names
    bad = rows.filter(pc.is_in(plain, pa.array(strangers, pa.string())))
    ids = bad.column("id").to_pylist()
    found = dict(zip(ids, bad.column("attribute").to_pylist(), strict=True))
    errors = [
        error_row("subscription", id_, _error(_unknown(name, known) or name, known))
        for id_, name in found.items()
    ]
    is_bad = pc.is_in(rows.column("id"), bad.column("id").unique())
    return rows.filter(pc.invert(is_bad)), errors


def _unknown(name: str, known: Names) -> str | None:
    """The first attribute of a name that is unknown; a computed name has several."""
    if known is None:
        return None
    plain = _plain(name)
    if not is_computed(plain):
        return None if plain in known or is_context(plain) else plain
    used = [each for each in attributes_of(tree_of(plain)) if not is_context(each)]
    return next((each for each in used if each not in known or each + COLLATED in known), None)


def _plain(name: str) -> str:
    """A name without the mark at the end of an attribute of one kind, or of exact values."""
    return name[:1] + name[1:].partition("\0")[0]


class UsedNames:
    """Given to `Matcher.encode` in place of events: finds the attributes that subscriptions test,
    those inside of computed ones among them.
    """

    def __init__(self) -> None:
        self.found: set[str] = set()
        self._kinds: dict[str, set[str]] = {}

    @property
    def mixed(self) -> set[str]:
        """Attributes that are compared with constants of several kinds."""
        return {name for name, kinds in self._kinds.items() if len(kinds) > 1}

    def encode_entries(self, attributes: Attributes) -> EncodedEvents:
        for name, each in attributes.by_name.items():
            self.found.update(attributes_of(tree_of(_plain(name))))
            self._kinds.setdefault(name, set()).update(each.kinds)
        return encode_events(attributes, [])


class _Computes:
    """Given to `Matcher.encode` in place of events: whether an attribute is computed."""

    def __init__(self) -> None:
        self.found = False

    def encode_entries(self, attributes: Attributes) -> EncodedEvents:
        self.found = self.found or any(map(is_computed, attributes.by_name))
        return encode_events(attributes, [])


def computes(matcher: Matcher) -> bool:
    """Whether subscriptions have computed attributes, which may fail for an event."""
    asked = _Computes()
    matcher.encode(asked)
    return asked.found


def columns_of(used: Collection[str], events: StructType, others: Sequence[str] = ()) -> list[str]:
    """Columns, or fields of a struct, that are used, themselves or a field inside; and others."""
    first = {name for each in used for name in _prefixes(each)}
    return [each.name for each in events if each.name in others or each.name in first]


def _prefixes(name: str) -> Iterator[str]:
    """`a.b.c` for a.b.c, a.b and a."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _error(name: str, known: Collection[str]) -> SchemaError:
    if name + COLLATED in known:
        return SchemaError(
            f"expected a formula over strings that are compared by their bytes, found {name!r}, "
            "which has a collation: give the events its value COLLATE UTF8_BINARY"
        )
    hint = _hint(name, frozenset(known))
    return SchemaError(f"expected a column of the events, found {name!r}, which is none: {hint}")


@lru_cache(maxsize=1024)
def _hint(name: str, known: frozenset[str]) -> str:
    same = [each for each in known if each.lower() == name.lower()]
    if same:
        return f"write {same[0]!r}, names are case-sensitive"
    close = get_close_matches(name, known, 1)
    if close:
        return f"did you mean {close[0]!r}?"
    return "add the column, or declare it with schema= if it may be absent"


def _flat(name: str, kind: DataType) -> Iterator[str]:
    from pyspark.sql.types import StructType

    yield name
    if isinstance(kind, StructType):
        for field in kind:
            yield from _flat(f"{name}.{field.name}", field.dataType)
    elif is_collated(kind):
        yield name + COLLATED
