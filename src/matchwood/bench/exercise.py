"""Exercise: everything that reaches a kernel, once and on little data.

Numba compiles a function for the types it is called with, so what has to be compiled ahead is found
by calling it (engine/rehearsal.py).  Steps stand alone: several processes can share them
(compile_ahead.py).  What is missing here compiles at its first use; tests/test_exercise.py says
what that is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.context import CONTEXT_INDEXES
from matchwood.encode.entry_events import EntryEvents
from matchwood.engine.matcher import Matcher
from matchwood.engine.rehearsal import (
    EVENTS,
    change,
    conjunctions,
    context_life,
    match,
    tree_texts,
    whole_life,
)
from matchwood.engine.segments import tiers
from matchwood.errors import MatchwoodError
from matchwood.index.core.registry import REGISTRY as INDEXES
from matchwood.workload.registry import REGISTRY as WORKLOADS
from matchwood.workload.registry import find_workload

Step = Callable[[], None]

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "a_tree": [{"matching": "zero_suppression"},
               {"matching": "three_valued"}],
    "agile": [{"policy": "always"}, {"policy": "auto"}, {"policy": "rent", "rent": 1}],
    "be_tree": [{"max_cap": 2, "rank_window": 1.0}],
    "op_index": [{"sorting": "always"}],
    "pst_bloom": [{"space_size": 1, "max_spaces": 4, "max_records": 2, "learn_every": 1},
                  {"signatures": "leaves", "leaf_bits": 64}],
    "pst_hash": [{"n_access": 1, "max_records": 1, "learn_every": 1}],
    "vcr": [{"decomposition": "simple", "lists": "table", "cells": (4, 4)},
            {"decomposition": "overlapped", "lists": "hash", "cells": (8, 2), "sides": (2, 2)},
            {"decomposition": "simple", "lists": "chains", "places": 7}],
}  # fmt: skip
"""Settings that lead to other kernels than the defaults."""

CONTEXT_SETTINGS = [
    {"structure": "hash_table"}, {"structure": "search_tree"}, {"structure": "interval_skip_list"},
    *([{"merge": "bitmap"}] if find_spec("pyroaring") is not None else []),
]  # fmt: skip


AUTO_STEPS = ("matcher", "segments", "trees", "contexts", "demo")
"""What a matcher needs unless an index is chosen by name; `demo` has `blocks` and `terms` of large
segments."""

DEMO_STEPS = ("demo",)
"""What `matchwood demo` needs, on Spark or not: a third of it."""


def steps() -> dict[str, Step]:
    """All steps by name.

    Processes take them in this order.  The first one compiles what all others need; a second one
    meanwhile compiles the generators, which need least of it.
    """
    found: dict[str, Step] = {"matcher": _matcher}
    for name in WORKLOADS:
        found[f"workload {name}"] = partial(_workload, name)
    found |= {"stabbing": _stabbing, "trees": _trees, "contexts": _contexts, "segments": _segments,
              "demo": _demo}  # fmt: skip
    for name in INDEXES:
        if name != "r_tree" or find_spec("rtree") is not None:
            found[f"index {name}"] = partial(_index, name)
    return found


# -- steps ----------------------------------------------------------------------------------------


def _matcher() -> None:
    """What `auto` does with few and with many conjunctions."""
    whole_life(Matcher(), conjunctions(40, Random(1)) + tree_texts(20, Random(1)))
    whole_life(Matcher(), conjunctions(3_000, Random(1)))
    _typed()


def _segments() -> None:
    """Several segments and a head: their hits are joined."""
    matcher = Matcher()
    for first in range(3):
        texts = conjunctions(tiers.HEAD_MOST, Random(first))
        matcher.add_many([(f"{first} {i}", text) for i, text in enumerate(texts)])
    match(matcher)
    change(matcher)
    matcher.match_many(EVENTS, threads=2)
    matcher.compact()


def _demo() -> None:
    """The bookshop's texts in two segments, saved, loaded and searched for a table."""
    from matchwood.workload import plain_tables
    from matchwood.workload.bookshop import offer_events
    from matchwood.workload.bookshop_offers import offers
    from matchwood.workload.bookshop_rows import BookshopRows

    step = tiers.HEAD_MOST + 100
    rows = BookshopRows(n_subscriptions=2 * step, n_events=100, seed=1)
    matcher = Matcher()
    for first in (0, step):
        matcher.add_many(plain_tables.texts(rows, first, first + step))
    events = plain_tables.wide(rows, 0, 100)
    matcher.match_many(events)
    with TemporaryDirectory() as folder:
        matcher.save(folder)
        for verify in (True, False):
            loaded = Matcher.load(folder, mmap=not verify, verify=verify)
            loaded.match_many(events)
        (offer,) = offer_events(offers(1, np.arange(1)))
        for n in range(20):
            loaded.explain(n, offer)
        loaded.stats()
    _groups()


def _groups() -> None:
    """Many events that have few of the attributes: `blocks` searches them block by block."""
    rows = Matcher("blocks", columns=1.0, grouped=0)
    rows.add_many([(n, f"a{n % 90} = 1 AND a{n % 89} > {n % 7}") for n in range(400)])
    names = [f"a{n % 90}" for n in range(9_000)]
    events = np.repeat(np.arange(3_000), 3)
    rows.match_many(EntryEvents(3_000, events, pa.array(names), pa.array([1] * 9_000)))


def _trees() -> None:
    whole_life(Matcher(), tree_texts(3_000, Random(1)))


def _typed() -> None:
    """Declared types, tables of predicates, columns as other libraries have them."""
    schema = {"a": "int", "b": "int", "c": "float", "s": "string", "t": "bool",
              "d": "date", "m": "timestamp", "u.v": "int"}  # fmt: skip
    matcher = Matcher(schema=schema)
    matcher.add_many(pa.table({"id": list(range(30)), "expr": conjunctions(30, Random(3))}))
    matcher.match_many(EntryEvents(2, np.arange(2), pa.array(["a", "b"]), pa.array([5, 6])))
    match(matcher)
    rows = {"id": [1, 1, 2], "attribute": ["a", "b", "a"], "operator": ["=", "<", ">"],
            "value": [1, 5, 3]}  # fmt: skip
    predicates = Matcher()
    predicates.add_many(pa.table(rows))
    match(predicates)


def _contexts() -> None:
    context_life(Matcher(), 200)


def _index(name: str) -> None:
    """An index with its defaults and with settings that reach other kernels."""
    rng = Random(4)
    texts = conjunctions(400, rng) + tree_texts(60, rng)
    given = {"attributes": ("a", "b")} if name in ("vcr", "r_tree") else {}
    for setting in [{}, *SETTINGS.get(name, [])]:
        with suppress(MatchwoodError):  # an index may refuse some of this
            whole_life(Matcher(name, **{**given, **setting}), texts)
    if name in CONTEXT_INDEXES:
        for setting in [{}, *CONTEXT_SETTINGS, *SETTINGS.get(name, [])]:
            context_life(Matcher(name, **setting), 60)


def _stabbing() -> None:
    """The structures for one attribute, by themselves."""
    from matchwood.bench.table_3 import measure
    from matchwood.context.agile import AgileIndex, renewed
    from matchwood.index.stabbing.interval_skip_list import IntervalSkipList
    from matchwood.index.stabbing.interval_skip_list_kernels import LEVELS

    measure(200, 50, repetitions=1)
    _tries()
    intervals = IntervalSkipList()
    intervals.make_node(5, 2)
    for i in range(200):
        intervals.insert(i, i, i + 9)
    intervals.stab(7)
    intervals.delete(3)
    for structure in ("interval_skip_list", "hash_table", "search_tree"):
        agile = AgileIndex(structure)
        for i in range(200):
            agile.insert(i, i % 7, i % 7 + (structure == "interval_skip_list"))
        agile.update(1, 5, 5)
        agile.deescalate(1)
        agile.probe(5)
        agile.delete(2)
        listed = np.zeros(len(agile.structure.ends), np.int32)
        renewed(agile.structure, 1, listed, np.zeros(LEVELS, np.int64))


def _tries() -> None:
    """PS-Trees of elements; their events are counted."""
    from matchwood.index.stabbing.ps_tree import TRIE, PSTree

    tree = PSTree(TRIE)
    for i in range(60):
        tree.insert(i, [(3 * i, 3 * i + 40)])
    tree.stab(np.arange(50), counts=True)
    for i in range(50):
        tree.delete(i, [(3 * i, 3 * i + 40)])


def _workload(name: str) -> None:
    """The first rows of a workload, loaded, and its last rows; what is measured of it."""
    from matchwood.workload.ad_trees import AdTrees
    from matchwood.workload.context import Context, Walk
    from matchwood.workload.loading import load_events, load_subscriptions

    workload = find_workload(f"{name}:smoke", n_events=20)
    load_events(workload, load_subscriptions(workload, last=300).attributes)
    workload.subscriptions(workload.n_subscriptions - 20, workload.n_subscriptions)
    workload.events(0, 20)
    if isinstance(workload, AdTrees):
        workload.sharing()
    if isinstance(workload, Context):
        Walk(workload).steps(0, 50)
