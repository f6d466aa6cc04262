"""Tests of many constants in one list: found by its elements, with the answers of computing them.

Computing them one by one is what the oracle compares with Spark (tests/oracle/functions.py).
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood as mw
from encode.grouped import compare_grouped_tests
from matchwood.encode import grouping
from matchwood.lang.functions.evaluate import Formula

WORDS = [f"t{i}" for i in range(12)]
FORMS = [
    "array_contains(tags, {c})",
    "NOT array_contains(tags, {c})",
    "array_contains(tags, {c}) AND price < 3",
    "array_contains(tags, {c}) OR price > 8",
    "array_contains(tags, {c}) AND array_contains(tags, {d})",
    "array_contains(tags, {c}) AND NOT array_contains(tags, {d})",
    "array_contains(tags, {c}) XOR array_contains(tags, {d})",
    "array_contains(tags, {c}) IS NULL",
    "array_contains(tags, {c}) IS NOT TRUE",
    "array_contains(tags, {c}) <=> TRUE",
    "array_contains(tags, {c}) = FALSE",
    "arrays_overlap(tags, array({c}, {d}))",
    "NOT arrays_overlap(tags, array({c}, {d}))",
    "array_contains(user.m['k'], {c})",
]
CONSTANTS = [*[f"'{each}'" for each in WORDS], "0", "1", "7", "9007199254740992", "1.5", "TRUE"]

subscriptions = st.lists(
    st.builds(
        lambda form, c, d: form.format(c=c, d=d),
        st.sampled_from(FORMS),
        st.sampled_from(CONSTANTS),
        st.sampled_from(CONSTANTS),
    ).filter(lambda text: "arrays_overlap" not in text or ("'" in text) == (text.count("'") == 4)),
    max_size=12,
)
same_kind = st.one_of(
    st.lists(st.sampled_from(WORDS) | st.none(), max_size=5),
    st.lists(st.integers(0, 9) | st.none(), max_size=5),
    st.lists(st.sampled_from([0.0, 1.0, 1.5, 7.0, float("nan"), 9007199254740992.0]), max_size=4),
)
values = st.one_of(
    st.none(),
    same_kind,
    st.lists(st.sampled_from([*WORDS[:4], 0, 1, 1.0, True, None]), max_size=4),
    st.sampled_from(
        [(), ("t1", "t2"), "t1", 7, {"t1": 1}, [date(2026, 1, 1)], [Decimal(7)], [["t1"]],
         np.array(["t1", "t3"]), np.array([1, 7])]
    ),
)  # fmt: skip
events = st.fixed_dictionaries(
    {"tags": values, "price": st.integers(0, 10), "user": st.just({"m": {"k": ["t1", "t2"]}})}
)


def answers(texts: list[str], given_events: list[dict[str, Any]], index: str) -> list[Any]:
    m = mw.Matcher(index=index)
    m.add_many(list(enumerate(texts)))
    return [m.match(each) for each in given_events]


@pytest.mark.parametrize("index", ["scan", "auto"])
def test_elements_give_what_computing_gives(index: str) -> None:
    compare_grouped_tests(subscriptions, events, partial(answers, index=index))


@given(subscriptions, st.lists(same_kind, min_size=1, max_size=4))
def test_a_column_gives_what_dicts_give(texts: list[str], lists: list[Any]) -> None:
    kind = next((type(each) for row in lists for each in row if each is not None), str)
    rows = [{"tags": row} for row in lists if all(type(each) in (kind, type(None)) for each in row)]
    m = mw.Matcher()
    m.add_many(list(enumerate(texts)))
    before, grouping.MANY = grouping.MANY, 1
    try:
        table = pa.Table.from_pylist(rows)
        found = m.match_many(table)
        assert [found[i] for i in range(len(rows))] == [m.match(each) for each in rows]
    finally:
        grouping.MANY = before


def tagged(n: int) -> list[tuple[int, str]]:
    return [(i, f"array_contains(tags, 't{i}') AND price < {i % 7 + 1}") for i in range(n)]


def test_only_what_is_asked_otherwise_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[str] = []
    with_types = Formula.with_types

    def counted(self: Formula, types: tuple[Any, ...], row: dict[str, Any]) -> Any:
        computed.append(self.text)
        return with_types(self, types, row)

    monkeypatch.setattr(Formula, "with_types", counted)
    m = mw.Matcher()
    m.add_many(tagged(500))
    m.add("not", "NOT array_contains(tags, 't3') AND price < 5")
    assert m.match({"tags": ["t5", "t499", "t5", "other"], "price": 0}) == [5, 499, "not"]
    assert set(computed) == {"array_contains(tags, 't3')"}


def test_a_negation_that_comes_later_is_seen_at_once(tmp_path: Any) -> None:
    m = mw.Matcher()
    m.add_many(tagged(100))
    event = {"tags": ["t1"], "price": 0}
    assert m.match(event) == [1]
    m.add("later", "NOT array_contains(tags, 't2')")
    assert m.match(event) == [1, "later"]
    m.remove(2)
    m.remove("later")
    assert m.match(event) == [1]
    m.add("again", "NOT array_contains(tags, 't7')")
    m.compact()
    assert m.match(event) == [1, "again"]
    m.save(tmp_path / "kept")
    for mmap in (False, True):
        kept = mw.Matcher.load(tmp_path / "kept", mmap=mmap)
        assert kept.match(event) == [1, "again"]
        assert kept.match_json(b'{"tags": ["t9", null], "price": 0}') == [9]


def test_elements_of_another_kind_are_counted_for_the_list() -> None:
    m = mw.Matcher()
    m.add_many(tagged(40))
    assert m.match({"tags": ["t1", 5], "price": 0}) == [1]
    assert m.stats()["unknown"] == {"tags": 1}
