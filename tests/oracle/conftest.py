"""The two judges, each made once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oracle.duckdb_oracle import DuckDB
from oracle.spark_oracle import SparkSQL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def duck() -> DuckDB:
    return DuckDB()


@pytest.fixture(scope="session")
def spark_sql(spark: SparkSession) -> SparkSQL:
    return SparkSQL(spark)
