"""BookshopRows: the bookshop as a workload, every wish and every offer by its number.

Texts with OR, NOT, LIKE and IS NULL, and values of every type: what the demo runs on Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.workload.bookshop import Bookshop
from matchwood.workload.bookshop_offers import offers
from matchwood.workload.interface import Workload
from matchwood.workload.tables import coded, entry_table

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
        table = offers(self.seed, np.arange(first, last))
        rows, codes, values = [], [], []
        for code, column in enumerate(table.columns):
            there = np.flatnonzero(column.is_valid().to_numpy())
            rows.append(there)
            codes.append(np.full(len(there), code, np.int32))
            values.append(_as_value(column.combine_chunks().drop_null()))
        row = np.concatenate(rows)
        order = np.argsort(row, kind="stable")
        attribute = coded(np.concatenate(codes)[order], table.column_names)
        return entry_table(
            first + row[order], attribute, pa.concat_arrays(values).take(pa.array(order))
        )


def _as_value(column: pa.Array) -> pa.StructArray:
    """Values of one type as structs with a field per type, the others of which are null."""
    field = next(name for name, is_kind in _FIELDS.items() if is_kind(column.type))
    parts = [
        column.cast(each.type) if each.name == field else pa.nulls(len(column), each.type)
        for each in _VALUE
    ]
    return pa.StructArray.from_arrays(parts, fields=list(_VALUE))


_FIELDS = {
    "text": pa.types.is_string,
    "flag": pa.types.is_boolean,
    "moment": pa.types.is_timestamp,
    "day": pa.types.is_date,
    "number": lambda _: True,
}
