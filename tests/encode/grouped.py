"""The law of grouped tests: they give what computing each test by itself gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from matchwood.encode import grouping


def compare_grouped_tests(
    subscriptions: st.SearchStrategy[list[str]],
    events: st.SearchStrategy[dict[str, Any]],
    answers: Callable[[list[str], list[dict[str, Any]]], Any],
) -> None:
    """Compare answers with tests grouped from the first one on, and never grouped."""
    before = grouping.MANY

    @given(subscriptions, st.lists(events, min_size=1, max_size=4))
    def check(texts: list[str], rows: list[dict[str, Any]]) -> None:
        grouping.MANY = 10**9
        expected = answers(texts, rows)
        grouping.MANY = 1
        assert answers(texts, rows) == expected

    try:
        check()
    finally:
        grouping.MANY = before
