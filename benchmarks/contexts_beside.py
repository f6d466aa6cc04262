"""What subscriptions with contexts cost the others: `python benchmarks/contexts_beside.py [n]`.

n subscriptions without a context (20,000), with 0, 1 and 1,000 beside them that have one.  CPU time
of the process in microseconds, the least of 7 rounds: one event, an event of a batch of 200, and
one `set_context`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from random import Random

import matchwood as mw


def least(call: Callable[[], object], n: int) -> float:
    """Microseconds for one of n."""
    rounds = []
    for _ in range(7):
        begin = time.process_time()
        call()
        rounds.append(time.process_time() - begin)
    return min(rounds) / n * 1e6


def main(n: int) -> None:
    rng = Random(7)
    texts = []
    for _ in range(n):
        low, size = rng.randrange(1000), rng.randrange(90)
        pair = f"a{rng.randrange(20)} = {rng.randrange(50)}"
        texts.append(f"{pair} AND x BETWEEN {low} AND {low + size}")
    events = [
        {"x": rng.randrange(1000), **{f"a{i}": rng.randrange(50) for i in range(20)}}
        for _ in range(200)
    ]
    print(f"{'linked':>8} {'event':>9} {'batch':>9} {'set_context':>12}")
    for n_linked in (0, 1, 1000):
        m = mw.Matcher()
        m.add_many(list(enumerate(texts)))
        for i in range(n_linked):
            m.add(f"s{i}", f"a1 = {i % 50} AND x < ctx.most", context=f"c{i % 100}")
        m.set_context("c0", {"most": 500})
        one = least(lambda m=m: [m.match(event) for event in events], len(events))
        many = least(lambda m=m: m.match_many(events), len(events))
        sets = least(lambda m=m: [m.set_context("c0", {"most": i}) for i in range(200)], 200)
        print(f"{n_linked:>8} {one:>9.1f} {many:>9.1f} {sets:>12.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
