"""JSON lines in, ids out: events a second, beside `json.loads` alone and beside dicts.

    python benchmarks/json_lines.py [SUBSCRIPTIONS ...]

A line has 20 fields, an array and some padding, about 900 bytes; a subscription is an equality of
two of the fields.  Answers are compared with those of dicts.  Times are CPU time of one thread, the
least of some rounds.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import matchwood as mw
from matchwood.encode.json.events import JsonLines

N_LINES, N_SINGLE, ROUNDS = 20_000, 2_000, 4
FIELDS = 20


def line(rng: random.Random) -> bytes:
    fields: dict[str, Any] = {
        f"field_{k:02}": f"value {rng.randrange(1_000)}" if k % 2 else rng.randrange(1_000)
        for k in range(FIELDS)
    }
    tags = [f"tag{rng.randrange(100)}" for _ in range(12)]
    return json.dumps({**fields, "tags": tags, "note": "x" * 260}).encode()


def subscription(rng: random.Random) -> str:
    word, number = 2 * rng.randrange(FIELDS // 2) + 1, 2 * rng.randrange(FIELDS // 2)
    return (
        f"field_{word:02} = 'value {rng.randrange(1_000)}' "
        f"AND field_{number:02} = {rng.randrange(1_000)}"
    )


def per_second(n: int, run: Callable[[], Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        run()
        times.append(time.thread_time() - began)
    return n / min(times)


def main(sizes: list[int]) -> None:
    rng = random.Random(1)
    lines = [line(rng) for _ in range(N_LINES)]
    buffer, few = b"\n".join(lines), lines[:N_SINGLE]
    loads = per_second(N_LINES, lambda: [json.loads(text) for text in lines])
    print(f"{N_LINES:,} lines of {len(lines[0])} bytes; json.loads alone {loads:,.0f} a second")
    for n in sizes:
        m = mw.Matcher()
        m.add_many([(i, subscription(rng)) for i in range(n)])
        events = [json.loads(text) for text in few]
        expected = m.match_many(events).to_pylist()
        assert m.match_many_json(few).to_pylist() == expected, "JSON text and dicts differ"
        encode = per_second(N_LINES, lambda m=m: m.encode(JsonLines(buffer)))
        many = per_second(N_LINES, lambda m=m: m.match_many_json(buffer))
        one = per_second(N_SINGLE, lambda m=m: [m.match_json(text) for text in few])
        dicts = per_second(N_SINGLE, lambda m=m, e=events: m.match_many(e))
        single = per_second(N_SINGLE, lambda m=m, e=events: [m.match(event) for event in e])
        print(
            f"{n:>9,} subscriptions: {many:9,.0f} lines a second, encoding alone {encode:9,.0f}; "
            f"one by one {one:8,.0f}; dicts {dicts:9,.0f}, one by one {single:8,.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [1_000, 10_000, 100_000])
