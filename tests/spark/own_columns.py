"""Subscriptions with all optional columns, events with filters; and who gets whom, naively."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa

import naive
from matchwood.lang.parser import parse

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CONTEXTS = {
    "ann": {"budget": 12, "taste": "art", "away": False},
    "bob": {"budget": 7, "taste": None, "away": True},
}
CONTEXT_TABLE = pa.table(
    {
        "context": list(CONTEXTS),
        **{
            name: [each[name] for each in CONTEXTS.values()] for name in ("budget", "taste", "away")
        },
    }
)
PREDICATES = (
    ("price", "<", [9]), ("price", ">=", [4]), ("price", "BETWEEN", [2, 6]), ("price", "=", [5]),
    ("genre", "=", ["art"]), ("genre", "IN", ["art", "law"]), ("genre", "IS NULL", []),
    ("genre", "IS NOT NULL", []), ("used", "=", [True]), ("ctx.budget", ">", [8]),
    ("ctx.taste", "=", ["art"]), ("ctx.away", "=", [False]), ("ctx.taste", "IS NULL", []),
)  # fmt: skip
TEXTS = (
    "price < ctx.budget", "price = ctx.budget", "genre = ctx.taste OR price > 8", "price <= 10",
    "NOT price < ctx.budget AND used", "ctx.away", "genre = 'art' OR price = 3",
    "price BETWEEN ctx.budget - 3 AND ctx.budget + 1 AND genre = 'law'", "price > ctx.missing",
)  # fmt: skip
FILTERS = (
    None, "city = 'Rome'", "age >= 18 AND NOT city = 'Oslo'", "age IS NULL OR age < 18",
    "NOT age > 20", "city LIKE 'R%' OR age = 40",
)  # fmt: skip
Row = dict[str, Any]


def sql(predicate: tuple[str, str, list[Any]]) -> str:
    name, operator, values = predicate
    words = [f"'{each}'" if isinstance(each, str) else str(each).lower() for each in values]
    if operator == "IN":
        return f"{name} IN ({', '.join(words)})"
    return " ".join([name, operator, " AND ".join(words)]).strip()


def subscriptions(random: Random, n: int, as_predicates: bool) -> list[Row]:
    """Each with a text; and with predicates if it is such a conjunction."""
    return [_subscription(random, id_, as_predicates) for id_ in range(n)]


def _subscription(random: Random, id_: int, as_predicates: bool) -> Row:
    chosen = random.sample(PREDICATES, random.randint(1, 3))
    text = " AND ".join(map(sql, chosen))
    if not as_predicates and random.random() < 0.5:
        text = random.choice(TEXTS)
    context = random.choice((*CONTEXTS, "eve")) if "ctx." in text else None
    if context is None and random.random() < 0.2:
        context = "bob"
    hours = random.choice((None, -1000, -1, 0, 1, 1000))
    own = {"city": random.choice((None, "Rome", "Oslo", "Riga")),
           "age": random.choice((None, 10, 20, 40))}  # fmt: skip
    return {
        "id": id_, "expr": text, "predicates": chosen, "context": context,
        "priority": random.choice((None, 0, 1, 1, 5, -3)),
        "expires": None if hours is None else NOW + timedelta(hours=hours),
        "attributes": None if random.random() < 0.2 else own,
    }  # fmt: skip


def events(random: Random, n: int) -> list[Row]:
    made = [
        {
            "price": random.choice((None, *range(14))),
            "genre": random.choice((None, "art", "law", "tea")),
            "used": random.choice((None, True, False)),
        }
        for _ in range(n)
    ]
    return [{**each, "filter": random.choice(FILTERS)} for each in made]


@dataclass(frozen=True)
class Given:
    """What is on: columns that subscriptions have, and what is asked for."""

    limit: int | None = None
    has_filter: bool = True


def naively(rows: list[Row], event_rows: list[Row], given: Given) -> dict[int, list[int]]:
    """The definition: who gets whom, from one subscription and one event after the other."""
    return {n: list(_matched(rows, event, given)) for n, event in enumerate(event_rows)}


def _matched(rows: list[Row], event: Row, given: Given) -> Iterator[int]:
    found = [row for row in rows if _holds(row, event, given)]
    if given.limit is not None:
        found = sorted(found, key=lambda row: (-(row["priority"] or 0), row["id"]))[: given.limit]
    return (row["id"] for row in found)


def _holds(row: Row, event: Row, given: Given) -> bool:
    if row["expires"] is not None and row["expires"] <= NOW:
        return False
    wanted = event["filter"] if given.has_filter else None
    if wanted is not None and not naive.matches(parse(wanted), row["attributes"] or {}):
        return False
    values = {name: value for name, value in event.items() if name != "filter"}
    tree, context = parse(row["expr"]), CONTEXTS.get(row["context"])
    return naive.matches(tree, naive.in_context(values, context))


OWN_TYPES = {
    "struct": pa.struct([("city", pa.string()), ("age", pa.int64())]),
    "map": pa.map_(pa.string(), pa.string()),
    "json": pa.string(),
}


def own_value(own: Row | None, kind: str) -> Any:
    if own is None or kind == "struct":
        return own
    if kind == "json":
        return json.dumps(own)
    return [(name, None if value is None else str(value)) for name, value in own.items()]


def texts_table(rows: list[Row], kind: str) -> pa.Table:
    return pa.table(
        {
            "id": [row["id"] for row in rows],
            "expr": [row["expr"] for row in rows],
            **_optional(rows, kind),
        }
    )


def predicates_table(rows: list[Row], kind: str) -> pa.Table:
    """A row per predicate; everything else is repeated."""
    each = [(row, *predicate) for row in rows for predicate in row["predicates"]]
    value = pa.struct([("number", pa.int64()), ("text", pa.string()), ("flag", pa.bool_())])
    names = {bool: "flag", int: "number", str: "text"}
    lists = [[{names[type(one)]: one} for one in values] or None for _, _, _, values in each]
    return pa.table(
        {
            "id": [row["id"] for row, *_ in each],
            "attribute": [name for _, name, _, _ in each],
            "operator": [operator for _, _, operator, _ in each],
            "values": pa.array(lists, pa.list_(value)),
            **_optional([row for row, *_ in each], kind),
        }
    )


def _optional(rows: list[Row], kind: str) -> dict[str, pa.Array]:
    moment = pa.timestamp("us", "UTC")
    own = [own_value(row["attributes"], kind) for row in rows]
    return {
        "context": pa.array([row["context"] for row in rows], pa.string()),
        "priority": pa.array([row["priority"] for row in rows], pa.int32()),
        "expires": pa.array([row["expires"] for row in rows], moment),
        "attributes": pa.array(own, OWN_TYPES[kind]),
    }


def events_table(rows: list[Row]) -> pa.Table:
    table = pa.Table.from_struct_array(pa.array(rows))
    return table.append_column("event_id", pa.array(range(len(rows)), pa.int64()))
