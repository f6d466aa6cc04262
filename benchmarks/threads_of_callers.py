"""Threads of a program that each call `match_many` on tables of their own, against one thread.

    python benchmarks/threads_of_callers.py

The workload is that of the row `threads` of `matchwood bench run --suite engine --preset small`.
Prints, for one and for two threads: seconds by the clock, CPU seconds of the process, and their
quotient, the cores that were used.  On cores that others use, too, the clock says little; CPU time
that does not rise with the threads says that they do not disturb each other.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from matchwood.bench.speed.user_cases import matcher_of
from matchwood.workload import find_workload
from matchwood.workload.tables import wide_events

EVENTS, CALLS, ROUNDS = 10_000, 8, 3


def main() -> None:
    workload = find_workload(
        "begen", n_subscriptions=200_000, n_events=EVENTS, match_probability=1 / EVENTS
    )
    matcher = matcher_of(workload, "auto")
    tables = [wide_events(workload.events(0, EVENTS), 0, EVENTS) for _ in range(2)]
    expected = matcher.match_many(tables[0]).to_pylist()
    assert [matcher.match_many(each).to_pylist() for each in tables] == [expected] * 2
    best: dict[int, tuple[float, float]] = {}
    for _ in range(ROUNDS):
        for threads in (1, 2):
            clock, cpu = time.perf_counter(), time.process_time()
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(matcher.match_many, [tables[i % 2] for i in range(CALLS)]))
            took = time.perf_counter() - clock, time.process_time() - cpu
            best[threads] = min(best.get(threads, took), took)
    for threads, (clock, cpu) in best.items():
        print(
            f"threads {threads}   clock {clock:.3f} s   CPU {cpu:.3f} s   cores {cpu / clock:.2f}"
        )
    print(f"two threads are {best[1][0] / best[2][0]:.2f} times as fast")


if __name__ == "__main__":
    main()
