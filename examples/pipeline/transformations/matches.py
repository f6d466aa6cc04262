"""The tables of the pipeline."""

from __future__ import annotations

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import struct

from matchwood.spark import match_udf

FOLDER = Path(__file__).resolve().parent.parent / "data"  # as prepare.py has filled it
spark = SparkSession.active()


@dp.materialized_view
def subscriptions() -> DataFrame:
    return spark.read.parquet(str(FOLDER / "subscriptions.parquet"))


@dp.materialized_view
def events() -> DataFrame:
    return spark.read.parquet(str(FOLDER / "events.parquet"))


@dp.materialized_view
def matches() -> DataFrame:
    found = match_udf(str(FOLDER / "snapshot"))
    ids = found(struct("attributes", "values")).alias("subscription_ids")
    return spark.table("events").select("event_id", ids)
