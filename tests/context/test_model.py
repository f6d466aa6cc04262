"""Random interleavings of everything a user can do, against a naive evaluator with dicts."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import naive
from inside import routing_of, slot_of, table_of
from matchwood import Matcher
from matchwood.context.cif import Cif
from matchwood.context.member_kernels import entry_ranges
from matchwood.lang import And, Expr, Not, Or, Xor, attr, ctx

LONG = os.environ.get("MATCHWOOD_PROFILE") == "long"
STEPS = 7_200 if LONG else 175
"""Steps of a run; 28 runs make 200,000 in the long subscription."""

MOST = 100
"""Subscriptions above which one is removed instead of added."""

INDEXES = ["agile", "no_index", "eager", "partial", "gbu", "auto", "be_tree"]
NUMBERS = [0, 1, 2, 3, 5, 5.5, 7.25, 10, -4, 2**53, 2**53 + 2, 1e300, -1.5, float("nan")]
EVENT_NUMBERS = [*NUMBERS, 2**53 + 1, -(2**53) - 1, 4, 6]
WORDS = ["ada", "bob", "cy", "dan", "", "zoë", "adam"]
NAMES = {"price": "n", "size": "n", "city": "s", "on": "b", "rank": "i"}
CONTEXT = {"target": "n", "limit": "n", "home": "s", "away": "b", "level": "i", "x.y": "n"}
POOL = {"n": NUMBERS, "s": WORDS, "b": [True, False], "i": [-3, 0, 1, 2, 9, 2**62]}
EVENT_POOL = {**POOL, "n": EVENT_NUMBERS}
SCHEMA = {"rank": "int", "ctx": {"level": "int"}}


def leaf(rng: Random) -> Expr:
    shape = rng.random()
    if shape < 0.3:
        name = rng.choice(list(NAMES))
        return compared(rng, attr(name), rng.choice(POOL[NAMES[name]]), NAMES[name])
    if shape < 0.55:
        name = rng.choice(list(CONTEXT))
        if rng.random() < 0.2:
            return ctx(name).is_null() if rng.random() < 0.5 else ctx(name).is_not_null()
        if CONTEXT[name] == "s" and rng.random() < 0.3:
            return ctx(name).like(rng.choice(["a%", "%d%", "_o_", "b_b"]))
        return compared(rng, ctx(name), rng.choice(POOL[CONTEXT[name]]), CONTEXT[name])
    if shape < 0.62:
        left, right = rng.sample([name for name in CONTEXT if CONTEXT[name] == "n"], 2)
        return compared(rng, ctx(left), moved(rng, ctx(right)), "n")
    name = rng.choice(list(NAMES))
    kind = NAMES[name]
    others = [other for other in CONTEXT if CONTEXT[other] == kind]
    value = ctx(rng.choice(others))
    if kind == "n" and rng.random() < 0.4:
        low, high = sorted([rng.choice([0, 1, 2.5, 5]), rng.choice([0, 1, 2.5, 5])])
        return attr(name).between(value - low, value + high)
    if kind == "n" and rng.random() < 0.4:
        value = moved(rng, value)
    if kind == "i" and rng.random() < 0.4:
        value = value + rng.choice([1, -2, 2**62, 2**62 + 5, -(2**62)])
        if value.offset > 2**61 or value.offset < -(2**61):
            return attr(name) < value
    return compared(rng, attr(name), value, kind)


def moved(rng: Random, value: Any) -> Any:
    return value + rng.choice([0.5, 3, -2, -0.25, 1e300]) if rng.random() < 0.5 else value


def compared(rng: Random, left: Any, right: Any, kind: str) -> Expr:
    ops = ["==", "!="] if kind == "b" else ["==", "!=", "<", "<=", ">", ">=", "=="]
    op = rng.choice(ops)
    return {
        "==": lambda: left == right,
        "!=": lambda: left != right,
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
    }[op]()


def expression(rng: Random) -> Expr:
    leaves = [leaf(rng) for _ in range(rng.randint(1, 4))]
    shape = rng.random()
    if len(leaves) == 1:
        return Not(leaves[0]) if shape < 0.3 else leaves[0]
    if shape < 0.6:
        return And(tuple(leaves))
    if shape < 0.75:
        return Or(tuple(leaves))
    if shape < 0.85:
        return Xor(leaves[0], leaves[1])
    return And((Or(tuple(leaves[:2])), *(Not(each) for each in leaves[2:]), leaf(rng)))


def values(rng: Random, names: dict[str, str], pool: dict[str, list[Any]]) -> dict[str, Any]:
    chosen = rng.sample(list(names), rng.randint(0, len(names)))
    return {name: None if rng.random() < 0.1 else rng.choice(pool[names[name]]) for name in chosen}


class Model:
    """The matcher, and what it should be."""

    def __init__(self, index: str, seed: int) -> None:
        self.rng = Random(seed)
        config = {"low": 1, "high": 6} if index == "partial" else {}
        if index == "agile":
            config = {"policy": ["always", "fixed", "auto", "rent"][seed % 4], "rent": 1 + seed % 3}
            config["false_positives"] = 3
            config["structure"] = ["auto", "interval_skip_list", "search_tree"][seed % 3]
            config["merge"] = "bitmap" if seed % 4 == 2 else "count"  # auto
        if index == "gbu":
            config = {"updates": ["bottom_up", "top_down"][seed % 2]}
        self.matcher = Matcher(index=index, schema=SCHEMA, **config)
        self.expected: dict[int, tuple[Expr, str]] = {}
        self.contexts: dict[str, dict[str, Any]] = {}
        self.n_added = 0

    def step(self) -> None:
        action = self.rng.choices(
            [self.add, self.remove, self.replace, self.set_context, self.set_many, self.match],
            [20, 6, 4, 35, 5, 30],
        )[0]
        action()

    def context(self) -> str:
        return f"c{self.rng.randrange(8)}"

    def add(self) -> None:
        if len(self.expected) >= MOST:
            self.remove()
            return
        expr, context = expression(self.rng), self.context()
        given = str(expr) if self.rng.random() < 0.5 else expr
        self.matcher.add(self.n_added, given, context=context)
        self.expected[self.n_added] = expr, context
        self.n_added += 1

    def remove(self) -> None:
        if self.expected:
            id_ = self.rng.choice(list(self.expected))
            self.matcher.remove(id_)
            del self.expected[id_]

    def replace(self) -> None:
        if self.expected:
            id_ = self.rng.choice(list(self.expected))
            expr = expression(self.rng)
            context = self.context() if self.rng.random() < 0.5 else None
            self.matcher.replace(id_, expr, context=context)
            self.expected[id_] = expr, context or self.expected[id_][1]

    def set_context(self) -> None:
        id_, changed = self.context(), values(self.rng, CONTEXT, POOL)
        wants_flips = self.rng.random() < 0.1
        before = self.open_ones() if wants_flips else set()
        told = self.matcher.set_context(id_, changed, flips=wants_flips)
        self.contexts.setdefault(id_, {}).update(changed)
        if wants_flips:
            after = self.open_ones()
            assert told == (sorted(after - before), sorted(before - after))

    def open_ones(self) -> set[int]:
        return {
            id_
            for id_, (expr, context) in self.expected.items()
            if can_match(expr, self.row({}, context)) and not is_constant(self.matcher, id_)
        }

    def set_many(self) -> None:
        n = self.rng.randint(1, 12)
        ids = [self.context() for _ in range(n)]
        names = self.rng.sample(["target", "limit", "level", "home"], 2)
        columns = {
            name: [
                None if self.rng.random() < 0.3 else self.rng.choice(POOL[CONTEXT[name]])
                for _ in ids
            ]
            for name in names
        }
        for name in names:
            if CONTEXT[name] == "n":
                columns[name] = [None if v is None else float(v) for v in columns[name]]
        kinds = {"n": pa.float64(), "i": pa.int64(), "s": pa.string()}
        arrays = [pa.array(columns[name], kinds[CONTEXT[name]]) for name in names]
        if self.rng.random() < 0.5:
            table = pa.table([pa.array(ids), *arrays], ["context", *names])
            self.matcher.set_context_many(table)
        else:
            pairs = [
                (id_, {name: columns[name][i] for name in names if columns[name][i] is not None})
                for i, id_ in enumerate(ids)
            ]
            self.matcher.set_context_many(pairs)
        for name in names:
            for id_, value in zip(ids, columns[name], strict=True):
                if value is not None:
                    self.contexts.setdefault(id_, {})[name] = value

    def row(self, event: dict[str, Any], context: str) -> dict[str, Any]:
        known = dict(self.contexts.get(context, {}))
        if known.get("level") is not None:
            known["level"] = naive.Declared(known["level"])
        return naive.in_context(event, known)

    def answers(self, event: dict[str, Any]) -> list[int]:
        return sorted(
            id_
            for id_, (expr, context) in self.expected.items()
            if naive.matches(expr, self.row(event, context))
        )

    def match(self) -> None:
        events = [values(self.rng, NAMES, EVENT_POOL) for _ in range(self.rng.randint(1, 4))]
        if len(events) == 1:
            found = [self.matcher.match(events[0])]
        else:
            found = [list(each) for each in self.matcher.match_many(events)]
        assert [sorted(each) for each in found] == [self.answers(event) for event in events]
        if self.expected and self.rng.random() < 0.3:
            id_ = self.rng.choice(list(self.expected))
            assert self.matcher.explain(id_, events[0]).matches == (id_ in found[0])
        self.check_invariant()

    def check_invariant(self) -> None:
        """k(i) is in K(i), for every entry of every index."""
        cif = routing_of(self.matcher).context_index
        if not isinstance(cif, Cif) or not cif.choice.width:
            return
        n = cif.choice.width
        live = [p for p in cif.member_of.tolist() if p >= 0]
        entries = [p * n + k for p in live for k in range(n) if cif.members.entry[p * n + k, 1]]
        lo, hi = np.zeros(len(entries), np.int64), np.zeros(len(entries), np.int64)
        entry_ranges(cif.members, cif.cells, np.array(entries, np.int64), n, lo, hi)
        held = cif.structure.range[entries]
        assert ((lo > hi) | ((held[:, 0] <= lo) & (hi <= held[:, 1]))).all()


def can_match(expr: Expr, row: dict[str, Any]) -> bool:
    """With every test of the event taken to be TRUE."""
    from matchwood.forms import nnf
    from matchwood.lang import Const, Predicate, Relation, is_context

    def holds(node: Expr) -> bool:
        if isinstance(node, And):
            return all(map(holds, node.operands))
        if isinstance(node, Or):
            return any(map(holds, node.operands))
        if isinstance(node, Const):
            return node.value is True
        if isinstance(node, Relation) and not is_context(node.name):
            return row.get(node.reference) is not None
        assert isinstance(node, Predicate)
        return naive.matches(node, row) if is_context(node.name) else True

    return holds(nnf(expr))


def is_constant(matcher: Matcher, id_: int) -> bool:
    from matchwood.encode.expression_kernels import ALWAYS, NEVER

    return table_of(matcher).layout.kind[slot_of(matcher, id_)] in (ALWAYS, NEVER)


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_nothing_is_ever_stale(index: str, seed: int) -> None:
    model = Model(index, seed)
    for _ in range(STEPS):
        model.step()
    model.match()
