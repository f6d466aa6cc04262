"""What `auto` plans for a frozen part, against every single index: all workloads of the suites.

    python benchmarks/auto_against_best.py [most subscriptions] [suite,...] [preset,...]

Each case of a suite's presets once, cut to so many subscriptions (200,000 by default; 0: as many as
the suite has).  All must give the same answers.  Times are those of the thread, the least of some
rounds in which all take turns, in µs an event of a batch and of an event alone.  "ratio" is `auto`
by the best single index; the goal is 1.2.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from matchwood.bench.answers import check, first_events, pairs
from matchwood.bench.searching import searched
from matchwood.bench.suite import INDEX, find_suite, list_suites
from matchwood.encode.events import EventBatch
from matchwood.encode.expression_kernels import TREE
from matchwood.engine.planner import plan
from matchwood.errors import MatchwoodError
from matchwood.index.core.protocol import ANY
from matchwood.index.core.registry import find_index
from matchwood.index.core.scratch import Scratch
from matchwood.workload.loading import load_events, load_subscriptions

SINGLE = ("blocks", "pst_bloom", "pst_hash", "be_tree", "vcr", "a_tree", "scan")
FOR_TREES = ("a_tree", "interval_id", "translation", "scan")
MOST, N_EVENTS, ROUNDS, GOAL = 200_000, 100, 5, 1.2
SCANNED = 3_000
"""Subscriptions up to which `scan` takes part."""


def one_event(events: EventBatch, e: int) -> EventBatch:
    part = slice(events.start[e], events.start[e + 1])
    keys = events.lo[part]
    return EventBatch(np.array([0, len(keys)]), events.attr[part], keys, keys)


class Contestant:
    """Some indexes that share the work."""

    def __init__(self, name: str, indexes: list) -> None:
        self.name, self.indexes, self.scratch = name, indexes, Scratch()
        self.batch, self.alone = [], []

    def search(self, events: EventBatch) -> list:
        return [searched(each, events, self.scratch) for each in self.indexes]

    def pairs(self, events: EventBatch) -> np.ndarray:
        return np.sort(np.concatenate([pairs(h, events.n_events) for h in self.search(events)]))

    def round(self, events: EventBatch, singles: list[EventBatch]) -> None:
        self.search(events)  # whatever the one before has left in the caches
        began = time.thread_time()
        self.search(events)
        self.batch.append((time.thread_time() - began) / events.n_events)
        began = time.thread_time()
        for event in singles:
            self.search(event)
        self.alone.append((time.thread_time() - began) / len(singles))


def cases(suites: list[str], presets: list[str], most: int):
    """Every different workload of the suites, with the case's name."""
    seen = set()
    for name in suites:
        suite = find_suite(name)
        if suite.runner != INDEX:
            continue
        for preset in presets:
            for case in suite.presets[preset].cases if preset in suite.presets else ():
                n = case.generator().n_subscriptions
                changes = {**case.changes, "n_events": N_EVENTS}
                changes["n_subscriptions"] = min(n, most) if most else n
                key = json.dumps([case.workload, changes], sort_keys=True, default=str)
                if key not in seen:
                    seen.add(key)
                    label = case.label or preset
                    yield f"{name}: {label}", case.generator().with_parameters(**changes)


def contestants(table, slots) -> list[Contestant]:
    chosen = plan(table, slots)
    for row in chosen.rows():
        print(f"    {row['index']} <- {row['reason']}")
    found = [Contestant("auto", [each.build(table) for each in chosen.choices])]
    has_trees = bool((table.layout.kind[slots] == TREE).any())
    for name in FOR_TREES if has_trees else SINGLE:
        kind = find_index(name)
        if (has_trees and kind.language != ANY) or (name == "scan" and len(slots) > SCANNED):
            continue
        if name == "translation" and len(slots) > 20_000:
            continue
        try:
            index = kind.build(table, slots)
            index.settle()
            found.append(Contestant(name, [index]))
        except MatchwoodError as error:
            print(f"    {name}: {error}")
    return found


def measure(label: str, workload) -> tuple[float, float]:
    loaded = load_subscriptions(workload)
    events = load_events(workload, loaded.attributes)
    table, slots = loaded.table, loaded.slots
    print(f"{label}, {len(slots):,} subscriptions", flush=True)
    found = contestants(table, slots)
    events = first_events(events, N_EVENTS)
    singles = [one_event(events, e) for e in range(min(50, events.n_events))]
    few = first_events(events, 20)
    scan = Contestant("scan", [find_index("scan").build(table, slots)])
    expected = scan.pairs(few)
    for each in found:
        check(each.name, label, each.pairs(few), expected)
        each.search(events)
    for _ in range(ROUNDS):
        for each in found:
            each.round(events, singles)
    ratios = []
    for what in ("batch", "alone"):
        least = {each.name: min(getattr(each, what)) * 1e6 for each in found}
        best = min(list(least)[1:], key=least.get)
        ratios.append(least["auto"] / least[best])
        others = "  ".join(f"{name} {value:,.1f}" for name, value in least.items())
        verdict = "ok" if ratios[-1] <= GOAL else "MISSED"
        print(f"    {what}: {others}   ratio {ratios[-1]:.2f} of {best} {verdict}", flush=True)
    return ratios[0], ratios[1]


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    most = int(given.get(0, MOST))
    suites = given[1].split(",") if 1 in given else [each.name for each in list_suites()]
    presets = given.get(2, "smoke,small").split(",")
    table = [(label, *measure(label, workload)) for label, workload in cases(suites, presets, most)]
    print(f"\n{'case':<40}{'batch':>8}{'alone':>8}    auto by the best single index")
    for label, batch, alone in table:
        missed = "" if max(batch, alone) <= GOAL else "  missed"
        print(f"{label:<40}{batch:8.2f}{alone:8.2f}{missed}")
