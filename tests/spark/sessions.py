"""Settings of sessions that run tests: tables of a few rows, and a JVM that lives for a minute."""

from __future__ import annotations

from matchwood.spark.session import SHORT_JOB

CHEAP_SESSION = {
    **SHORT_JOB,
    "spark.executor.extraJavaOptions": SHORT_JOB["spark.driver.extraJavaOptions"],
    "spark.sql.codegen.wholeStage": False,
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Spark and the JVM spend more on compiling plans of such tables than on running them."""
