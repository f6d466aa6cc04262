"""Spark doors: partition and merge, no algorithms.

Importing this package does not import pyspark; using its names does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from matchwood.spark.java import ensure_java, java_home
from matchwood.spark.session import local_session

if TYPE_CHECKING:
    from matchwood.spark.batch import Matched, match
    from matchwood.spark.index import Index
    from matchwood.spark.shards.match_sharded import Sharded, match_sharded
    from matchwood.spark.source import read_workload, register_source
    from matchwood.spark.sql import match_udf, register_sql
    from matchwood.spark.streams.live import match_live
    from matchwood.spark.streams.match_stream import match_stream
    from matchwood.spark.strings import read_strings

_HOME = {
    "Index": "index",
    "Matched": "batch",
    "match": "batch",
    "match_live": "streams.live",
    "match_sharded": "shards.match_sharded",
    "Sharded": "shards.match_sharded",
    "match_stream": "streams.match_stream",
    "match_udf": "sql",
    "read_strings": "strings",
    "read_workload": "source",
    "register_source": "source",
    "register_sql": "sql",
}

__all__ = [
    "Index",
    "Matched",
    "Sharded",
    "ensure_java",
    "java_home",
    "local_session",
    "match",
    "match_live",
    "match_sharded",
    "match_stream",
    "match_udf",
    "read_strings",
    "read_workload",
    "register_source",
    "register_sql",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'matchwood.spark' has no attribute {name!r}")
    try:
        module = import_module(f"matchwood.spark.{_HOME[name]}")
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("matchwood"):
            raise
        from matchwood.errors import MatchwoodError

        raise MatchwoodError(
            f"Spark is not installed ({error}): pip install 'matchwood[spark]'"
        ) from error
    return getattr(module, name)
