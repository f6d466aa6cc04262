"""Computed attributes compared with plain ones of the same values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

from matchwood import Matcher
from matchwood.bench.goals import Measured, agree, seconds
from matchwood.bench.speed.sizes import Sizes

COMPUTED = {
    "total": ("price * qty", lambda rng: f"BETWEEN {(k := rng.randrange(1_900))} AND {k + 99}"),
    "day": ("year(sold_at)", lambda rng: f"= {2_000 + rng.randrange(50)}"),
    "lower_name": ("lower(name)", lambda rng: f"= 'name {rng.randrange(50)}'"),
    "series": ("substr(sku, 1, 3)", lambda rng: f"= '{rng.randrange(100, 150)}'"),
    "known_rebate": ("coalesce(rebate, 0)", lambda rng: f"= {rng.randrange(50)}"),
    "title_size": ("length(title)", lambda rng: f"BETWEEN {(k := rng.randrange(40))} AND {k + 1}"),
}
"""Name of the plain attribute: the computed one, and what subscriptions ask of it."""


def rules(n: int, are_computed: bool) -> list[tuple[int, str]]:
    """Subscriptions of four predicates; every third has a computed attribute, or its plain twin."""
    rng = Random(7)
    found = []
    for i in range(n):
        parts = [f"number_{k} BETWEEN {(low := rng.randrange(90))} AND {low + 9}"
                 for k in rng.sample(range(12), 2)]  # fmt: skip
        parts.append(f"word_{rng.randrange(6)} = 'word {rng.randrange(20)}'")
        name, (text, asked) = rng.choice(list(COMPUTED.items()))
        number, test = f"number_{rng.randrange(12)} < {rng.randrange(100)}", asked(rng)
        parts.append(f"{text if are_computed else name} {test}" if i % 3 == 0 else number)
        found.append((i, " AND ".join(parts)))
    return found


def event(rng: Random) -> dict[str, Any]:
    """Values that computed attributes read, those that plain ones hold, and 18 others."""
    price, qty = rng.randrange(100), rng.randrange(1, 20)
    name, sku = f"Name {rng.randrange(50)}", f"{rng.randrange(100, 150)}-{rng.randrange(1_000)}"
    year, title = 2_000 + rng.randrange(50), "t" * rng.randrange(42)
    rebate = rng.choice((None, rng.randrange(50)))
    return {
        **{f"number_{k}": rng.randrange(100) for k in range(12)},
        **{f"word_{k}": f"word {rng.randrange(20)}" for k in range(6)},
        "price": price, "qty": qty, "name": name, "sku": sku, "title": title, "rebate": rebate,
        "sold_at": f"{year}-02-03T04:05:06Z",
        "total": price * qty, "day": year, "lower_name": name.lower(), "series": sku[:3],
        "known_rebate": rebate or 0, "title_size": len(title),
    }  # fmt: skip


def computed_case(sizes: Sizes, index: str) -> Iterator[Measured]:
    """A third of the subscriptions with one of six computed attributes, against plain ones.

    The two take turns, so that what else the machine does is the same for both.
    """
    rng = Random(8)
    events = [event(rng) for _ in range(sizes.many_events // 10)]
    few, one_by_one = events[:200], events[: sizes.calls]
    matchers = [matcher_of(sizes.subscriptions // 10, kind, index) for kind in (False, True)]
    agree(
        "computed",
        *[[matcher.match(each) for each in few] for matcher in matchers],
        *[matcher.match_many(few).to_pylist() for matcher in matchers],
    )
    calls: dict[str, tuple[int, Callable[[Matcher], Any]]] = {
        "computed batch": (len(events), lambda m: m.match_many(events)),
        "computed alone": (len(one_by_one), lambda m: [m.match(each) for each in one_by_one]),
    }
    for key, (n, call) in calls.items():
        rounds = [
            [seconds(partial(call, matcher), 1) / n * 1e6 for matcher in matchers]
            for _ in range(2 * sizes.rounds)
        ]
        plain, computed = map(min, zip(*rounds, strict=True))
        yield Measured(key, computed / plain, {"µs, plain": plain, "µs, computed": computed})


def matcher_of(n: int, are_computed: bool, index: str) -> Matcher:
    matcher = Matcher(index)
    matcher.add_many(rules(n, are_computed))
    matcher.compact()
    return matcher
