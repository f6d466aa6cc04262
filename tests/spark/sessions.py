"""Settings of sessions that run tests: tables of a few rows, and a JVM that lives for a minute."""

from __future__ import annotations

from matchwood.spark.session import SHORT_JOB

CHEAP_SESSION = {
    **SHORT_JOB,
    "spark.executor.extraJavaOptions": SHORT_JOB["spark.driver.extraJavaOptions"],
    "spark.sql.codegen.wholeStage": False,
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Spark and the JVM spend more on compiling plans of such tables than on running them.

Tried: an archive of loaded classes (`-XX:SharedArchiveFile`) takes two seconds of CPU off each of a
dozen starts (3.1 instead of 5.1 with a first job), and has to be made first: 155 MB.
"""

PRELOADED = {"spark.python.daemon.module": "spark.preloaded"}
"""Workers that are ready at once; the folder of the tests has to be on PYTHONPATH."""
