"""Rules, events and comparisons for tests of one event at a time."""

from __future__ import annotations

import random
from typing import Any

from inside import is_bound
from matchwood import Matcher


class General(dict[str, Any]):
    """A dict that is read in the general way, because it is of another type."""


def conjunction(rng: random.Random) -> str:
    names = rng.sample("abcdef", 2)
    return f"{names[0]} = {rng.randrange(12)} AND {names[1]} >= {rng.randrange(12)}"


def tree(rng: random.Random) -> str:
    return f"({conjunction(rng)}) OR (s = 'w{rng.randrange(30)}' AND NOT ({conjunction(rng)}))"


def wide(rng: random.Random) -> str:
    return " AND ".join(f"{name} > {rng.randrange(4)}" for name in rng.sample("abcdef", 4))


def apart(rng: random.Random) -> str:
    """With little in common."""
    return " AND ".join(f"k{k} > {rng.randrange(12)}" for k in rng.sample(range(100), 3))


def rectangle(rng: random.Random) -> str:
    x, y = rng.randrange(100), rng.randrange(100)
    return f"a BETWEEN {x} AND {x + 9} AND b BETWEEN {y} AND {y + 9}"


def mixed(rng: random.Random) -> str:
    kinds = [conjunction, tree, wide, lambda _: "g IS NULL", lambda _: "TRUE"]
    return rng.choices(kinds, [40, 30, 20, 3, 1])[0](rng)


def event(rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: rng.choice([rng.randrange(12), rng.random() * 12, str(rng.randrange(12))])
        if rng.random() < 0.3
        else rng.randrange(12)
        for name in "abcdef"
        if rng.random() < 0.7
    }
    found |= {"s": f"w{rng.randrange(30)}", "unused": [1, {"x": 2}]}
    found |= {f"k{k}": rng.randrange(14) for k in rng.sample(range(100), 40)}
    if rng.random() < 0.5:
        found["g"] = None if rng.random() < 0.5 else {"h": 1}
    return found


def matcher_of(rule: Any, n: int, seed: int = 1) -> Matcher:
    rng = random.Random(seed)
    m = Matcher()
    m.add_many([(i, rule(rng)) for i in range(n)])
    return m


def warmed(m: Matcher, events: list[dict[str, Any]]) -> None:
    """Have so many events matched that dicts are read by compiled code."""
    m.encode(events * (1 + 4_000 // len(events)))
    for _ in range(4):
        m.match(events[0])


def check(m: Matcher, events: list[dict[str, Any]]) -> None:
    warmed(m, events)
    assert is_bound(m)
    for each in events:
        expected = m.match(General(each))
        assert m.match(each) == expected
        assert m.match_count(each) == len(expected)
        assert m.exists(each) == bool(expected)
        assert m.match_many([each])[0] == expected
