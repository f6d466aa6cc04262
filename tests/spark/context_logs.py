"""Logs with contexts: subscriptions and values change between events; the definition of right."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import matchwood as mw
from spark.logs import Record

LOG = (
    "offset BIGINT, kind STRING, id STRING, expr STRING, attributes MAP<STRING, STRING>, "
    "context STRING"
)
TYPES = {
    "price": "number",
    "genre": "string",
    "ctx": {"budget": "number", "taste": "string", "away": "bool"},
}
TEXTS = (
    "price < ctx.budget",
    "price > ctx.budget + 3 OR genre = ctx.taste",
    "NOT ctx.away AND price >= 4",
    "ctx.taste LIKE 'a%' AND price < 9",
    "ctx.budget IS NULL AND genre = 'a'",
    "price > 6",
    "genre = 'b' OR price = 3",
    "price < ctx.taste",  # of the wrong type
)


def made_log(seed: int, n: int) -> list[Record]:
    random = Random(seed)
    log: list[Record] = []
    for offset in range(n):
        draw, who = random.random(), random.choice(("ann", "bob", "eve"))
        record: Record = {"offset": offset, "expr": None, "attributes": None, "context": None}
        if draw < 0.2:
            text = random.choice(TEXTS)
            needs = "ctx" in text and random.random() < 0.95
            record |= {"kind": "subscribe", "id": f"s{random.randrange(9)}", "expr": text}
            record["context"] = who if needs or random.random() < 0.2 else None
        elif draw < 0.25:
            record |= {"kind": "unsubscribe", "id": f"s{random.randrange(9)}"}
        elif draw < 0.55:
            record |= {"kind": "context", "id": who, "attributes": _values(random)}
        else:
            price = "cheap" if random.random() < 0.03 else str(random.randrange(12))
            values = {"price": price, "genre": random.choice(("a", "abc", "b"))}
            record |= {"kind": "event", "id": f"e{offset}", "attributes": values}
        log.append(record)
    return log


def _values(random: Random) -> dict[str, str | None] | None:
    drawn = {
        "budget": random.choice((None, "7.5", "many", *map(str, range(5, 14)))),
        "taste": random.choice((None, "a", "abc", "b", "ab", f"z{random.randrange(50)}")),
        "away": random.choice((None, "true", "false")),
    }
    if random.random() < 0.03:
        return None
    return {name: drawn[name] for name in random.sample(list(drawn), random.randint(1, 2))}


def sequential(log: Iterable[Record]) -> tuple[dict[str, list[str]], int]:
    """One record after the other: the matches of every good event, and how many were refused."""
    matcher, found, refused = mw.Matcher(schema=TYPES), {}, 0
    for record in log:
        kind, id_ = record["kind"], record["id"]
        try:
            if kind == "subscribe":
                matcher.add("tried", record["expr"], context=record["context"])
                matcher.remove("tried")
                if id_ in matcher:
                    matcher.remove(id_)
                matcher.add(id_, record["expr"], context=record["context"])
            elif kind == "unsubscribe":
                matcher.remove(id_)
            elif kind == "context":
                matcher.set_context(id_, _typed(record["attributes"]))
            else:
                found[id_] = sorted(matcher.match(_typed(record["attributes"])))
        except mw.MatchwoodError:
            refused += 1
    return found, refused


def _typed(values: dict[str, str | None] | None) -> Any:
    if values is None:
        return None
    numbers = {"price": float, "budget": float, "away": {"true": True, "false": False}.get}
    found: dict[str, Any] = {}
    for name, text in values.items():
        try:
            found[name] = text if text is None else numbers.get(name, str)(text)
        except ValueError:
            found[name] = text
    return found


def read_log(spark, folder: Path):
    reader = spark.readStream.schema(LOG).option("maxFilesPerTrigger", 1)
    return reader.json(str(folder))
