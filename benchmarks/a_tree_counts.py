"""Counts about `a_tree`: of the predicates that an event satisfies, which lead to an AND at all?

    python benchmarks/a_tree_counts.py [subscriptions] [workload,...]

An event: predicates that hold, those of them that give access to an AND, ANDs that are looked at
(each by its access child), and matches.  A predicate without access is marked as true and leads
nowhere: an AND that tested its other children by itself would do without the mark, and would test
"tests" predicates instead: the children of the ANDs looked at up to the first that does not hold.
Then µs an event of `a_tree` and `blocks` in turn, CPU time of the thread.  Decision 0025.
"""

from __future__ import annotations

import sys

import numpy as np

from matchwood.bench.engine.contest import Contestant
from matchwood.bench.speed.index_cases import Counting, distinct
from matchwood.bench.speed.planned_cases import micros
from matchwood.index.a_tree.blocks import AND, DOWN, N_ACTIVE, N_OR, PARENTS, TELL, TO_AND
from matchwood.index.core.registry import find_index
from matchwood.workload.loading import load_events, load_subscriptions
from matchwood.workload.registry import find_workload

WORKLOADS = "begen,pstree"
N_EVENTS, ROUNDS = 200, 9


def parents_of(x, leaf: int) -> list[int]:
    """The ANDs that a leaf gives access to."""
    tell = int(x.hot[leaf, TELL])
    if tell >= 0:
        begin = tell + PARENTS
        first, end = begin + int(x.word[tell + N_OR]), begin + int(x.word[tell + N_ACTIVE])
        return x.word[first:end].tolist()
    code = ~tell - 1
    return [code >> 2] if code >= 0 and code & 3 == TO_AND else []


def count(name: str, n: int) -> None:
    workload = find_workload(name, n_subscriptions=n, n_events=N_EVENTS)
    loaded = load_subscriptions(workload)
    table, slots = loaded.table, loaded.slots
    events = distinct(load_events(workload, loaded.attributes))
    counting = Counting(table, slots)
    index = find_index("a_tree").build(table, slots)
    index.settle()
    x = index._memory.layout
    found = np.zeros(5)
    for e in range(events.n_events):
        held = []
        for k in range(events.start[e], events.start[e + 1]):
            part = slice(counting.first[events.attr[k]], counting.first[events.attr[k] + 1])
            key = events.lo[k]
            held.append(
                counting.pred[part][(counting.lo[part] <= key) & (key <= counting.hi[part])]
            )
        leaves = x.leaf_of[np.concatenate(held)].tolist()
        leaves = [leaf for leaf in leaves if leaf >= 0]
        true, ands = set(leaves), [parents_of(x, leaf) for leaf in leaves]
        found[:3] += len(leaves), sum(map(bool, ands)), sum(map(len, ands))
        for each in ands:
            for v in each:
                assert x.op[v] == AND
                down = int(x.node[v, DOWN])
                children = x.word[down + 2 : down + 1 + int(x.word[down])].tolist()
                n_true = next((i for i, c in enumerate(children) if c not in true), len(children))
                found[3] += min(n_true + 1, len(children))
                found[4] += n_true == len(children)
    predicates, access, ands, tests, matches = found / events.n_events
    print(
        f"{name} {n:,}: {predicates:,.0f} predicates hold, {access:,.0f} give access; "
        f"{ands:,.0f} ANDs looked at, {tests:,.0f} tests; {matches:,.0f} matches",
        flush=True,
    )
    blocks = find_index("blocks").build(table, slots)
    blocks.settle()
    ways = [Contestant("a_tree", [index]), Contestant("blocks", [blocks])]
    took = np.min([[micros(way, events, 1) for way in ways] for _ in range(ROUNDS)], axis=0)
    print(f"  a_tree {took[0]:.1f} µs, blocks {took[1]:.1f}: {took[0] / took[1]:.2f}", flush=True)


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    for each in given.get(1, WORKLOADS).split(","):
        count(each, int(given.get(0, 100_000)))
