"""A matcher against a plain dict and the naive evaluator, whatever is done to it."""

from __future__ import annotations

import os
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import matchwood as mw
from encode.world import mixed_expressions
from engine.invariants import check
from matchwood.encode import keys
from matchwood.encode.dictionary import OrderedDictionary
from matchwood.engine.segments import planner, tiers
from matchwood.index.core.registry import REGISTRY
from matchwood.index.terms import conjunctions
from matchwood.lang.nodes import Expr
from naive import evaluate, flatten, matches
from strategies import event

TYPES = {
    "a": "number",
    "b": "string",
    "c.d": "int",
    "c.e": "bool",
    "f": "float",
    "g": "timestamp",
    "h": "date",
}
ARROW = {
    "a": pa.float64(),
    "b": pa.string(),
    "c.d": pa.int64(),
    "c.e": pa.bool_(),
    "f": pa.float64(),
    "g": pa.timestamp("us", "UTC"),
    "h": pa.date32(),
}
IDS = st.one_of(st.integers(0, 12), st.integers(0, 12).map(str))
SEEDS = st.integers(0, 2**32 - 1)


def drawn_expression(seed: int) -> Expr:
    return mixed_expressions(Random(seed), TYPES, 1)[0]


def drawn_events(seed: int) -> list[dict[str, Any]]:
    rng = Random(seed)
    return [event(rng, TYPES) for _ in range(rng.randint(1, 4))]


class MatcherAgainstDict(RuleBasedStateMachine):
    index: str
    step: int | None = None

    def __init__(self) -> None:
        super().__init__()
        self.patched = pytest.MonkeyPatch()
        if self.step is not None:
            step = self.step
            self.patched.setattr(keys, "OrderedDictionary", lambda: OrderedDictionary(step))
        if self.index == "auto":  # small segments, merged early, each with the indexes of a plan
            self.patched.setattr(tiers, "HEAD_MOST", 3)
            self.patched.setattr(tiers, "FACTOR", 2)
            self.patched.setattr(planner, "FEW", 0)
            self.patched.setattr(conjunctions, "FEW_BESIDE", 0)
        self.matcher = mw.Matcher(index=self.index, schema=TYPES)
        self.model: dict[int | str, Expr] = {}  # a dict keeps a value's place when it is replaced

    def teardown(self) -> None:
        self.patched.undo()

    # -- changing ----------------------------------------------------------------------------

    @rule(id_=IDS, seed=SEEDS, as_text=st.booleans())
    def add(self, id_: int | str, seed: int, as_text: bool) -> None:
        expr = drawn_expression(seed)
        given = str(expr) if as_text else expr
        if id_ in self.model:
            with pytest.raises(mw.SubscriptionError, match="taken"):
                self.matcher.add(id_, given)
        else:
            self.matcher.add(id_, given)
            self.model[id_] = expr

    @rule(ids=st.lists(IDS, max_size=8), seed=SEEDS, bad=st.booleans())
    def add_many(self, ids: list[int | str], seed: int, bad: bool) -> None:
        rows: list[tuple[Any, str]] = []
        refused = []
        for number, id_ in enumerate(ids):
            expr = drawn_expression(seed + number)
            is_bad = bad and number % 3 == 1
            rows.append((id_, "a = = 1" if is_bad else str(expr)))
            if is_bad or id_ in self.model:
                refused.append(number)
            else:
                self.model[id_] = expr
        report = self.matcher.add_many(rows)
        assert [each.row for each in report.errors] == refused
        assert report.count == len(rows) - len(refused)

    @rule(id_=IDS, seed=SEEDS)
    def replace(self, id_: int | str, seed: int) -> None:
        expr = drawn_expression(seed)
        self.matcher.replace(id_, str(expr))
        self.model[id_] = expr

    @precondition(lambda self: self.model)
    @rule(choice=st.integers(0, 100), seed=SEEDS, how=st.sampled_from(("and", "or", "same", "not")))
    def vary(self, choice: int, seed: int, how: str) -> None:
        """Replace an expression by one that shares its predicates."""
        id_, old = list(self.model.items())[choice % len(self.model)]
        other = drawn_expression(seed)
        expr = {"and": old & other, "or": old | other, "same": old, "not": ~old}[how]
        self.matcher.replace(id_, expr)
        self.model[id_] = expr

    @precondition(lambda self: self.model)
    @rule(choice=st.integers(0, 100), id_=IDS)
    def repeat(self, choice: int, id_: int | str) -> None:
        """Hold an expression twice, or more often."""
        expr = list(self.model.values())[choice % len(self.model)]
        self.matcher.replace(id_, expr)
        self.model[id_] = expr

    @rule(id_=IDS)
    def refuse(self, id_: int | str) -> None:
        for text in ("a = 'text'", "a LIKE '%x'", "c.d = TRUE", "b = 1 AND new_name = 1"):
            with pytest.raises(mw.SchemaError):
                self.matcher.replace(id_, text)
        assert "new_name" not in self.matcher.schema

    @rule(id_=IDS)
    def remove(self, id_: int | str) -> None:
        if id_ in self.model:
            self.matcher.remove(id_)
            del self.model[id_]
        else:
            with pytest.raises(mw.SubscriptionError, match="no such"):
                self.matcher.remove(id_)

    @rule(ids=st.lists(IDS, max_size=10))
    def remove_many(self, ids: list[int | str]) -> None:
        known = {id_ for id_ in ids if id_ in self.model}
        report = self.matcher.remove_many(ids)
        assert report.count == len(known)
        assert len(report.errors) == len(ids) - len(known)
        for id_ in known:
            del self.model[id_]

    @rule()
    def compact(self) -> None:
        self.matcher.compact()

    @rule(mmap=st.booleans())
    def save_and_load(self, mmap: bool) -> None:
        with TemporaryDirectory() as folder:
            self.matcher.save(f"{folder}/kept")
            self.matcher = mw.Matcher.load(f"{folder}/kept", mmap=mmap)

    # -- asking ------------------------------------------------------------------------------

    def expected(self, found: dict[str, Any]) -> list[int | str]:
        flat = flatten(found)
        return [id_ for id_, expr in self.model.items() if matches(expr, flat)]

    @rule(seed=SEEDS)
    def match(self, seed: int) -> None:
        for each in drawn_events(seed):
            assert self.matcher.match(each) == self.expected(each)

    @rule(seed=SEEDS)
    def match_many_dicts(self, seed: int) -> None:
        found = self.matcher.match_many(events := drawn_events(seed))
        assert list(found) == [self.expected(each) for each in events]

    @rule(seed=SEEDS)
    def match_many_arrow(self, seed: int) -> None:
        events = as_columns(drawn_events(seed))
        found = self.matcher.match_many(arrow_table(events))
        assert found.errors == {}
        assert list(found) == [self.expected(each) for each in events]

    @rule(seed=SEEDS)
    def match_many_pandas(self, seed: int) -> None:
        events = [
            {name: value for name, value in each.items() if value == value}
            for each in drawn_events(seed)
        ]
        frame = pd.DataFrame(events, columns=list(TYPES), dtype=object)
        found = self.matcher.match_many(frame)
        assert found.errors == {}
        assert list(found) == [self.expected(each) for each in events]

    @precondition(lambda self: self.model)
    @rule(seed=SEEDS, choice=st.integers(0, 100))
    def explain(self, seed: int, choice: int) -> None:
        id_, expr = list(self.model.items())[choice % len(self.model)]
        for each in drawn_events(seed):
            explanation = self.matcher.explain(id_, each)
            assert explanation.tree.value is evaluate(expr, flatten(each))
            assert explanation.matches is (id_ in self.matcher.match(each))

    # -- always ------------------------------------------------------------------------------

    @invariant()
    def tables_are_consistent(self) -> None:
        check(self.matcher)

    @invariant()
    def counts_are_right(self) -> None:
        stats = self.matcher.stats()
        kinds = ("conjunctions", "trees", "always_true", "never_true")
        assert stats["subscriptions"] == len(self.matcher) == len(self.model)
        assert sum(stats[kind] for kind in kinds) == len(self.model)
        assert all(id_ in self.matcher for id_ in self.model)


def as_columns(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same events with doubles for numbers; without those that a double would round."""

    def column(each: dict[str, Any]) -> dict[str, Any]:
        number = each.get("a")
        if number is None:
            return each
        rounded = float(number)
        return {**each, "a": rounded if number != number or rounded == number else None}

    return [column(each) for each in events]


def arrow_table(events: list[dict[str, Any]]) -> pa.Table:
    """Columns in chunks, the dotted names as a struct."""
    flat = {
        name: pa.array([each.get(name) for each in events], kind) for name, kind in ARROW.items()
    }
    inner = {name: flat.pop(f"c.{name}") for name in ("d", "e")}
    flat["c"] = pa.StructArray.from_arrays(list(inner.values()), list(inner))
    table = pa.table(flat)
    return pa.concat_tables([table.slice(0, 1), table.slice(1)])


def machine(name: str, gap: int | None) -> type:
    made = type(f"Matcher_{name}_{gap}", (MatcherAgainstDict,), {"index": name, "step": gap})
    case = made.TestCase
    case.settings = settings(
        max_examples=max(10, settings.default.max_examples // 3), stateful_step_count=30
    )
    return case


# A step of 4 uses gaps up after a constant or two: labels are spread again all the time.  What that
# asks of an index, to be built again, static ones do at every change: one of them is enough here.
IS_LONG = os.environ.get("MATCHWOOD_PROFILE") == "long"
DYNAMIC = {"auto", "scan", "be_tree", "pst_bloom", "pst_hash", "a_tree", "vcr", "blocks", "agile"}
for _name in ("auto", *REGISTRY):
    globals()[f"Test_{_name}"] = machine(_name, None)
    if IS_LONG or _name in DYNAMIC:
        globals()[f"Test_{_name}_with_narrow_gaps"] = machine(_name, 4)
