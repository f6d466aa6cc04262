"""Rows of a workload as tables that other programs read: no dictionaries, one row an event.

    predicates   id, attribute, operator, values       one row a predicate
    texts        id, expr                              one row a subscription
    arrays       event_id, attributes, values          one row an event, two lists of one length
    wide         event_id and a column per attribute   one row an event, null where it is absent
    log          offset, kind, id, expr, attributes, values
                 one ordered log: events, and between them subscriptions that come and go

All of them are cut from a workload by row numbers, so that any partition can be made anywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.lang.builder import attr
from matchwood.lang.nodes import And, Expr
from matchwood.workload.interface import Workload
from matchwood.workload.tables import wide_events

_TYPES = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "number": pa.float64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
}


def predicates(workload: Workload, first: int, last: int) -> pa.Table:
    """Subscriptions first .. last - 1, one row a predicate (or the texts of trees)."""
    return _plain(workload.subscriptions(first, last))


def texts(workload: Workload, first: int, last: int) -> pa.Table:
    """Subscriptions first .. last - 1 as texts."""
    table = _plain(workload.subscriptions(first, last))
    if "expr" in table.column_names:
        return table.select(["id", "expr"])
    found: dict[int, list[Expr]] = {}
    columns = (table.column(name).to_pylist() for name in ("id", "attribute", "operator", "values"))
    for id_, name, operator, values in zip(*columns, strict=True):
        found.setdefault(id_, []).append(_predicate(name, operator, [_single(v) for v in values]))
    exprs = [str(each[0] if len(each) == 1 else And(tuple(each))) for each in found.values()]
    return pa.table({"id": pa.array(list(found), pa.int64()), "expr": pa.array(exprs, pa.string())})


def arrays(workload: Workload, first: int, last: int) -> pa.Table:
    """Events first .. last - 1 as two lists each: names and values."""
    table = _plain(workload.events(first, last))
    event = table.column("event").to_numpy()
    if (np.diff(event) < 0).any():
        table = table.take(pa.array(np.argsort(event, kind="stable")))
        event = table.column("event").to_numpy()
    ends = pa.array(np.searchsorted(event, np.arange(first, last + 1)).astype(np.int32))
    lists = [
        pa.ListArray.from_arrays(ends, table.column(name).combine_chunks())
        for name in ("attribute", "value")
    ]
    return pa.table(
        [pa.array(np.arange(first, last)), *lists], names=["event_id", "attributes", "values"]
    )


def wide(workload: Workload, first: int, last: int) -> pa.Table:
    """Events first .. last - 1, a column per attribute of the schema."""
    found = wide_events(workload.events(first, last), first, last)
    columns: dict[str, Any] = {"event_id": pa.array(np.arange(first, last))}
    for name, kind in workload.schema().items():
        wanted = _TYPES[kind]
        has = name in found.column_names
        columns[name] = found.column(name).cast(wanted) if has else pa.nulls(last - first, wanted)
    return pa.table(columns)


def log(workload: Workload, first: int, last: int, every: int) -> pa.Table:
    """Records first .. last - 1 of a log in which every `every`-th record is a change.

    Change c adds subscription n_subscriptions + c / 2 when c is even, and takes c / 2 away when it
    is odd: their number stays what the workload says, if the first ones are there from the start.
    """
    offset = np.arange(first, last)
    is_change = offset % every == 0
    change = offset // every
    n_before = offset - change - 1  # changes at or before a record: offset // every + 1
    adds, leaves = is_change & (change % 2 == 0), is_change & (change % 2 == 1)
    base = workload.n_subscriptions
    number = np.where(adds, base + change // 2, np.where(leaves, change // 2, n_before))
    kind = np.where(adds, "subscribe", np.where(leaves, "unsubscribe", "event"))
    expr = np.full(len(offset), None, object)
    if adds.any():
        added = number[adds]
        expr[adds] = texts(workload, int(added[0]), int(added[-1]) + 1)["expr"].to_pylist()
    events = number[~is_change]
    lo, hi = (int(events[0]), int(events[-1]) + 1) if len(events) else (0, 0)
    found = arrays(workload, lo, hi)
    position = np.full(len(offset), -1, np.int64)
    position[~is_change] = events - lo
    rows = pa.array(position, mask=position < 0)
    return pa.table(
        {
            "offset": offset,
            "kind": pa.array(kind.tolist(), pa.string()),
            "id": number,
            "expr": pa.array(expr.tolist(), pa.string()),
            "attributes": found.column("attributes").take(rows),
            "values": found.column("values").take(rows),
        }
    )


def _plain(table: pa.Table) -> pa.Table:
    """Without dictionary encoding, which other programs know only inside one file."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(i).cast(field.type.value_type)
            table = table.set_column(i, field.name, column.combine_chunks())
    return table


def _single(value: Any) -> Any:
    """A constant; a struct has one field per type, of which one is not null."""
    if isinstance(value, dict):
        return next(each for each in value.values() if each is not None)
    return value


def _predicate(name: str, operator: str, values: list[Any]) -> Expr:
    subject, word = attr(name), operator.upper()
    if word in ("IN", "NOT IN"):
        found: Expr = subject.isin(*values)
        return ~found if word == "NOT IN" else found
    if word in ("BETWEEN", "NOT BETWEEN"):
        found = subject.between(*values)
        return ~found if word == "NOT BETWEEN" else found
    return _COMPARED[word](subject, values[0])


_COMPARED: dict[str, Any] = {
    "=": lambda a, v: a == v,
    "==": lambda a, v: a == v,
    "<>": lambda a, v: a != v,
    "!=": lambda a, v: a != v,
    "<": lambda a, v: a < v,
    "<=": lambda a, v: a <= v,
    ">": lambda a, v: a > v,
    ">=": lambda a, v: a >= v,
    "LIKE": lambda a, v: a.like(v),
    "NOT LIKE": lambda a, v: ~a.like(v),
}
