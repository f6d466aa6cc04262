"""What `auto` plans for a frozen part, against every single index: the workloads of the papers.

    python benchmarks/auto_against_best.py [most subscriptions] [beginning of a workload,...]

Each workload once, cut to so many subscriptions (200,000 by default; 0: all).  All must give the
same answers.  Times are those of the thread, the least of some rounds in which all take turns, in
µs an event of a batch and of an event alone.  "ratio" is `auto` by the best single index; the goal
is 1.2.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

from matchwood.bench.engine.contest import contest, ratio
from matchwood.workload import Workload, find_workload

MOST, N_EVENTS, ROUNDS, GOAL = 200_000, 100, 5, 1.2
SPARSE = {"n_attributes": 400, "min_predicates": 3, "max_predicates": 3, "event_size": 60}
WORKLOADS = (
    ("uniform:smoke", {}), ("uniform:small", {}), ("uniform:small", SPARSE),
    ("begen:smoke", {}), ("begen:default", {}), ("begen:zipf", {}),
    ("begen:default", {"match_probability": 0.001}),
    ("pstree:smoke", {}), ("pstree:dims-100", {}), ("pstree:dims-30k", {}), ("pstree:zipf-1", {}),
    ("ads:small", {}), ("querylog", {"n_subscriptions": 300_000}),
    ("abegen:smoke", {}), ("abegen:default", {}), ("ad_trees:small", {}), ("ad_trees:default", {}),
    ("skew2d:smoke", {}), ("skew2d:figure-6a", {}), ("skew2d:figure-6b", {}),
    ("skew2d:figure-7", {"n_subscriptions": 128_000}),
    ("skew2d:figure-7-uniform", {"n_subscriptions": 128_000}),
    ("skew2d:figure-8", {"n_subscriptions": 128_000}),
    ("skew2d:figure-9", {"n_subscriptions": 128_000}),
)  # fmt: skip


def cases(wanted: list[str], most: int) -> Iterator[tuple[str, Workload]]:
    """The workloads to measure, and what to call them."""
    for workload, changes in WORKLOADS:
        if not any(workload.startswith(each) for each in wanted):
            continue
        whole = find_workload(workload, **{"n_events": N_EVENTS, **changes})
        n = min(whole.n_subscriptions, most) if most else whole.n_subscriptions
        label = ", ".join([workload, *[f"{key} {value}" for key, value in changes.items()]])
        yield label, whole.with_parameters(n_subscriptions=n)


def measure(label: str, workload: Workload) -> tuple[float, float]:
    print(f"{label}, {workload.n_subscriptions:,} subscriptions", flush=True)
    found = contest(label, workload, N_EVENTS, ROUNDS, partial(print, flush=True))
    ratios = []
    for what, micros in found.items():
        value, best = ratio(micros)
        ratios.append(value)
        others = "  ".join(f"{name} {each:,.1f}" for name, each in micros.items())
        verdict = "ok" if value <= GOAL else "MISSED"
        print(f"    {what}: {others}   ratio {value:.2f} of {best} {verdict}", flush=True)
    return ratios[0], ratios[1]


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    most = int(given.get(0, MOST))
    wanted = given.get(1, "").split(",")
    table = [(label, *measure(label, workload)) for label, workload in cases(wanted, most)]
    print(f"\n{'case':<40}{'batch':>8}{'alone':>8}    auto by the best single index")
    for label, batch, alone in table:
        missed = "" if max(batch, alone) <= GOAL else "  missed"
        print(f"{label:<40}{batch:8.2f}{alone:8.2f}{missed}")
