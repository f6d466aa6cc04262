"""`limit` on segments: the best of what holds, found without finding all of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

import matchwood as mw
from matchwood.engine.segments.ranking import MOST_BEST
from matchwood.index.terms import conjunctions

N = 3_000
LATER = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture(autouse=True)
def _blocks(monkeypatch):
    """Conjunctions are in blocks, however few they are."""
    monkeypatch.setattr(conjunctions, "FEW_BESIDE", 0)


def text(rng: Random) -> str:
    """A conjunction; equal ones come again, and some need no more than their access predicate."""
    parts = [
        rng.choice(
            (f"a{k} = {rng.randrange(4)}", f"a{k} IN ({rng.randrange(4)}, {rng.randrange(4, 9)})")
        )
        for k in rng.sample(range(6), rng.randint(1, 4))
    ]
    if rng.random() < 0.1:
        parts.append(f"a{rng.randrange(6)} <> {rng.randrange(4)}")
    return " AND ".join(parts)


def event(rng: Random) -> dict[str, int]:
    return {f"a{k}": rng.randrange(5) for k in range(6) if rng.random() < 0.8}


def filled(rng: Random, n: int, priorities: bool, **options: Any) -> tuple[mw.Matcher, dict]:
    """A matcher with segments, and the priority of each id; trees beside conjunctions."""
    matcher, known = mw.Matcher(), {}
    for first in range(0, n, n // 2):
        rows = []
        for i in range(first, first + n // 2):
            known[i] = rng.choice((0, 0, 5, -(2**63), 2**63 - 1)) if priorities else 0
            tree = f"{text(rng)} OR a5 = {rng.randrange(4)}" if i % 50 == 0 else text(rng)
            rows.append({"id": i, "expr": tree, "priority": known[i], **options})
        matcher.add_many(rows)
    return matcher, known


def check(
    matcher: mw.Matcher, known: dict[int, int], rng: Random, limits: tuple = (1, 3, MOST_BEST)
):
    assert "blocks" in [each["index"] for each in matcher.stats()["indexes"]]
    events = [event(rng) for _ in range(25)]
    for each in events:
        best = sorted(matcher.match(each), key=lambda id_: -known[id_])
        for limit in limits:
            assert matcher.match(each, limit=limit) == best[:limit]
    for limit in limits:
        expected = [matcher.match(each, limit=limit) for each in events]
        assert matcher.match_many(events, limit=limit).to_pylist() == expected


@pytest.mark.slow
@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("priorities", [False, True])
@pytest.mark.parametrize("is_one", [False, True])
def test_a_limit_gives_the_first_of_all_that_holds(priorities: bool, is_one: bool) -> None:
    rng = Random(3 + priorities)
    matcher, known = filled(rng, N, priorities)
    if is_one:
        matcher.compact()
    check(matcher, known, rng, (1, 3, MOST_BEST, MOST_BEST + 1, 10 * N))


@pytest.mark.usefixtures("small_segments")
def test_what_is_gone_does_not_count() -> None:
    rng = Random(5)
    matcher, known = filled(rng, N, True)
    matcher.compact()
    check(matcher, known, rng)
    best = sorted(known, key=lambda id_: (-known[id_], id_))
    matcher.remove_many(best[: N // 3])
    check(matcher, known, rng)
    for id_ in best[N // 3 : N // 3 + 5]:
        matcher.replace(id_, "a0 = 1", priority=9)
        known[id_] = 9
    check(matcher, known, rng)


@pytest.mark.usefixtures("small_segments")
def test_what_has_expired_or_a_filter_leaves_out_does_not_count() -> None:
    rng = Random(6)
    matcher, known = filled(rng, N, True)
    matcher.add_many(
        [{"id": f"e{i}", "expr": text(rng), "priority": 7, "expires": LATER} for i in range(300)]
    )
    known |= {f"e{i}": 7 for i in range(300)}
    matcher.compact()
    check(matcher, known, rng)
    after = LATER + timedelta(seconds=1)
    for each in [event(rng) for _ in range(25)]:
        left = [id_ for id_ in matcher.match(each) if isinstance(id_, int)]
        best = sorted(left, key=lambda id_: -known[id_])
        assert matcher.match(each, limit=4, now=after) == best[:4]
        assert matcher.match(each, limit=4, where="city = 'Rome'") == []


@pytest.mark.slow
@pytest.mark.usefixtures("small_segments")
def test_a_limit_reads_fewer_candidates() -> None:
    rng = Random(7)
    matcher = mw.Matcher()
    matcher.add_many([(i, text(rng)) for i in range(20 * N)])
    matcher.compact()
    events = [event(rng) for _ in range(25)]
    few, all_ = (matcher.match_many(events, **asked) for asked in ({"limit": 2}, {}))
    assert few.counters["candidates"] < all_.counters["candidates"] / 2
    assert few.counters["events"] == all_.counters["events"] == 25


@pytest.mark.usefixtures("small_segments")
def test_events_of_sets_are_searched_for_all() -> None:
    rng = Random(8)
    matcher, known = filled(rng, N, True)
    matcher.compact()
    asked = mw.parse("a0 BETWEEN 1 AND 2 AND a1 <> 3")
    best = sorted(matcher.match(asked), key=lambda id_: -known[id_])
    assert matcher.match(asked, limit=5) == best[:5]
