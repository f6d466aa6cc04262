"""One event with a list of three tags against N subscriptions that each ask for a tag of their own.

    python benchmarks/list_constants.py [N ...]

Prints the CPU time of one `match`, with the constants found by the elements of the list and with
every one of them computed, and checks that both give the same answers.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import matchwood as mw
from matchwood.encode import memberships


def measured(m: mw.Matcher, events: list[dict[str, Any]]) -> tuple[float, list[Any]]:
    """The least time of one event, and all answers."""
    answers, best = [], float("inf")
    for event in events:
        began = time.process_time()
        answers.append(m.match(event))
        best = min(best, time.process_time() - began)
    return best, answers


def main(sizes: list[int]) -> None:
    print(f"{'constants':>10} {'by elements':>14} {'computed':>14} {'ratio':>8}")
    for n in sizes:
        texts = [(i, f"array_contains(tags, 't{i}') AND price < {i % 100}") for i in range(n)]
        events = [{"tags": ["t5", f"t{n // 2}", f"t{k}"], "price": k} for k in range(12)]
        times, found = [], []
        for many in (memberships.MANY, 10**9):
            memberships.MANY = many
            m = mw.Matcher()
            m.add_many(texts)
            m.match(events[0])
            seconds, answers = measured(m, events)
            times.append(seconds)
            found.append(answers)
        memberships.MANY = 16
        if found[0] != found[1]:
            raise SystemExit(f"{n}: the answers differ")
        quick, slow = times
        print(f"{n:10,} {quick * 1e6:11,.0f} µs {slow * 1e6:11,.0f} µs {slow / quick:8,.0f}")


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [100, 1_000, 10_000])
