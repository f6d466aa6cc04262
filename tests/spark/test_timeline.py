"""Values of contexts during a batch, on one matcher: the same as one record after the other."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.engine.stores.context_changes import ContextChange
from matchwood.spark.streams.contexts import ADD, SET, Timeline, Update, carry_out, values_text
from matchwood.spark.streams.state import CHANGE

TYPES = {"price": "number", "genre": "string", "ctx": {"budget": "number", "taste": "string"}}
TEXTS = ("price < ctx.budget", "price > ctx.budget - 2", "genre = ctx.taste", "price > 6",
         "ctx.budget < 4 AND genre = 'b'", "price < ctx.other")  # fmt: skip
PEOPLE = ("ann", "bob")


def values(random: Random, kind: str) -> dict[str, Any]:
    if kind == "strings" and random.random() < 0.3:
        return {"taste": random.choice(["a", "b", f"new{random.randrange(50)}"])}
    if kind == "unknown" and random.random() < 0.2:
        return {"other": random.randrange(12)}
    return {"budget": random.choice([None, *range(12)])}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numbers", "strings", "unknown"])
@pytest.mark.parametrize("seed", range(8))
def test_values_during_a_batch_are_those_of_one_record_after_the_other(
    kind: str, seed: int
) -> None:
    random = Random(seed)
    matcher, oracle = mw.Matcher(schema=TYPES), mw.Matcher(schema=TYPES)
    for each in (matcher, oracle):
        for version in range(6):
            each.add(version, TEXTS[version % 5], context=PEOPLE[version % 2])
        each.set_context("ann", {"budget": 5, "taste": "a"})
    rows: list[tuple[Any, ...]] = []
    expected: list[list[int]] = []
    events: list[dict[str, Any]] = []
    offsets: list[int] = []
    version = 6
    for offset in range(60):
        draw, who = random.random(), random.choice(PEOPLE)
        if draw < 0.15:
            # not the last text unless its name has a type by then
            text = random.choice(TEXTS if "ctx.other" in oracle.schema else TEXTS[:5])
            oracle.add(version, text, context=who)
            rows.append((ADD, version, offset, text, None, str(version), who))
            version += 1
        elif draw < 0.5:
            new = values(random, kind)
            oracle.set_context(who, new)
            rows.append((SET, None, offset, None, values_text(new), who, None))
        else:
            event = {"price": random.randrange(12), "genre": random.choice(["a", "b", "new7"])}
            events.append(event)
            offsets.append(offset)
            expected.append(oracle.match(event))
    began = {row[1]: row[2] for row in rows if row[0] == ADD}
    fields = [*CHANGE, pa.field("id", pa.string()), pa.field("context", pa.string())]
    columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), fields, strict=True)]
    timeline = carry_out(matcher, pa.table(columns, schema=pa.schema(fields)), 0)
    ids = matcher.arrow_ids().to_numpy()
    encoded = matcher.encode(events)
    for _ in range(2):  # the second time values go back first
        found = matcher.find(encoded, timeline.changes(np.array(offsets)))
        for i, offset in enumerate(offsets):
            slots = found.slots[found.offsets[i] : found.offsets[i + 1]]
            held = [v for v in ids[slots].tolist() if began.get(v, -1) < offset]
            assert sorted(held) == sorted(expected[i])
    timeline.end()
    for who in PEOPLE:
        assert matcher.context(who) == oracle.context(who)


@pytest.mark.parametrize("direct", [False, True])
def test_strings_stay_while_events_that_were_encoded_with_them_are_matched(direct: bool) -> None:
    """Values go back to strings that no context has any more; those have the same keys then."""
    n = 800
    matcher = mw.Matcher()
    matcher.add(0, "genre = ctx.taste", context="ann")
    updates = [{"taste": f"word {i * 7919 % n}"} for i in range(n)]
    events = [{"genre": f"word {i * 7919 % n}"} for i in range(n)]
    if direct:
        matcher.hold_strings()
        matcher.set_context_many([("ann", each) for each in updates])
        encoded = matcher.encode(events)
        changes = [partial(matcher.set_context, "ann", each) for each in updates]
        context_changes = [ContextChange(i, change) for i, change in enumerate(changes)]
        assert matcher.find(encoded, context_changes).offsets.tolist() == list(range(n + 1))
        return
    timeline = Timeline(matcher)
    for i, each in enumerate(updates):
        timeline.append(Update(2 * i, "ann", each))
    timeline.end()
    encoded = matcher.encode(events)
    for _ in range(2):
        context_changes = timeline.changes(np.arange(1, 2 * n, 2))
        assert matcher.find(encoded, context_changes).offsets.tolist() == list(range(n + 1))
    timeline.end()
    Timeline(matcher)
    assert matcher.stats()["context_strings"] == 1


@pytest.mark.parametrize("start", [{}, {"x": 1}, {"u.v": 3, "u.w": 7}, {"u.w": 2}])
@pytest.mark.parametrize(
    "updates",
    [
        [{"u": None}],
        [{"u.v": 4}],
        [{"u.v": None}],
        [{"u": None}, {"u.v": 4}],
        [{"u.v": 4}, {"u": None}, {"x": 2}],
        [{"x": 2}, {"u": None}, {"u.w": 4}, {"u.w": None}],
        [{"o.p.q": 1}, {"o.p": None}, {"o": None}],
    ],
)
def test_values_of_objects_go_back_as_they_were(updates, start) -> None:
    texts = ("a = ctx.u.v", "ctx.u IS NULL", "a < ctx.u.w", "ctx.o.p IS NULL", "ctx.o.p.q = 1")
    matcher, oracle = mw.Matcher(), mw.Matcher()
    for each in (matcher, oracle):
        each.add_many([(n, text, "ann") for n, text in enumerate(texts)])
        each.set_context("ann", {"u": {"v": 1, "w": 1}, "o": {"p": {"q": 0}}, "x": 0})
        each.remove_context("ann")
        each.set_context("ann", start)
    timeline = Timeline(matcher)
    states = [(oracle.context("ann"), oracle.match({"a": 3}))]
    for offset, new in enumerate(updates):
        timeline.append(Update(offset, "ann", new))
        oracle.set_context("ann", new)
        states.append((oracle.context("ann"), oracle.match({"a": 3})))
    for n in [*range(len(states)), *range(len(states) - 1, -1, -1), len(updates), 0]:
        timeline.go(n)
        assert (matcher.context("ann"), matcher.match({"a": 3})) == states[n]
