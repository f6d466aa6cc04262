"""From how many expressions on an index is faster than scanning all (`engine/stores/routing.py`).

    python benchmarks/auto_crossing.py

Prints CPU time per `match` in microseconds, encoding included, for conjunctions and for other
expressions.
"""

from __future__ import annotations

import time
import timeit
from random import Random

import matchwood as mw


def conjunction(rng: Random) -> str:
    equality = f"a{rng.randrange(12)} = {rng.randrange(20)}"
    return f"{equality} AND b{rng.randrange(12)} < {rng.randrange(1000)}"


def tree(rng: Random) -> str:
    return f"({conjunction(rng)}) OR c{rng.randrange(12)} = {rng.randrange(50)}"


def main() -> None:
    rng = Random(1)
    events = [
        {
            f"{name}{k}": rng.randrange(n)
            for name, n in (("a", 20), ("b", 1000), ("c", 50))
            for k in range(12)
        }
        for _ in range(64)
    ]
    for text, index in ((conjunction, "pst_bloom"), (tree, "a_tree")):
        for n in (128, 256, 512, 1000, 2000):
            rows = [(i, text(rng)) for i in range(n)]
            micros = {}
            for name in ("scan", index):
                m = mw.Matcher(index=name)
                m.add_many(rows)

                def search(m: mw.Matcher = m) -> None:
                    for event in events:
                        m.match(event)

                search()
                best = min(timeit.repeat(search, number=2, repeat=7, timer=time.process_time))
                micros[name] = round(best / 2 / len(events) * 1e6, 1)
            print(text.__name__, n, micros, flush=True)


if __name__ == "__main__":
    main()
