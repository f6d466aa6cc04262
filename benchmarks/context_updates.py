"""How many context updates a matcher takes a second: one call each, and in bulk.

    python benchmarks/context_updates.py [profiles]

Updates move a value by less than its index entry allows (they stay inside K), after a warm-up that
has escalated every entry once.  CPU time.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pyarrow as pa

from matchwood import Matcher

SINGLE, BULK = 100_000, 1_000_000


def main(n: int) -> None:
    rng = np.random.default_rng(1)
    matcher = Matcher(schema={"price": "float", "ctx": {"target": "float"}})
    text = "price BETWEEN ctx.target - 20 AND ctx.target + 20"
    ids = np.arange(n)
    matcher.add_many(pa.table({"id": ids, "expr": [text] * n, "context": ids}))
    middle = rng.uniform(100, 9900, n)
    for moved in (0.0, 100.0, -100.0, 0.0):
        matcher.set_context_many(pa.table({"context": ids, "target": middle + moved}))
        matcher.match({"price": 5000.0})
    before = matcher.stats()["indexes"][-1]["escalated"]

    which = rng.integers(0, n, SINGLE)
    values = (middle[which] + rng.uniform(-50, 50, SINGLE)).tolist()
    began = time.process_time()
    for id_, value in zip(which.tolist(), values, strict=True):
        matcher.set_context(id_, {"target": value})
    single = SINGLE / (time.process_time() - began)

    which = rng.integers(0, n, BULK)
    table = pa.table({"context": which, "target": middle[which] + rng.uniform(-50, 50, BULK)})
    began = time.process_time()
    matcher.set_context_many(table)
    bulk = BULK / (time.process_time() - began)
    escalated = matcher.stats()["indexes"][-1]["escalated"] - before
    print(f"{n:,} profiles: {single:,.0f} updates/s in single calls, {bulk:,.0f} updates/s in bulk")
    print(f"{escalated:,} of {SINGLE + BULK:,} updates reached an index")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
