"""The suite `engine`: what a `Matcher` does as a whole, compared with goals, in one run.

    matchwood bench run --suite engine --preset small

    contest   `auto` against every single index, workload by workload
    cases     searches during changes, opening a folder, durable changes, threads, memory
    goals     the rows
    sizes     how much of everything, by preset
    runner    runs the cases

Answers are compared before a time is kept.  Ratios are of times that were taken in turn in one
process.  Durations of searches while subscriptions change, of durable changes and of threads are
those of the clock: other processes count.
"""

from __future__ import annotations

from matchwood.bench.suite import Listed

NAME = "engine"
LISTED = Listed(
    NAME,
    "auto against the best index, live changes, opening, durable changes, threads, memory",
    ("smoke", "small", "large"),
)
