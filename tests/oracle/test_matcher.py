"""The Matcher finds exactly the subscriptions that are TRUE, whatever carries the events."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import reduce
from itertools import pairwise, product
from operator import and_
from random import Random
from typing import Any

import pandas as pd
import pytest

import matchwood as mw
from matchwood.lang.nodes import TRUE, Expr, In, Like, Predicate
from matchwood.lang.parser import parse
from naive import can_hold, evaluate, holds_interval, matches
from oracle.agreement import LONG, N_EVENTS, N_EXPRESSIONS, each_seed, table
from oracle.columns import nested, to_arrow
from oracle.shared import constants
from oracle.spellings import COLUMNS, EVENTS, TEXTS
from strategies import Event, Schema, schema, workload

MIN_PAIRS = 400_000 if LONG else 20_000
N_TABLES = 5
Subscriptions = list[tuple[str, Expr]]
Drawn = tuple[Schema, Subscriptions, list[Event]]


def matcher(subscriptions: Subscriptions, types: Schema | None) -> mw.Matcher:
    made = mw.Matcher(schema=types)
    report = made.add_many((id_, str(expr)) for id_, expr in subscriptions)
    assert report.errors == []
    return made


def agree(draw: Callable[[int], Drawn], match: Callable[..., mw.Matches]) -> None:
    """`match(types, subscriptions, events)` is the truth on enough pairs, TRUE and not."""
    pairs: Counter[bool] = Counter()

    def check(seed: int) -> None:
        types, subscriptions, events = draw(seed)
        found = match(types, subscriptions, events)
        assert found.errors == {}
        for event, ids in zip(events, found, strict=True):
            expected = [id_ for id_, expr in subscriptions if matches(expr, event)]
            assert ids == expected, explained(ids, expected, subscriptions, event)
            pairs[True] += len(expected)
            pairs[False] += len(subscriptions) - len(expected)

    each_seed(N_TABLES, check)
    assert pairs.total() >= MIN_PAIRS
    assert min(pairs.values()) >= MIN_PAIRS / 5


def explained(
    found: list[Any], expected: list[Any], subscriptions: Subscriptions, event: Event
) -> str:
    """The shortest expression that went wrong."""
    wrong = set(found) ^ set(expected)
    texts = sorted((str(expr) for id_, expr in subscriptions if id_ in wrong), key=len)
    if not texts:
        return f"the right matches in another order: {found}, expected {expected}"
    return f"{texts[0]} is {evaluate(parse(texts[0]), event)} on {event}"


def draw_mixed(seed: int) -> Drawn:
    """Number attributes carry ints and floats side by side, as only dicts can."""
    return workload(Random(seed), N_EXPRESSIONS, N_EVENTS)


def draw_plain(seed: int) -> Drawn:
    """As `draw_mixed`, with constants from which an attribute's type can be learned."""
    rng = Random(seed)
    types = schema(rng)

    def teaches(predicate: Predicate) -> bool:
        """A date beside a timestamp does not tell which of the two its attribute is."""
        is_timestamp = types[predicate.name] == "timestamp"
        return types[predicate.name] not in ("timestamp", "date") or all(
            isinstance(c, datetime) is is_timestamp for c in constants(predicate) if c is not None
        )

    return workload(rng, N_EXPRESSIONS, N_EVENTS, schema_=types, allow=teaches)


def draw_columns(seed: int) -> Drawn:
    """Number attributes are all int or all float, and constants are not spared."""
    columns, exprs, events = table(seed, is_allowed=lambda _predicate, _columns: True)
    return columns, [(f"s{i}", expr) for i, expr in enumerate(exprs)], events


@pytest.mark.slow
def test_dicts_under_a_declared_schema():
    agree(draw_mixed, lambda types, subs, events: matcher(subs, types).match_many(events))


@pytest.mark.slow
def test_dicts_under_learned_types():
    agree(draw_plain, lambda _, subs, events: matcher(subs, None).match_many(events))


@pytest.mark.slow
def test_nested_dicts():
    def match(types, subs, events):
        return matcher(subs, types).match_many([nested(types, event) for event in events])

    agree(draw_mixed, match)


@pytest.mark.slow
def test_arrow_tables_with_structs():
    def match(types, subs, events):
        return matcher(subs, types).match_many(to_arrow(types, events, "UTC"))

    agree(draw_columns, match)


@pytest.mark.slow
def test_arrow_tables_under_learned_types_and_without_a_time_zone():
    def draw(seed: int) -> Drawn:
        types, subs, events = draw_plain(seed)
        kept = {name: kind for name, kind in types.items() if kind != "number"}
        return kept, subs, [{n: v for n, v in event.items() if n in kept} for event in events]

    def match(types, subs, events):
        return matcher(subs, None).match_many(to_arrow(types, events, None))

    agree(draw, match)


@pytest.mark.slow
def test_pandas_frames_of_arrow_columns():
    def match(types, subs, events):
        frame = to_arrow(types, events, "UTC").to_pandas(types_mapper=pd.ArrowDtype)
        return matcher(subs, types).match_many(frame)

    agree(draw_columns, match)


@pytest.mark.slow
def test_pandas_frames_of_objects_where_nan_is_absent():
    def draw(seed: int) -> Drawn:
        types, subs, events = draw_mixed(seed)
        return types, subs, [{n: v for n, v in event.items() if v == v} for event in events]

    def match(types, subs, events):
        frame = pd.DataFrame(events, columns=list(types), dtype=object)
        return matcher(subs, types).match_many(frame)

    agree(draw, match)


def test_one_event_at_a_time_gives_what_the_batch_gives():
    types, subscriptions, events = draw_mixed(seed=11)
    made = matcher(subscriptions, types)
    one_by_one = [made.match(event) for event in events]
    assert one_by_one == list(made.match_many(events))
    assert any(one_by_one)


def test_one_subscription_at_a_time_gives_what_add_many_gives():
    types, subscriptions, events = draw_mixed(seed=12)
    made = mw.Matcher(schema=types)
    for id_, expr in subscriptions:
        made.add(id_, expr)
    assert list(made.match_many(events)) == list(matcher(subscriptions, types).match_many(events))


@pytest.mark.slow
def test_an_explanation_gives_every_node_its_truth():
    seen: Counter[bool | None] = Counter()

    def check(node: Any, event: Event) -> None:
        truth = evaluate(parse(node.text), event)
        assert node.value is truth, f"{node.text} is {truth} on {event}, explained as {node.value}"
        seen[truth] += 1
        for child in node.children:
            check(child, event)

    types, subscriptions, events = draw_mixed(seed=13)
    made = matcher(subscriptions, types)
    for (id_, expr), event in product(subscriptions[:20], events[:20]):
        explanation = made.explain(id_, event)
        assert explanation.matches is matches(expr, event)
        check(explanation.tree, event)
    assert min(seen[truth] for truth in (True, False, None)) > 100


def is_decided_by_keys(predicate: Predicate) -> bool:
    """A pattern with inner wildcards is no interval: sets of strings leave it open."""
    plain = re.sub(r"\\.", "", predicate.pattern) if isinstance(predicate, Like) else ""
    return not set("%_") & set(plain.removesuffix("%"))


@pytest.mark.slow
def test_an_event_of_predicates_matches_what_can_hold_and_nothing_that_cannot():
    seen: Counter[tuple[bool, bool, bool]] = Counter()
    for seed in range(12):
        types, subscriptions, events = workload(
            Random(seed), 40, 12, max_leaves=4, allow=is_decided_by_keys
        )
        made = matcher(subscriptions, types)
        for first, second in pairwise(events):
            allowed = {
                name: tuple(e[name] for e in (first, second) if e.get(name) is not None)
                for name in types
            }
            allowed = {name: values for name, values in allowed.items() if values}
            event = reduce(and_, (In(name, values) for name, values in allowed.items()), TRUE)
            found = made.match(event)
            for id_, expr in subscriptions:
                # one value for the whole expression, the engine, one value per predicate
                chain = can_hold(expr, allowed), id_ in found, holds_interval(expr, allowed)
                assert chain == tuple(sorted(chain)), f"{chain} for {expr} on {event}"
                seen[chain] += 1
    assert seen[True, True, True] > 1_000
    assert seen[False, False, False] > 1_000
    assert seen[False, False, True] > 0


@pytest.mark.spark
def test_spark_and_the_matcher_find_the_same(spark_sql):
    pairs = 0

    def check(seed: int) -> None:
        nonlocal pairs
        columns, exprs, events = table(seed)
        truths = spark_sql.truths(columns, events, exprs)
        made = matcher([(f"s{i}", expr) for i, expr in enumerate(exprs)], columns)
        found = made.match_many(to_arrow(columns, events, "UTC"))
        for e, ids in enumerate(found):
            assert ids == [f"s{i}" for i, answers in enumerate(truths) if answers[e] is True]
        pairs += len(exprs) * len(events)

    each_seed(N_TABLES, check)
    assert pairs >= MIN_PAIRS


@pytest.mark.spark
def test_spark_and_the_matcher_agree_on_every_spelling(spark_sql):
    answers = spark_sql.answers(COLUMNS, EVENTS, [f"{text}\n" for text in TEXTS])
    made = mw.Matcher(schema=COLUMNS)
    assert made.add_many((text, text) for text in TEXTS).errors == []
    for e, found in enumerate(made.match_many(EVENTS)):
        expected = [text for text, truths in zip(TEXTS, answers, strict=True) if truths[e] is True]
        assert found == expected
