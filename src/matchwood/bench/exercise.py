"""Exercise: everything that reaches a kernel, once and on little data.

Numba compiles a function for the types it is called with, so what has to be compiled ahead is found
by calling it.  Steps stand alone: several processes can share them (compile_ahead.py).  What is
missing here compiles at its first use; tests/test_exercise.py says what that is.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from matchwood.context import CONTEXT_INDEXES
from matchwood.engine import tiers
from matchwood.engine.matcher import Matcher
from matchwood.errors import MatchwoodError
from matchwood.index.core.registry import REGISTRY as INDEXES
from matchwood.lang.parser import parse
from matchwood.workload.registry import REGISTRY as WORKLOADS
from matchwood.workload.registry import find_workload

Step = Callable[[], None]

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "a_tree": [{"predicates": "ps_tree"}, {"matching": "zero_suppression"},
               {"matching": "three_valued"}],
    "agile": [{"policy": "always"}, {"policy": "auto"}, {"policy": "rent", "rent": 1}],
    "be_tree": [{"max_cap": 2, "rank_window": 1.0}],
    "op_index": [{"sorting": "always"}],
    "pst_bloom": [{"space_size": 1, "max_spaces": 4, "max_records": 2, "learn_every": 1}],
    "pst_hash": [{"n_access": 1, "max_records": 1, "learn_every": 1}],
    "vcr": [{"decomposition": "simple", "lists": "table", "cells": (4, 4)},
            {"decomposition": "overlapped", "lists": "hash", "cells": (8, 2), "sides": (2, 2)},
            {"decomposition": "simple", "lists": "chains", "places": 7}],
}  # fmt: skip
"""Settings that lead to other kernels than the defaults."""

CONTEXT_SETTINGS = [
    {"structure": "hash_table"}, {"structure": "search_tree"}, {"structure": "interval_skip_list"},
]  # fmt: skip

EVENTS: list[dict[str, Any]] = [
    {"a": 1, "b": 2, "c": 3.5, "s": "word 7", "t": True, "u": {"v": 3}},
    {"a": 5, "b": 1, "d": date(2026, 5, 4), "m": datetime(2026, 5, 4, 17, tzinfo=UTC)},
    {"a": 2**60, "c": float("nan"), "s": "", "t": None},
    {},
]


def steps() -> dict[str, Step]:
    """All steps by name.

    Processes take them in this order.  The first one compiles what all others need; a second one
    meanwhile compiles the generators, which need least of it.
    """
    found: dict[str, Step] = {"matcher": _matcher}
    for name in WORKLOADS:
        found[f"workload {name}"] = partial(_workload, name)
    found |= {"stabbing": _stabbing, "trees": _trees, "contexts": _contexts, "segments": _segments}
    for name in INDEXES:
        if name != "r_tree" or find_spec("rtree") is not None:
            found[f"index {name}"] = partial(_index, name)
    return found


# -- subscriptions and events ---------------------------------------------------------------------


def _conjunctions(n: int, rng: Random) -> list[str]:
    shapes = (
        "a = {0}", "a = {0} AND b < {1}", "b BETWEEN {0} AND {1} AND a > {2}",
        "s LIKE 'word {0}%' AND c <= {1}.5", "a IN ({0}, {1}, {2}) AND s <> 'word {1}'",
        "a NOT IN ({0}, {2}) AND t", "d > DATE '2026-05-01' AND a <> {0}", "u.v = {0} AND b <> {1}",
        "m < TIMESTAMP '2026-06-01 00:00:00' AND c > {0}", "c IS NULL AND a >= {0}",
        "a BETWEEN {0} AND {1} AND b BETWEEN {1} AND {2}",
    )  # fmt: skip
    return [shapes[i % len(shapes)].format(*sorted(rng.sample(range(60), 3))) for i in range(n)]


def _tree_texts(n: int, rng: Random) -> list[str]:
    parts = _conjunctions(3 * n, rng)
    rng.shuffle(parts)
    shapes = ("({0}) OR ({1})", "NOT ({0} AND {1}) OR {2}", "({0}) XOR ({1})",
              "({0} OR {1}) AND ({2} OR t)")  # fmt: skip
    return [shapes[i % len(shapes)].format(*parts[3 * i : 3 * i + 3]) for i in range(n)]


def _columns() -> pa.Table:
    """Events of one table: a column of each type."""
    rows = 70
    return pa.table(
        {
            "a": pa.array(range(rows), pa.int64()),
            "b": pa.array([i % 5 for i in range(rows)], pa.int32()),
            "c": pa.array([i / 2 for i in range(rows)], pa.float64()),
            "s": [f"word {i}" if i % 3 else None for i in range(rows)],
            "t": [i % 2 == 0 for i in range(rows)],
            "d": pa.array([date(2026, 5, 1 + i % 28) for i in range(rows)]),
            "m": pa.array([datetime(2026, 5, 1, i % 24, tzinfo=UTC) for i in range(rows)]),
            "u": pa.array([{"v": i} for i in range(rows)]),
        }
    )


def _match(matcher: Matcher) -> None:
    for event in EVENTS:
        matcher.match(event)
    matcher.match_many(EVENTS * 20)
    matcher.match(EVENTS[0])  # by now compiled code reads dicts
    matcher.match_many_json("\n".join([json.dumps(event, default=str) for event in EVENTS * 20]))
    matcher.match_many_json([json.dumps(event, default=str).encode() for event in EVENTS * 20])
    matcher.match_many(_columns())
    matcher.match_many(_columns().to_batches()[0])
    matcher.match(parse("a BETWEEN 1 AND 9 AND b IN (1, 3)"))
    matcher.match_many([parse("a > 5"), parse("s = 'word 7' AND c < 4")])


def _ask(matcher: Matcher) -> None:
    """What users ask beside `match`: the best, near misses, the indexes against a scan."""
    matcher.match(EVENTS[0], limit=2)
    matcher.match_many(EVENTS, limit=2, where="age > 3")
    matcher.near(EVENTS[0], 3)
    matcher.verify(EVENTS[:2])


def _change(matcher: Matcher) -> None:
    """Add, replace and remove, one and many, with a match after each."""
    matcher.add("one", "a = 3 AND b > 7", priority=2, attributes={"age": 5})
    matcher.add("two", "a = 3 OR s = 'x' AND b > 7")
    matcher.match(EVENTS[0])
    matcher.replace("one", "a = 4 AND new = 1")
    matcher.remove("two")
    matcher.add_many([(f"more {i}", text) for i, text in enumerate(_conjunctions(20, Random(2)))])
    matcher.match_many(EVENTS)
    matcher.explain("one", EVENTS[0])
    _ask(matcher)
    matcher.remove_many([f"more {i}" for i in range(0, 20, 2)])
    matcher.match_many(EVENTS)
    matcher.remove_many(["one", *[f"more {i}" for i in range(1, 20, 2)]])


def _save_and_load(matcher: Matcher) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for mmap in (True, False):
            matcher.save(Path(folder) / f"snapshot {mmap}")
            loaded = Matcher.load(Path(folder) / f"snapshot {mmap}", mmap=mmap)
            _match(loaded)
            _change(loaded)
            loaded.renumber()


def _whole_life(matcher: Matcher, texts: list[str]) -> None:
    """From the first subscription to the last: all verbs, and what they do when memory is full."""
    matcher.add("first", texts[0])
    matcher.match(EVENTS[0])
    matcher.add_many(list(enumerate(texts)))
    _match(matcher)
    _change(matcher)
    matcher.stats()
    matcher.draw()
    _save_and_load(matcher)
    matcher.remove_many(range(0, len(texts), 2))  # more than half are gone: compact
    matcher.remove_many(range(1, len(texts), 4))
    matcher.match_many(EVENTS)
    matcher.add_many([(f"again {i}", text) for i, text in enumerate(texts[:100])])
    _match(matcher)


# -- steps ----------------------------------------------------------------------------------------


def _matcher() -> None:
    """What `auto` does with few and with many conjunctions."""
    _whole_life(Matcher(), _conjunctions(40, Random(1)) + _tree_texts(20, Random(1)))
    _whole_life(Matcher(), _conjunctions(3_000, Random(1)))
    _typed()


def _segments() -> None:
    """Several segments and a head: their hits are joined."""
    matcher = Matcher()
    for first in range(3):
        texts = _conjunctions(tiers.HEAD_MOST, Random(first))
        matcher.add_many([(f"{first} {i}", text) for i, text in enumerate(texts)])
    _match(matcher)
    _change(matcher)
    matcher.match_many(EVENTS, threads=2)
    matcher.compact()


def _trees() -> None:
    _whole_life(Matcher(), _tree_texts(3_000, Random(1)))


def _typed() -> None:
    """Declared types, tables of predicates, columns as other libraries have them."""
    schema = {"a": "int", "b": "int", "c": "float", "s": "string", "t": "bool",
              "d": "date", "m": "timestamp", "u.v": "int"}  # fmt: skip
    matcher = Matcher(schema=schema)
    matcher.add_many(pa.table({"id": list(range(30)), "expr": _conjunctions(30, Random(3))}))
    _match(matcher)
    rows = {"id": [1, 1, 2], "attribute": ["a", "b", "a"], "operator": ["=", "<", ">"],
            "value": [1, 5, 3]}  # fmt: skip
    predicates = Matcher()
    predicates.add_many(pa.table(rows))
    _match(predicates)


def _contexts() -> None:
    _context_life(Matcher(), 200)


def _context_life(matcher: Matcher, n: int) -> None:
    texts = ("a < ctx.x", "b BETWEEN ctx.x - 5 AND ctx.x + 5 AND a > 1", "ctx.y = 3 AND a <> 2",
             "s = ctx.name AND ctx.y > 1", "ctx.x > 3 OR ctx.y < 2 AND a = 1")  # fmt: skip
    matcher.add_many([(i, texts[i % len(texts)], f"user {i % 20}") for i in range(n)])
    matcher.add("plain", "a = 1")
    _match(matcher)
    for turn in range(30):
        users = {f"user {u}": {"x": (turn * u) % 9, "y": turn % 5} for u in range(20)}
        matcher.set_context("user 1", {"x": turn, "name": f"word {turn}"}, flips=True)
        matcher.set_context_many(users, flips=turn % 2 == 0)
        matcher.match_many(EVENTS)
    matcher.add("late", texts[1], context="user 3")
    matcher.explain("late", EVENTS[0])
    _save_and_load(matcher)
    matcher.remove_context("user 2", flips=True)
    matcher.remove_many(range(0, n, 2))
    _match(matcher)


def _index(name: str) -> None:
    """An index with its defaults and with settings that reach other kernels."""
    rng = Random(4)
    texts = _conjunctions(400, rng) + _tree_texts(60, rng)
    given = {"attributes": ("a", "b")} if name in ("vcr", "r_tree") else {}
    for setting in [{}, *SETTINGS.get(name, [])]:
        with suppress(MatchwoodError):  # an index may refuse some of this
            _whole_life(Matcher(name, **{**given, **setting}), texts)
    if name in CONTEXT_INDEXES:
        for setting in [{}, *CONTEXT_SETTINGS, *SETTINGS.get(name, [])]:
            _context_life(Matcher(name, **setting), 60)


def _stabbing() -> None:
    """The structures for one attribute, by themselves."""
    from matchwood.bench.table_3 import measure
    from matchwood.context.agile import AgileIndex
    from matchwood.index.stabbing.interval_skip_list import IntervalSkipList

    measure(200, 50, repetitions=1)
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


def _workload(name: str) -> None:
    """The first rows of a workload, loaded, and its last rows."""
    from matchwood.workload.context import Context, Walk
    from matchwood.workload.loading import load_events, load_subscriptions

    workload = find_workload(f"{name}:smoke", n_events=20)
    load_events(workload, load_subscriptions(workload, last=300).attributes)
    workload.subscriptions(workload.n_subscriptions - 20, workload.n_subscriptions)
    workload.events(0, 20)
    if isinstance(workload, Context):
        Walk(workload).steps(0, 50)


def unused_kernels() -> list[str]:
    """Kernels that are imported and have no compiled form; for people who extend the exercise."""
    return sorted(
        f"{module.__name__}.{name}"
        for module in [m for key, m in list(sys.modules.items()) if key.startswith("matchwood.")]
        for name, value in vars(module).items()
        if getattr(getattr(value, "py_func", None), "__module__", None) == module.__name__
        and not value.signatures
    )
