"""What a new user does first: alerts on products, and a service that no bad alert stops."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

import matchwood as mw

ALERTS = {
    "cheap": "price.amount < 20 AND price.currency = 'EUR'",
    "exact": "price.amount = 19.99",
    "sale": "array_contains(tags, 'Schlußverkauf') AND NOT array_contains(tags, 'used')",
    "any size": "exists(sizes, s -> s BETWEEN 38 AND 40)",
    "many tags": "size(tags) >= 2",
    "brand": "lower(brand.name) = 'müller' OR brand.name LIKE '%本'",
    "branded": "brand IS NOT NULL",
    "fresh": "listed_at >= TIMESTAMP '2026-02-01 08:00:00Z'",
    "that day": "listed_at >= DATE '2026-02-01' AND listed_at < DATE '2026-02-02'",
    "value": "price.amount * stock > 1000",
    "first tag": "tags[0] = 'new'",
    "not sold out": "stock IS DISTINCT FROM 0",
    "rated": "coalesce(rating, 0) >= 4",
    "page": "url RLIKE '^https://[a-z]+/p/[0-9]+$'",
    "emoji": "title LIKE '%😀%'",
}
PRODUCTS: list[tuple[dict[str, Any], set[str]]] = [
    (
        {
            "title": "Schuh 😀", "price": {"amount": 19.99, "currency": "EUR"}, "stock": 100,
            "tags": ["new", "Schlußverkauf"], "sizes": [37, 39.5], "brand": {"name": "MÜLLER"},
            "listed_at": "2026-02-01T09:30:00+01:00", "url": "https://shop/p/12", "rating": 4.5,
        },
        {"cheap", "exact", "sale", "any size", "many tags", "brand", "branded", "fresh", "that day",
         "value", "first tag", "not sold out", "rated", "page", "emoji"},
    ),
    (
        {
            "title": None, "price": {"amount": "19.99", "currency": "EUR"}, "stock": 0,
            "tags": "sale", "sizes": ["38", 38], "brand": {"name": "日本"}, "listed_at": "soon",
            "url": 5, "rating": None,
        },
        {"any size", "brand", "branded"},
    ),
    ({"tags": [], "brand": {}, "sizes": None, "stock": "many"}, {"branded", "not sold out"}),
    ({}, {"not sold out"}),
]  # fmt: skip


def service(**options: Any) -> mw.Matcher:
    m = mw.Matcher(**options)
    for id_, text in ALERTS.items():
        m.add(id_, text)
    return m


@pytest.mark.parametrize("index", ["auto", "be_tree", "a_tree"])
def test_product_alerts_over_nested_json(index):
    m = service(index=index)
    events = [event for event, _ in PRODUCTS]
    expected = [ids for _, ids in PRODUCTS]
    assert [set(m.match(event)) for event in events] == expected
    found = m.match_many(events)
    assert found.errors == {}
    assert [set(each) for each in found] == expected
    lines = "\n".join([json.dumps(event) for event in events])
    assert [set(each) for each in m.match_many_json(lines.encode())] == expected


def test_decimals_dates_and_times_of_programs_say_the_same():
    m = service()
    event = {
        "price": {"amount": Decimal("19.99"), "currency": "EUR"},
        "stock": 51,
        "listed_at": datetime(2026, 2, 1, 8, 30, tzinfo=UTC),
    }
    expected = {"cheap", "exact", "fresh", "that day", "value", "not sold out"}
    assert set(m.match(event)) == expected
    assert set(m.match({**event, "listed_at": date(2026, 2, 1)})) == expected - {"fresh"}
    dearer = {**event, "price": {"amount": Decimal("19.990000000000000000001"), "currency": "EUR"}}
    assert set(m.match(dearer)) == expected - {"exact"}


BAD = [
    "tags = 'sale'", "price = 5", "brand > 3", "stock LIKE '1%'", "1 / stock > 2", "tags > 5",
    "cast(title AS int) = 3", "title = 5", "price.amount = 'x'", "listed_at = 5",
    "lower(sizes) = 'a'", "array_contains(title, 'x')", "url = DATE '2026-01-01'", "rating",
]  # fmt: skip


def test_one_bad_alert_changes_nothing_for_the_others():
    m = service()
    events = [event for event, _ in PRODUCTS]
    before = m.match_many(events).to_pylist()
    for text in BAD:
        m.add("bad", text)
        found = m.match_many(events)
        assert found.errors == {}, text
        assert [[id_ for id_ in each if id_ != "bad"] for each in found] == before, text
        m.remove("bad")
        assert m.match_many(events).to_pylist() == before, text


@pytest.mark.parametrize("text", ["price <", "lowr(x) = 'a'", "count(*) > 1", "x IN ()", "", "5"])
def test_an_alert_that_is_refused_leaves_no_trace(text):
    m = service()
    before = m.stats()["attributes"]
    with pytest.raises(mw.MatchwoodError, match="expected"):
        m.add("bad", text)
    assert "bad" not in m.ids()
    assert m.stats()["attributes"] == before
