r"""DuckDB as a judge.

It reads Matchwood's text but for these spellings, which the dialect changes and nothing else:

    a XOR b, a XNOR b   are `<>` and `=` between parentheses
    `name`              is "name"
    'a\\b', '\n'        a backslash in a string is itself; characters stand for themselves
    LIKE 'a\\%'         has no escape character until it is told one
    double('NaN')       is a cast

Names are case-insensitive in DuckDB, so no table has both `genre` and `Genre`.
"""

from __future__ import annotations

from math import isfinite

import duckdb

from matchwood.lang.nodes import Expr
from naive import Truth
from oracle.columns import to_arrow
from oracle.spark_oracle import SparkPrinter
from strategies import Event, Schema


class DuckDBPrinter(SparkPrinter):
    """Matchwood's text in DuckDB's spelling."""

    def name(self, name: str) -> str:
        return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))

    def string(self, value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    def pattern(self, pattern: str) -> str:
        return self.string(pattern) + (r" ESCAPE '\'" if "\\" in pattern else "")

    def float(self, value: float) -> str:
        return super().float(value) if isfinite(value) else f"CAST('{value}' AS DOUBLE)"


class DuckDB:
    """One in-memory database; a table per question."""

    name = "DuckDB"

    def __init__(self) -> None:
        self._database = duckdb.connect()
        self._print = DuckDBPrinter()

    def takes(self, columns: Schema) -> bool:
        return len({name.lower() for name in columns}) == len(columns)

    def text(self, expr: Expr) -> str:
        return self._print.text(expr)

    def truths(self, columns: Schema, events: list[Event], exprs: list[Expr]) -> list[list[Truth]]:
        return self.answers(columns, events, [self.text(expr) for expr in exprs])

    def answers(self, columns: Schema, events: list[Event], texts: list[str]) -> list[list[Truth]]:
        """What each text, in DuckDB's own spelling, is for every event."""
        events_table = to_arrow(columns, events, time_zone=None)
        self._database.register("events", events_table)
        selected = ", ".join(f"({text}) AS r{i}" for i, text in enumerate(texts))
        found = self._database.sql(f"SELECT {selected} FROM events").to_arrow_table()
        return [column.to_pylist() for column in found.columns]
