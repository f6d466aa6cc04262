"""What a segment holds, array by array: bytes a subscription.

    python benchmarks/memory.py [subscriptions] [workload]

Sizes are those of the arrays and of compressed bytes; objects that do not grow with the number of
subscriptions are left out.  The last line compares the sum with what Python's allocators get back
when the matcher is given up (`tracemalloc`).  They also count room that was asked for and never
touched: behind the words of `blocks`.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Iterator

import numpy as np

from matchwood import Matcher
from matchwood.bench.speed.user_cases import matcher_of
from matchwood.workload import find_workload


def sizes(matcher: Matcher) -> Iterator[tuple[str, int]]:
    """Name and bytes of everything that grows with the subscriptions."""
    for number, part in enumerate(matcher._view.searched):
        store = part.store
        subscriptions, columns, table = (
            store.subscriptions,
            store.subscriptions.columns,
            store.table,
        )
        yield f"segment {number}: ids", subscriptions._ids.nbytes
        yield "  order of addition", subscriptions.order.nbytes
        yield "  times of addition", columns.added.nbytes
        yield "  other columns", columns.nbytes - columns.added.nbytes
        yield "  texts", subscriptions.texts.used_bytes
        yield "  what finds texts", subscriptions.texts.nbytes - subscriptions.texts.used_bytes
        yield "  map of ids", 0 if subscriptions._slot_of is None else 100 * len(subscriptions)
        if table._packed is not None:
            for name, each in table._packed.arrays():
                yield f"  packed {name}", each.nbytes
        for name, array in () if table._layout is None else table._layout._asdict().items():
            yield f"  expressions: {name}", array.nbytes
        if table._predicates is not None:
            for name, array in table._predicates.layout._asdict().items():
                yield f"  predicates: {name}", array.nbytes
        yield "  attributes", store.attributes.nbytes
        for index in store.routing.indexes:
            yield f"  index {index.name}", index.stats()["bytes"]
        yield "  marks of what is gone", part.gone.nbytes


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    name = sys.argv[2] if len(sys.argv) > 2 else "begen"
    workload = find_workload(name, n_subscriptions=n, n_events=10)
    tracemalloc.start()
    matcher = matcher_of(workload, "auto")
    total = texts = 0
    for what, size in sizes(matcher):
        total += size
        texts += size if what == "  texts" else 0
        if size * 100 >= n:  # a hundredth of a byte
            print(f"{what:<40}{size / n:10.2f}")
    print(f"{'sum':<40}{total / n:10.2f}\n{'sum, texts apart':<40}{(total - texts) / n:10.2f}")
    began = time.process_time()
    table = matcher._store.table
    n_slots = len(table.layout.kind)
    took = time.process_time() - began
    print(f"unpacking {n_slots:,} expressions takes {took:.3f} s (nothing if they were not packed)")
    assert int(np.count_nonzero(table.layout.kind)) == n
    table.shut()
    del table
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    del matcher
    gc.collect()
    freed = before - tracemalloc.get_traced_memory()[0]
    print(f"{'given back with the matcher, by tracemalloc':<44}{freed / n:6.2f}")


if __name__ == "__main__":
    main()
