"""How wide AGILE's ranges become: candidates and escalations a message, as messages go by.

    python benchmarks/agile_widths.py --profiles 5000 --messages 500 --updates 10000

Counters only: the same on every machine, but for the seed of the skip lists.  Each line is a
policy, each column a tenth of the messages; `--updates` is the paper's UP.
"""

from __future__ import annotations

import argparse
from itertools import pairwise

import numpy as np

from matchwood.bench.context_arena import Filter, Stream
from matchwood.workload.context import Context

POLICIES = ("auto", "rent")
PARTS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profiles", type=int, default=5_000)
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--updates", type=float, default=10_000.0)
    given = parser.parse_args()
    workload = Context(
        n_subscriptions=given.profiles,
        n_events=given.messages,
        updates_per_profile=given.updates,
    )
    ends = np.linspace(0, given.messages, PARTS + 1).astype(int).tolist()
    for policy in POLICIES:
        filter_ = Filter("agile", {"policy": policy}, workload)
        stream = Stream(workload, filter_.attributes, filter_.store)
        candidates, escalations = [], []
        for first, last in pairwise(ends):
            before = int(filter_.index.work[0])
            _, hits = filter_.run(stream.stretch(first, last))
            candidates.append(float(np.mean([each.counters[2] for each in hits])))
            escalations.append((int(filter_.index.work[0]) - before) / (last - first))
        for what, found in (("candidates", candidates), ("escalations", escalations)):
            print(f"{policy:6} {what:12}", " ".join(f"{each:8,.1f}" for each in found), flush=True)


if __name__ == "__main__":
    main()
