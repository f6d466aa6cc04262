"""BookshopRows: the bookshop as a workload, every wish and every offer by its number.

Texts with OR, NOT, LIKE and IS NULL, and values of every type: what the demo runs on Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.workload.bookshop import Bookshop, Event
from matchwood.workload.interface import Workload

_TEXTS = ("genre", "author", "title", "format", "language", "seller.country")
_NUMBERS = ("price", "pages", "rating", "discount", "seller.sales")
_FLAGS = ("used", "damaged", "signed")
_VALUE = pa.struct(
    [
        ("text", pa.string()),
        ("number", pa.float64()),
        ("flag", pa.bool_()),
        ("moment", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
    ]
)


@dataclass(frozen=True, kw_only=True)
class BookshopRows(Workload):
    """Readers' wishes as texts, and books on offer."""

    name: ClassVar[str] = "bookshop"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "smoke": {"n_subscriptions": 2_000, "n_events": 200},
        "small": {"n_subscriptions": 100_000, "n_events": 10_000},
    }

    def schema(self) -> Schema:
        types = {
            **dict.fromkeys(_TEXTS, "string"),
            **dict.fromkeys(_NUMBERS, "number"),
            **dict.fromkeys(_FLAGS, "bool"),
        }
        return Schema({**types, "listed_at": "timestamp", "published": "date"})

    def subscriptions(self, first: int, last: int) -> pa.Table:
        shop = Bookshop(0)
        texts = [shop.at(f"{self.seed}/wish/{row}").subscription() for row in range(first, last)]
        ids = pa.array(range(first, last), pa.int64())
        return pa.table({"id": ids, "expr": pa.array(texts, pa.string())})

    def events(self, first: int, last: int) -> pa.Table:
        shop = Bookshop(0)
        rows: list[int] = []
        names: list[str] = []
        values: list[dict[str, Any]] = []
        for row in range(first, last):
            for name, value in _flat(shop.at(f"{self.seed}/offer/{row}").event()):
                rows.append(row)
                names.append(name)
                values.append({_field(value): value})
        attribute = pa.array(names, pa.string()).dictionary_encode()
        columns = [pa.array(rows, pa.int64()), attribute, pa.array(values, _VALUE)]
        return pa.table(columns, names=["event", "attribute", "value"])


def _flat(event: Event) -> list[tuple[str, Any]]:
    seller = event.pop("seller")
    return [*event.items(), *((f"seller.{name}", value) for name, value in seller.items())]


def _field(value: Any) -> str:
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "text"
    return "moment" if isinstance(value, datetime) else "day"
