"""Spark doors: partition and merge, no algorithms.

Importing this package does not import pyspark; calling into it does.
"""

from __future__ import annotations

from matchwood.spark.java import ensure_java, java_home
from matchwood.spark.session import local_session

__all__ = ["ensure_java", "java_home", "local_session"]
