"""Computed attributes as columns that Spark computes before workers see the events.

Only those that cannot fail, whatever the row (`lang.functions.total`); workers compute the others
and report the event.  See docs/decisions/0027.

    event_id │ tested columns │ inputs, where in doubt │ matchwood_computed_0 ... │ in doubt

In doubt is a row that Python cannot hold (a string that is no UTF-8, a day outside the years 1 to
9999), or that may have letters whose case is not the same in all versions of Unicode.  Workers
compute it, so they get the inputs of such rows, and of no others.

A session whose settings give expressions another meaning lets workers compute everything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.encode.arrow.computed import Given
from matchwood.encode.arrow.events import encode_table
from matchwood.encode.attributes import Attributes
from matchwood.encode.events import EncodedEvents, encode_events
from matchwood.encode.grouping import group_tests
from matchwood.engine.matcher import Matcher
from matchwood.lang.functions.evaluate import PATH
from matchwood.lang.functions.total import Column, needs_ascii, sql_of
from matchwood.spark.fingerprints import quoted
from matchwood.spark.shapes import with_readable_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

_PREFIX = "matchwood_computed_"
_IN_DOUBT = "matchwood_computed_in_doubt"

MOST_COLUMNS = 100
"""Spark plans and compiles every column; with more of them workers compute everything."""

_TYPES = {
    "byte": "bigint", "short": "bigint", "integer": "bigint", "long": "bigint",
    "float": "double", "double": "double", "boolean": "boolean", "date": "date",
    "timestamp": "timestamp",
}  # fmt: skip
"""Types of values here, by the names of Spark's; others are left to workers."""

_DOUBTS = {
    "string": "NOT system.builtin.is_valid_utf8({0})",
    "date": "{0} NOT BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'",
    "timestamp": "{0} NOT BETWEEN TIMESTAMP '0001-01-01 00:00:00Z' "
    "AND TIMESTAMP '9999-12-31 23:59:59.999999Z'",
}
"""When Python cannot hold a value."""

_NOT_ASCII = "system.builtin.octet_length({0}) <> system.builtin.length({0})"


@dataclass(frozen=True)
class Columns:
    """Computed attributes that are columns of the events, by the names of these."""

    attributes: tuple[tuple[str, str], ...] = ()

    def read(self, batch: pa.RecordBatch) -> Any:
        """A batch of wide events with these columns, for `Matcher.encode`."""
        batch = with_readable_types(batch)
        by_column = dict(self.attributes)
        others = [name for name in batch.schema.names if name not in (*by_column, _IN_DOUBT)]
        given = {attribute: batch.column(name) for name, attribute in by_column.items()}
        doubts = batch.column(_IN_DOUBT).to_numpy(zero_copy_only=False)
        return _Events(pa.Table.from_batches([batch.select(others)]), Given(given, doubts))


NO_COLUMNS = Columns()


@dataclass(frozen=True)
class _Events:
    table: pa.Table
    given: Given

    def encode_entries(self, attributes: Attributes) -> EncodedEvents:
        return encode_table(attributes, self.table, self.given)


class _Formulas:
    """Given to `Matcher.encode` instead of events: finds what is computed, and what is read."""

    def __init__(self) -> None:
        self.trees: dict[str, Any] = {}
        self.tested: set[str] = set()
        self.read: dict[str, list[str]] = {}

    def encode_entries(self, attributes: Attributes) -> EncodedEvents:
        grouped, ordinary = group_tests(attributes)
        self.tested.update(name for name in attributes.by_name if not name.startswith("\0"))
        self.tested.update(tests.name.split(PATH)[0] for tests in grouped)
        for each in ordinary:
            assert each.formula is not None
            self.trees[each.name] = each.formula.tree
            self.read[each.name] = [name.split(PATH)[0] for name in each.formula.inputs]
        return encode_events(attributes, [])


def with_computed(
    events: DataFrame, matcher: Matcher, others: Sequence[str]
) -> tuple[DataFrame, Columns]:
    """Wide events with the columns that Spark computes, and which these are.

    others  columns that are needed whatever subscriptions test
    """
    formulas = _Formulas()
    matcher.encode(formulas)
    if not formulas.trees:  # reading the session's settings takes as long as a small job
        return events, NO_COLUMNS
    columns = _columns(events.sparkSession, events.schema)
    trees = formulas.trees if columns else {}
    texts = {name: sql_of(tree, columns) for name, tree in trees.items()}
    found = {name: text for name, text in texts.items() if text is not None}
    if not 0 < len(found) <= MOST_COLUMNS:
        return events, NO_COLUMNS
    whole = {*others, *formulas.tested}
    whole.update(n for name in formulas.trees.keys() - found.keys() for n in formulas.read[name])
    inputs = {n for name in found for n in formulas.read[name]}
    doubts = [_DOUBTS[columns[n].type].format(columns[n].sql)
              for n in sorted(inputs) if columns[n].type in _DOUBTS]  # fmt: skip
    in_ascii = {
        n for name in found if needs_ascii(formulas.trees[name]) for n in formulas.read[name]
    }
    doubts += [_NOT_ASCII.format(columns[n].sql)
               for n in sorted(in_ascii) if columns[n].type == "string"]  # fmt: skip
    return _selected(events, found, inputs - _with_prefixes(whole), doubts)


def _with_prefixes(names: Collection[str]) -> set[str]:
    return {name[: at or None] for name in names for at in (0, *_dots(name))}


def _dots(name: str) -> list[int]:
    return [at for at, letter in enumerate(name) if letter == "."]


def _selected(
    events: DataFrame, texts: Mapping[str, str], spared: Collection[str], doubts: Sequence[str]
) -> tuple[DataFrame, Columns]:
    """The events with what Spark computes; some columns are null where nothing is in doubt."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    doubt = " OR ".join(f"coalesce({each}, FALSE)" for each in doubts) or "FALSE"
    made = {f"{_PREFIX}{n}": attribute for n, attribute in enumerate(texts)}
    chosen: list[Any] = []
    for name in events.columns:
        sql = quoted(name)
        column = f.expr(f"CASE WHEN {doubt} THEN {sql} END") if name in spared else f.col(sql)
        chosen.append(column.alias(name))
    chosen += [f.expr(texts[attribute]).alias(name) for name, attribute in made.items()]
    chosen.append(f.expr(doubt).alias(_IN_DOUBT))
    try:
        selected = events.select(*chosen)
        selected.schema  # noqa: B018 - Spark Connect checks names and types only then
    except AnalysisException:  # what this version does not take is left to workers
        return events, NO_COLUMNS
    return selected, Columns(tuple(made.items()))


def _columns(spark: SparkSession, schema: StructType) -> dict[str, Column]:
    """The columns that formulas may read; none where the session gives them another meaning."""
    names = [each.name for each in schema]
    folded = {name.lower() for name in names}
    if len(folded) < len(names) or any(name.startswith(_PREFIX) for name in folded):
        return {}
    if _has_dots(schema):  # two columns may have one name: workers read such tables row by row
        return {}
    if not _has_our_meaning(spark):
        return {}
    is_utc = spark.conf.get("spark.sql.session.timeZone") == "UTC"
    found = {}
    for each in schema:
        kind = _type(each.dataType)
        if kind is not None and "." not in each.name and (is_utc or kind != "timestamp"):
            sql = quoted(each.name)
            is_wider = each.dataType.typeName() in ("byte", "short", "integer", "float")
            found[each.name] = Column(f"CAST({sql} AS {kind})" if is_wider else sql, kind)
    return found


def _has_dots(kind: Any) -> bool:
    """Whether names of columns, or of fields inside, have dots."""
    fields = kind if kind.typeName() == "struct" else ()
    return any("." in each.name or _has_dots(each.dataType) for each in fields)


def _has_our_meaning(spark: SparkSession) -> bool:
    if spark.conf.get("spark.sql.ansi.enabled") != "true":
        return False
    changed = spark.conf.getAll
    return not any(
        ".legacy." in name or name in ("spark.sql.icu.caseMappings.enabled",) for name in changed
    )


def _type(kind: DataType) -> str | None:
    if kind.simpleString() == "string":  # without a collation
        return "string"
    return _TYPES.get(kind.typeName())
