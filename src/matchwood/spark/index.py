"""Index: subscriptions that columns of any DataFrame are matched with, in batches and in streams.

    index = Index.build(subscriptions, events)
    events.withColumn("found", index.match(struct("price", "genre")))

    found.subscription_ids   array of ids, null for a bad event
    found.error              what is wrong with the event, or which computed attributes failed
                             for it (then there is a list, too); else null

A struct without a field that subscriptions test makes the query fail (`absent_fields`).

Why.     A column function keeps all columns of the events and works wherever Spark takes a column:
         streaming DataFrames with any sink, SQL views, pipelines.
Place.   Without `path` the snapshot is one of this session: workers map it on `local`, and get it
         as an artifact elsewhere.  With `path` (a folder that all workers see, or an address such
         as s3://...) it is published there, and workers read it from there.
Refresh. `refresh` takes another table of subscriptions.  A published index is replaced where it
         is: tasks that start later use the new one, also those of a stream that is running.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.engine.answers.choices import check_limit
from matchwood.engine.matcher import Matcher
from matchwood.engine.snapshots.versions import copy_version, is_version
from matchwood.errors import MatchwoodError, SubscriptionError
from matchwood.spark.absent_fields import Fields, fields_of
from matchwood.spark.choices import Choice
from matchwood.spark.column_types import types_of_events
from matchwood.spark.errors import ERROR_FIELDS
from matchwood.spark.executors import reads_driver_files, ship
from matchwood.spark.folders import local_folder
from matchwood.spark.indexes import Built, build_index, open_index
from matchwood.spark.session import active_session
from matchwood.spark.shapes import find_shape, read_events, shape_of_arrow
from matchwood.spark.stores import is_address, upload
from matchwood.spark.unknown_names import names_of_events
from matchwood.spark.worker import Location, Times, match_parts, opened

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Options:
    """What an index is built with."""

    column_types: Mapping[str, str]
    names: frozenset[str] | None
    index: str
    config: Mapping[str, Any] | None
    schema: Schema | Mapping[str, Any] | None
    snapshots: str | None
    ship: bool | None
    path: str | None


class Index:
    """An index of subscriptions, made with `Index.build` or `Index.open`."""

    def __init__(
        self, spark: SparkSession, built: Built, location: Location, options: Options | None
    ) -> None:
        self._spark, self._built, self._location = spark, built, location
        self._options = options

    @classmethod
    def build(
        cls,
        subscriptions: DataFrame,
        events: DataFrame | StructType | None = None,
        *,
        path: str | None = None,
        index: str = "auto",
        config: Mapping[str, Any] | None = None,
        schema: Schema | Mapping[str, Any] | None = None,
        contexts: Any = None,
        now: datetime | None = None,
        snapshots: str | None = None,
        ship: bool | None = None,
    ) -> Index:
        """The index of a table of subscriptions; the one of before if the table is unchanged.

        events  a DataFrame of events, or its schema: attributes have the types of its columns, and
                subscriptions with other names are refused
        path    where the index is published; see the module's docstring
        The rest is as for `match`.
        """
        types: dict[str, str] = {}
        names = None
        if events is not None:
            columns: Any = getattr(events, "schema", events)
            shape = find_shape(columns, "auto", columns.names)
            types, names = types_of_events(columns, shape), names_of_events(columns, shape)
        options = Options(types, names, index, config, schema, snapshots, ship, path)
        return _built(subscriptions, contexts, now, options)

    @classmethod
    def open(cls, path: str, *, ship: bool | None = None) -> Index:
        """The index that was saved or published at a path or an address.

        ship  send it to the workers as it is now; else they read it from there, and follow changes
        """
        spark = active_session()
        if spark is None:
            raise MatchwoodError(
                "expected a Spark session, found none: make one with local_session()"
            )
        built = open_index(path)
        if ship:
            return cls(spark, built, locate(spark, replace(built, address=None), True), None)
        return cls(spark, built, located(path), None)

    def __len__(self) -> int:
        return self._built.count

    def __repr__(self) -> str:
        return f"Index({len(self)} subscriptions, {self._location.path!r})"

    @property
    def reused(self) -> bool:
        """Whether it was there already."""
        return self._built.reused

    @property
    def errors(self) -> DataFrame:
        """Subscriptions that were refused: of, id, error, message, line, column, excerpt."""
        return self._spark.createDataFrame(self._built.refused, ERROR_FIELDS)

    def match(
        self,
        event: Column | str,
        *,
        limit: int | None = None,
        absent: Collection[str] | bool = False,
    ) -> Column:
        """A column of structs (subscription_ids, error): which subscriptions hold for a struct.

        event  a struct with the attributes as fields, or with the fields of another shape
               (`attributes`, `values`); a column or its name
        limit  at most so many, those of the highest priority
        absent  names of fields that subscriptions test and the struct may lack, or True for any:
               they are NULL.  Else the query fails and names them (`absent_fields`)
        """
        from pyspark.sql.pandas.functions import arrow_udf
        from pyspark.sql.types import ArrayType, LongType, StringType, StructType

        limit = check_limit(limit)
        location, choice = self._location, Choice(limit)
        declared = Schema(self._options.schema) if self._options is not None else ()
        fields = fields_of(self._built.matcher, declared, absent)
        kind = "bigint" if self._built.id_type == "long" else "string"

        def found(event: pa.Array) -> pa.Array:
            lists, errors = match_structs(location, event, kind, choice, fields)
            return pa.StructArray.from_arrays([lists, errors], names=["subscription_ids", "error"])

        found.__annotations__ = {"event": pa.Array, "return": pa.Array}
        ids = ArrayType(LongType() if kind == "bigint" else StringType())
        make: Any = arrow_udf
        function = make(found, StructType().add("subscription_ids", ids).add("error", StringType()))
        column: Column = function(event)
        return column

    def refresh(
        self, subscriptions: DataFrame, *, contexts: Any = None, now: datetime | None = None
    ) -> Index:
        """The index of another table, built as this one was; published in the same place."""
        if self._options is None:
            raise MatchwoodError(
                "expected an index that was built here, found one that was opened: build it with "
                "Index.build(..., path=...) where the subscriptions are"
            )
        return _built(subscriptions, contexts, now, self._options)

    def save(self, path: str) -> None:
        """Write the index as a snapshot to a path, or to the address of a store."""
        _publish(self._built, path)


def _built(subscriptions: DataFrame, contexts: Any, now: datetime | None, o: Options) -> Index:
    built = build_index(
        subscriptions, o.index, o.config, o.schema, o.snapshots, contexts, now,
        column_types=o.column_types, names=o.names,
    )  # fmt: skip
    spark = subscriptions.sparkSession
    if o.path is None:
        return Index(spark, built, locate(spark, built, o.ship), o)
    _publish(built, o.path)
    return Index(spark, built, located(o.path), o)


def _publish(built: Built, path: str) -> None:
    if is_address(path):
        upload(built.folder, path)
    elif is_version(built.folder):
        copy_version(built.folder, local_folder(path, "an index"))
    else:
        Matcher.load(built.folder, verify=False).save(local_folder(path, "an index"))


def locate(spark: SparkSession, built: Built, wanted: bool | None) -> Location:
    """Where workers find an index; it is sent to them if they cannot read it, or if that is
    wanted.
    """
    if built.address is not None:  # every host reads it from there
        return Location(built.address)
    is_shipped = not reads_driver_files(spark) if wanted is None else wanted
    return ship(spark, built.folder) if is_shipped else Location(str(built.folder))


def located(path: str | Path) -> Location:
    """A snapshot by its path, or by its address on a store."""
    plain = str(path)
    return Location(plain if is_address(plain) else str(local_folder(plain, "a snapshot")))


def match_structs(
    location: Location,
    event: pa.Array,
    id_type: str,
    choice: Choice | None = None,
    fields: Fields | None = None,
) -> tuple[pa.Array, pa.Array]:
    """Lists of ids and messages of errors for structs, which are events.

    fields  what the structs have to have; None: anything may be absent
    """
    matcher, ids = opened(location)
    kind = "bigint" if pa.types.is_integer(ids.type) else "string"
    if kind != id_type and len(ids):
        raise SubscriptionError(
            f"expected subscriptions named by {id_type}, found {kind} in the snapshot: open the "
            f"index again, or say match_udf(..., subscription_id={kind!r})"
        )
    out = pa.int64() if id_type == "bigint" else pa.string()
    batch = pa.RecordBatch.from_struct_array(event)
    shape = shape_of_arrow(batch.schema)
    problem = None if fields is None else fields.problem(matcher, batch.schema, shape)
    events = matcher.encode(read_events(batch, shape))
    numbers = pa.array(np.arange(len(event)))
    wanted = choice or Choice()
    parts = list(
        match_parts(
            matcher, ids.cast(out), numbers, events, Times(), lambda at: wanted.part(None, at)
        )
    )
    if not parts:
        return pa.array([], pa.list_(out)), pa.array([], pa.string())
    table = pa.Table.from_batches(parts).combine_chunks()
    lists = table.column("subscription_ids").combine_chunks()
    lists, messages = lists_and_messages(lists, table.column("error").combine_chunks())
    return lists, messages if problem is None else messages.fill_null(problem)


def lists_and_messages(lists: pa.Array, errors: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Lists, null for bad events, and messages, null where nothing is wrong.

    An event of which a computed attribute failed has both.
    """
    import pyarrow.compute as pc

    messages = _chosen(
        errors.is_null(), pa.nulls(len(errors), pa.string()), errors.field("message")
    )
    is_bad = pc.and_(errors.is_valid(), pc.equal(errors.field("of"), "event")).fill_null(False)
    return _chosen(is_bad, pa.nulls(len(lists), lists.type), lists), messages


def _chosen(condition: pa.Array, yes: pa.Array, no: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    found = pc.if_else(condition, yes, no)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
