"""The rows of the suite `engine`: what is measured, before, goal."""

from __future__ import annotations

from matchwood.bench.engine.contest import WORKLOADS
from matchwood.bench.goals import LEAST, MOST, Goal

GOALS = (
    *[
        Goal(f"auto {name}", f"auto by the best single index: {what}", "x", None, 1.2, LEAST)
        for name, (what, *_) in WORKLOADS.items()
    ],
    Goal("changes", "changes while searches go on (paced, 100 in a batch)", "/s", 657, 5_000, MOST),
    Goal("p99", "99 of 100 searches meanwhile, beyond those while nothing changes", "ms", 13, 2,
         LEAST),
    Goal("open", "opening a folder, for each million of subscriptions (CPU)", "s", None, 2, LEAST),
    Goal("checkpoint", "files that a checkpoint writes after 100 changes, of all", "%", 100, 5,
         LEAST),
    Goal("adds", "durable additions one by one, each in the log", "/s", None, None, MOST),
    Goal("adds group", "the same with commit_every=0.1", "/s", None, None, MOST),
    Goal("threads", "match_many(threads=2), times as fast as threads=1", "x", None, 1.8, MOST),
    Goal("memory", "bytes a subscription without its text (400 attributes)", "B", 575, 150, LEAST),
)  # fmt: skip
