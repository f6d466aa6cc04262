"""What entering a search costs: a layout as its arrays, and bound (docs/decisions/0022).

    python benchmarks/bound_calls.py [subscriptions]

For each index that binds its layout: its arrays; microseconds to call a kernel that does nothing
with them, as arrays and bound; to call the index's own kernel with no event to search; and of
`search` with one event.  The fastest of several rounds, the indexes in turn.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numba
import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.core.registry import find_index
from matchwood.index.core.scratch import Scratch
from matchwood.kernel.verify_kernels import COUNTERS, Output
from matchwood.workload import find_workload, load_events, load_subscriptions

NAMES = ("scan", "be_tree", "pst_bloom", "pst_hash", "a_tree", "vcr")
ROUNDS, CALLS = 15, 2_000


@numba.njit(nogil=True, _nrt=False)
def with_arrays(view, mine, events, first, stamp, output):
    return first


def n_arrays(parts: Any) -> int:
    return 1 if isinstance(parts, np.ndarray) else sum(map(n_arrays, parts))


def bound_kernel(layout: Any, search: Any) -> Any:
    view_of, mine_of = layout.reader(), search.reader()

    @numba.njit(nogil=True, _nrt=False)
    def bound(view, mine, events, first, stamp, output):
        return first + len(view_of(view)) * 0 + len(mine_of(mine)) * 0

    return bound


def microseconds(call: Any, *arguments: Any) -> float:
    began = time.perf_counter()
    for _ in range(CALLS):
        call(*arguments)
    return (time.perf_counter() - began) / CALLS * 1e6


def part_of(events: EventBatch, n: int) -> EventBatch:
    """The first n events."""
    last = int(events.start[n])
    return EventBatch(events.start[: n + 1], events.attr[:last], events.lo[:last], events.hi[:last])


def main(n: int) -> None:
    workload = find_workload("begen", n_subscriptions=n, n_events=10)
    loaded = load_subscriptions(workload)
    events = load_events(workload, loaded.attributes)
    none, one = part_of(events, 0), part_of(events, 1)
    output = Output(
        np.zeros(2, np.int64), np.empty(1024, np.int32), np.zeros(len(COUNTERS), np.int64)
    )
    rows: dict[str, Any] = {}
    for name in NAMES:
        index, scratch = find_index(name).build(loaded.table, loaded.slots), Scratch()
        index.search(one, scratch)
        part, caught = scratch.of(index), []
        step = part.binding.of

        def catch(parts: Any, of: Any = step, caught: Any = caught) -> Any:
            caught.append(parts)
            return of(parts)

        part.binding.of = catch
        index.search(none, scratch)
        del part.binding.of
        view, mine = index._view(), caught[0]
        bound, own = index._binding.of(view), part.binding.of(mine)
        rows[name] = (
            n_arrays(view) + n_arrays(mine),
            [
                (with_arrays, view, mine, none, 0, 0, output),
                (bound_kernel(index.LAYOUT, index.SEARCH), bound, own, none, 0, 0, output),
                (index._stepper(none, scratch), 0, 0, *output),
                (index.search, one, scratch),
            ],
        )
        for call, *arguments in rows[name][1]:
            call(*arguments)
    times = {name: np.full(4, np.inf) for name in NAMES}
    for _ in range(ROUNDS):
        for name in NAMES:
            found = [microseconds(call, *arguments) for call, *arguments in rows[name][1]]
            times[name] = np.minimum(times[name], found)
    print(
        f"{'index':<12}{'arrays':>7}{'as arrays':>11}{'bound':>8}{'no event':>10}{'one event':>11}"
    )
    for name, (count, _) in rows.items():
        arrays, bound, no_event, one_event = times[name]
        print(
            f"{name:<12}{count:>7}{arrays:>11.2f}{bound:>8.2f}{no_event:>10.2f}{one_event:>11.2f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
