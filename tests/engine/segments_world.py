"""Small segments: subscriptions, events and what a matcher has to answer."""

from __future__ import annotations

from typing import Any

import matchwood as mw
from engine.invariants import check
from naive import matches

WAIT = 60.0
EVENTS: list[dict[str, Any]] = [
    {"x": x, "y": x % 3, "s": "abc"[x % 3]} for x in range(7)
] + [{}, {"s": "b"}]  # fmt: skip
TEXTS = ["x = {i}", "x > {i} AND y = 1", "s = 'b' OR x < {i}", "x IN (1, {i}) AND NOT y = 2",
         "s LIKE '%b' AND x >= {i}", "y IS NULL", "TRUE", "x < 1 AND x > 2"]  # fmt: skip
Model = dict[int | str, str]


def text(i: int) -> str:
    return TEXTS[i % len(TEXTS)].format(i=i % 7)


def filled(n: int) -> tuple[mw.Matcher, Model]:
    """A matcher whose subscriptions are in segments of 4 and 5, and in the head."""
    m, model = mw.Matcher(), {i: text(i) for i in range(n)}
    for first in range(0, n, 5):
        rows = [(i, model[i]) for i in range(first, min(first + 5, n))]
        if first % 2:
            assert not m.add_many(rows).errors
        else:
            for id_, expr in rows:
                m.add(id_, expr)
    return m, model


def expected(model: Model, event: dict[str, Any]) -> list[int | str]:
    return [id_ for id_, expr in model.items() if matches(mw.parse(expr), event)]


def agree(m: mw.Matcher, model: Model) -> None:
    answers = [expected(model, event) for event in EVENTS]
    assert [m.match(event) for event in EVENTS] == answers
    found = m.match_many(EVENTS)
    assert list(found) == answers
    assert found.ids[: found.offsets[-1]].tolist() == [id_ for each in answers for id_ in each]
    assert [m.match_count(event) for event in EVENTS] == list(map(len, answers))
    assert m.ids() == list(model)
    assert {id_: each.text for id_, each in m.items()} == model
    assert len(m) == len(model)
    assert m.verify(EVENTS)
    check(m)
