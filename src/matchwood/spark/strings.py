"""Real texts on Spark: DBLP, lines of text and query logs, read, de-duplicated and counted there.

    read_strings ──► text, n ──┬──► string_subscriptions   id, expr          every text once
                               ├──► string_events          event_id, attributes, values
                               └──► count_pairs            attribute, value, n

`qgrams` cuts texts into q-grams (BE-Tree, section 7.1), `keywords` into words (PS-Tree, section
7.1).  A DBLP file is one XML document, so one task reads it; everything after that is spread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from matchwood.errors import MatchwoodError
from matchwood.lang.builder import attr
from matchwood.lang.nodes import And
from matchwood.spark.executors import parallelism
from matchwood.workload.dblp import ELEMENTS, read_dblp
from matchwood.workload.qgrams_text import string_grams
from matchwood.workload.querylog_text import text_pairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOW = ("qgrams", "keywords")
_BATCH = 5_000


def read_strings(spark: SparkSession, path: str, kind: str = "lines") -> DataFrame:
    """Distinct texts and how often each comes: `text`, `n`.

    kind   lines (one text a line; a query log), or authors or titles of a DBLP file (.xml, .xml.gz)
    """
    from pyspark.sql import functions as f

    if kind == "lines":
        rows = spark.read.text(path).select(f.trim("value").alias("text")).where("text <> ''")
    elif kind in ELEMENTS:
        files = spark.createDataFrame([(path,)], "path string")
        rows = files.mapInArrow(partial(_read_files, kind), "text string")
        rows = rows.repartition(parallelism(spark))
    else:
        known = ", ".join(["lines", *ELEMENTS])
        raise MatchwoodError(f"expected a kind among {known}, found {kind!r}")
    return rows.groupBy("text").agg(f.count("*").alias("n"))


def string_subscriptions(strings: DataFrame, how: str = "qgrams", q: int = 3) -> DataFrame:
    """Every text as a conjunction, its id the text itself; texts without a pair are left out."""
    return strings.select("text").mapInArrow(
        partial(_expressions, how, q), "id string, expr string"
    )


def string_events(strings: DataFrame, how: str = "qgrams", q: int = 3) -> DataFrame:
    """Every text as an event, in the shape `arrays`."""
    columns = "event_id string, attributes array<string>, values array<string>"
    return strings.select("text").mapInArrow(partial(_events, how, q), columns)


def count_pairs(strings: DataFrame, how: str = "qgrams", q: int = 3) -> DataFrame:
    """How many texts have each pair of attribute and value."""
    from pyspark.sql import functions as f

    pairs = string_events(strings, how, q).select(
        f.explode(f.arrays_zip("attributes", "values")).alias("pair")
    )
    named = pairs.selectExpr("pair.attributes AS attribute", "pair.values AS value")
    return named.groupBy("attribute", "value").agg(f.count("*").alias("n"))


def _cutter(how: str, q: int) -> Callable[[str], dict[str, str]]:
    if how not in HOW:
        raise MatchwoodError(f"expected texts cut into one of {', '.join(HOW)}, found {how!r}")
    return partial(string_grams, q=q) if how == "qgrams" else text_pairs


def _read_files(kind: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for path in batch.column("path").to_pylist():
            texts: list[str] = []
            for text in read_dblp(path, kind):
                texts.append(text)
                if len(texts) == _BATCH:
                    yield _batch(text=pa.array(texts, pa.string()))
                    texts = []
            yield _batch(text=pa.array(texts, pa.string()))


def _expressions(how: str, q: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    cutter = _cutter(how, q)
    for batch in batches:
        ids: list[str] = []
        exprs: list[str] = []
        for text in batch.column("text").to_pylist():
            predicates = [attr(name) == value for name, value in cutter(text).items()]
            if predicates:
                ids.append(text)
                exprs.append(str(predicates[0] if len(predicates) == 1 else And(tuple(predicates))))
        yield _batch(id=pa.array(ids, pa.string()), expr=pa.array(exprs, pa.string()))


def _events(how: str, q: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    cutter = _cutter(how, q)
    lists = pa.list_(pa.string())
    for batch in batches:
        texts = batch.column("text")
        cut = [cutter(text) for text in texts.to_pylist()]
        yield _batch(
            event_id=texts,
            attributes=pa.array([list(each) for each in cut], lists),
            values=pa.array([list(each.values()) for each in cut], lists),
        )


def _batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
