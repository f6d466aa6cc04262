"""Spark SQL as a judge: the authority on what the language means.

It reads Matchwood's text but for XOR and XNOR, which it lacks: they are `<>` and `=` between
parentheses.  Expressions are interpreted, not compiled: each is used for a few rows only.

ANSI mode is left on, Spark's default: it refuses comparisons between unlike types that Matchwood
refuses too.  On well-typed text it changes nothing (`test_ansi_mode_changes_no_answer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchwood.lang.nodes import Expr
from matchwood.lang.printer import Printer
from naive import Truth
from oracle.columns import to_arrow
from strategies import Event, Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHUNK = 60
"""Expressions per job: enough to share the cost of a job, few enough for the analyser."""


class SparkPrinter(Printer):
    """Matchwood's text without XOR and XNOR."""

    def xor(self, left: Expr, right: Expr) -> str:
        return f"(({self.text(left)}) <> ({self.text(right)}))"

    def xnor(self, left: Expr, right: Expr) -> str:
        return f"(({self.text(left)}) = ({self.text(right)}))"


class SparkSQL:
    """A session of its own inside the shared Spark, so that settings stay here."""

    name = "Spark SQL"

    def __init__(self, spark: SparkSession, ansi: bool = True) -> None:
        self.session = spark.newSession()
        self._print = SparkPrinter()
        for name, value in {
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.caseSensitive": "true",
            "spark.sql.ansi.enabled": str(ansi).lower(),
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        }.items():
            self.session.conf.set(name, value)

    def takes(self, columns: Schema) -> bool:
        return True

    def text(self, expr: Expr) -> str:
        return self._print.text(expr)

    def truths(self, columns: Schema, events: list[Event], exprs: list[Expr]) -> list[list[Truth]]:
        return self.answers(columns, events, [self.text(expr) for expr in exprs])

    def answers(self, columns: Schema, events: list[Event], texts: list[str]) -> list[list[Truth]]:
        """What each text, in Spark's own spelling, is for every event."""
        frame = self.session.createDataFrame(to_arrow(columns, events, time_zone="UTC"))
        found: list[list[Truth]] = []
        for start in range(0, len(texts), CHUNK):
            chunk = texts[start : start + CHUNK]
            selected = [f"({text}) AS r{i}" for i, text in enumerate(chunk)]
            found += [
                column.to_pylist() for column in frame.selectExpr(*selected).toArrow().columns
            ]
        return found
