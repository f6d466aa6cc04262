"""Generated schemas, expressions, events and workloads: plain generators, wrapped for Hypothesis.

    schema(rng)  value(rng, type)  expression(rng, schema, n_leaves)  event(rng, schema)
    workload(rng)                         take a `random.Random`; the oracles' long runs use these
    schemas()  values(type)  expressions(schema, max_leaves)  events(schema)  workloads()
                                          the same as Hypothesis strategies

Constants and event values come from one small pool per type, so that they often meet or are
neighbours; the pools hold the places where implementations go wrong.  Everything is well-typed for
its schema.

The strategies draw through Hypothesis and shrink.  `workloads()` draws one seed instead: a thousand
times quicker, at the price of not shrinking.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

from hypothesis import strategies as st

from matchwood.lang.nodes import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Between,
    Comparison,
    Expr,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Xnor,
    Xor,
)

Schema = dict[str, str]
Event = dict[str, Any]
Workload = tuple[Schema, list[tuple[str, Expr]], list[Event]]

TYPES = ("bool", "int", "float", "number", "string", "timestamp", "date")
OPEN = "open"
"""What a schema says of an attribute that nothing declares: values and constants of any kind."""
OPEN_KINDS = ("bool", "number", "string", "timestamp", "date")

NAMES = (
    "active",
    "price",
    "genre",
    "Genre",
    "rank_2",
    "_hidden",
    "user.age",
    "user.name",
    "user.home.city",
    "odd name",
    "group",
    "größe",
    "x-y",
    "2nd",
    "tick`ed",
    "order.line item",
    "order.is",
)

# ── pools ───────────────────────────────────────────────────────────────────────────────────────

_INT64 = 2**63
_EXACT = 2**53
INTS = [0, 1, -1, 2, 3, 4, 5, 10, 19, 20, 21, 1000, -1000]
INTS += [sign * (_EXACT + step) for sign in (1, -1) for step in (-1, 0, 1, 2)]
INTS += [-_INT64, -_INT64 + 1, _INT64 - 2, _INT64 - 1]

FLOATS = [0.0, -0.0, 0.1, math.nextafter(0.1, 1), 0.1 + 0.2, 0.3, 0.25, 1.0, 1.5, -1.5, 2.0]
FLOATS += [2.5, 5.0, 19.99, 20.0, 20.01, -1000.5, 1e-5, 5e-324, 1e16, 1e300, -1e300]
FLOATS += [float(_EXACT), float(_EXACT - 1), math.nextafter(1, 2), 1.7976931348623157e308]
FLOATS += [math.inf, -math.inf, math.nan]

STRINGS = ["", " ", "a", "A", "b", "B", "ab", "abc", "abd", "ab\x01", "aba", "ac", "ab ", "abcabc"]
STRINGS += ["a%", "a_b", "50%_off", "a\\", "a\\b", "\\", "it's", "''", '"', "a\nb", "a\r\tb", "--"]
STRINGS += ["é", "e\u0301", "éa", "\x7f", "\x80", "ÿ", "ß", "\ud7ff", "\ue000", "\uffff"]
STRINGS += ["\U00010000", "😀", "😀a", "a😀", "\U0010ffff", "日本", "日本語", "1", "10", "9"]
STRINGS += ["ab\x00", "\x00", "ab\U0010ffff"]

_MICROSECOND = timedelta(microseconds=1)
_INSTANTS = [datetime(1970, 1, 1), datetime(2024, 2, 29, 12, 30), datetime(2024, 3, 1)]
TIMESTAMPS = [
    (instant + step * _MICROSECOND).replace(tzinfo=UTC)
    for instant in _INSTANTS
    for step in (-1, 0, 1)
]
TIMESTAMPS += [datetime(1900, 1, 1, tzinfo=UTC), datetime(1582, 10, 15, 0, 0, 1, tzinfo=UTC)]
TIMESTAMPS += [datetime(2038, 1, 19, 3, 14, 8, 500_000, tzinfo=UTC)]
TIMESTAMPS += [datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]

DATES = [date(1969, 12, 31), date(1970, 1, 1), date(2023, 12, 31), date(2024, 2, 28)]
DATES += [
    date(2024, 2, 29),
    date(2024, 3, 1),
    date(1, 1, 1),
    date(1582, 10, 15),
    date(9999, 12, 31),
]

POOL: dict[str, list[Any]] = {
    "bool": [True, False],
    "int": INTS,
    "float": FLOATS,
    "number": INTS + FLOATS,
    "string": STRINGS,
    "timestamp": TIMESTAMPS,
    "date": DATES,
}
"""What expressions compare with and events carry, by type."""

STRANGE = ("2024-02-29", "2024-02-29T12:30:00Z", "1970-01-01 00:00:00", [1, "a"], ())
"""Values of open attributes: strings that are moments as well, and lists."""


# ── plain generators ────────────────────────────────────────────────────────────────────────────


def schema(rng: Random, n_attributes: int = 7) -> Schema:
    """A handful of attributes; every type is used before one is used twice."""
    types = rng.sample(TYPES, len(TYPES)) + [rng.choice(TYPES) for _ in NAMES]
    return dict(zip(rng.sample(NAMES, n_attributes), types, strict=False))


def constant(rng: Random, kind: str) -> Any:
    """What a predicate on an attribute of type `kind` may compare with."""
    if kind == "int" and rng.random() < 0.1:  # `x > 1.5` on ints is `x >= 2`
        return rng.choice([-1.5, 0.5, 1.5, 2.5, 19.5])
    if kind == "float" and rng.random() < 0.2:
        return rng.choice([-1000, -1, 0, 1, 2, 5, 20, 1000])
    if kind in ("timestamp", "date") and rng.random() < 0.1:
        return rng.choice(DATES if kind == "timestamp" else TIMESTAMPS)
    return rng.choice(POOL[kind])


def value(rng: Random, kind: str) -> Any:
    """A value that an event may carry for an attribute of type `kind`."""
    if kind == OPEN:
        return rng.choice((*(rng.choice(POOL[each]) for each in OPEN_KINDS), *STRANGE))
    return rng.choice(POOL[kind])


def pattern(rng: Random) -> str:
    """A LIKE pattern: a prefix, a text with holes that it still matches, or anything legal."""
    parts = ["\\" + c if c in "%_\\" else c for c in rng.choice(STRINGS)]
    shape = rng.random()
    if shape < 0.4:
        return "".join(parts[: rng.randint(0, len(parts))]) + "%"
    if shape < 0.7:
        return "".join(rng.choice((part, part, "_", "%")) for part in parts)
    parts += rng.choices(["%", "_", "%%", "\\%", "\\_", "\\\\", "a", "b", ""], k=3)
    rng.shuffle(parts)
    return "".join(parts)


def weighted(rng: Random, weights: dict[str, int]) -> str:
    """A key by its weight.  Hypothesis's own Random ignores the weights of `choices`."""
    return rng.choice([name for name, weight in weights.items() for _ in range(weight)])


def predicate(rng: Random, schema: Schema) -> Predicate:
    """One predicate of any operator that its attribute's type has."""
    name = rng.choice(list(schema))
    kind = schema[name]
    negated = rng.random() < 0.4
    if kind == OPEN:
        kind = rng.choice(OPEN_KINDS)
        if rng.random() < 0.2:
            return IsNull(name, negated, kind=kind)
        leaf = predicate(rng, {name: kind})
        return leaf if not _mixes_moments(leaf) else predicate(rng, schema)
    shapes = {"comparison": 45, "between": 15, "in": 18, "is null": 10}
    if kind == "string":
        shapes["like"] = 30
    if kind == "bool":
        shapes["bare"] = 30
    shape = weighted(rng, shapes)
    if shape == "bare":
        return Comparison(name, "=", True)
    if shape == "is null":
        return IsNull(name, negated)
    if shape == "like":
        return Like(name, pattern(rng), negated)
    if shape == "between":
        return Between(name, constant(rng, kind), constant(rng, kind), negated)
    if shape == "in":
        values = [constant(rng, kind) for _ in range(rng.randint(1, 4))]
        if rng.random() < 0.2:
            values.insert(rng.randint(0, len(values)), None)
        return In(name, tuple(values), negated)
    return Comparison(name, rng.choice(("=", "<>", "<", "<=", ">", ">=")), constant(rng, kind))


def _mixes_moments(leaf: Predicate) -> bool:
    """Whether a list has dates and timestamps: beside an open attribute all are timestamps."""
    kinds = {type(each) for each in leaf.values} if isinstance(leaf, In) else set()
    return {date, datetime} <= kinds


def expression(
    rng: Random,
    schema: Schema,
    n_leaves: int = 6,
    allow: Callable[[Predicate], bool] = lambda _: True,
) -> Expr:
    """A tree of `n_leaves` leaves; predicates come back, as in (p AND q) OR (NOT q AND r)."""
    seen: list[Expr] = []

    def leaf() -> Expr:
        chance = rng.random()
        if chance > 0.96:
            return rng.choice((TRUE, FALSE, UNKNOWN))
        if chance > 0.8 and seen:
            return rng.choice(seen)
        fresh = predicate(rng, schema)
        while not allow(fresh):
            fresh = predicate(rng, schema)
        seen.append(fresh)
        return fresh

    def tree(n: int) -> Expr:
        # the low end of a draw is the plain choice: that is where Hypothesis shrinks to
        if rng.random() > 0.85:
            return Not(plain(n))
        return plain(n)

    def plain(n: int) -> Expr:
        if n == 1:
            return leaf()
        if n == 4 and rng.random() > 0.7:
            p, q, r = leaf(), leaf(), leaf()
            return Or((And((p, q)), And((Not(q), r))))
        kind = weighted(rng, {"and": 40, "or": 40, "xor": 10, "xnor": 10})
        if kind in ("xor", "xnor"):
            left = rng.randint(1, n - 1)
            return (Xor if kind == "xor" else Xnor)(tree(left), tree(n - left))
        first = rng.randint(1, n - 1)
        joined, rest = tree(first), n - first
        while rest > 0:
            size = rng.randint(1, rest)
            operand = tree(size)
            joined = joined & operand if kind == "and" else joined | operand
            rest -= size
        return joined

    return tree(n_leaves)


def event(rng: Random, schema: Schema, absent: float = 0.2) -> Event:
    """A flat event; an attribute is missing, or None, or has a value."""
    found = {}
    for name, kind in schema.items():
        chance = rng.random()
        if chance < absent / 2:
            continue
        found[name] = None if chance < absent else value(rng, kind)
    return found


def workload(
    rng: Random,
    n_expressions: int = 20,
    n_events: int = 20,
    max_leaves: int = 8,
    schema_: Schema | None = None,
    allow: Callable[[Predicate], bool] = lambda _: True,
) -> Workload:
    """A schema, expressions with their ids, and events."""
    chosen = schema(rng) if schema_ is None else schema_
    subscriptions = [
        (f"s{i}", expression(rng, chosen, rng.randint(1, max_leaves), allow))
        for i in range(n_expressions)
    ]
    return chosen, subscriptions, [event(rng, chosen) for _ in range(n_events)]


# ── Hypothesis ──────────────────────────────────────────────────────────────────────────────────

_RNG = st.randoms(use_true_random=False)


def schemas(min_attributes: int = 1, max_attributes: int = 7) -> st.SearchStrategy[Schema]:
    sizes = st.integers(min_attributes, max_attributes)
    return st.builds(schema, _RNG, sizes)


def values(kind: str) -> st.SearchStrategy[Any]:
    return st.sampled_from(POOL[kind])


def expressions(schema: Schema, max_leaves: int = 6) -> st.SearchStrategy[Expr]:
    return st.builds(expression, _RNG, st.just(schema), st.integers(1, max_leaves))


def events(schema: Schema) -> st.SearchStrategy[Event]:
    return st.builds(event, _RNG, st.just(schema))


def seeds() -> st.SearchStrategy[int]:
    """One draw that a plain `random.Random` makes a whole workload of."""
    return st.integers(0, 2**32 - 1)


def workloads(
    n_expressions: int = 20, n_events: int = 20, max_leaves: int = 8
) -> st.SearchStrategy[Workload]:
    return seeds().map(lambda seed: workload(Random(seed), n_expressions, n_events, max_leaves))
