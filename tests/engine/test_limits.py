"""Every limit is documented, and has its error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import matchwood as mw
from matchwood.engine.limits import LIMITS, as_table
from matchwood.forms.dnf import dnf

DOCS = Path(__file__).parents[2] / "docs" / "limits.md"


def nested(depth: int) -> dict:
    event: dict = {"x": 1}
    for _ in range(depth):
        event = {"a": event}
    return event


def too_much(what: str, most: int, m: mw.Matcher) -> None:
    """Go one beyond a limit."""
    if what == "characters of a text":
        m.add("s", f"x = '{'a' * most}'")
    elif what == "levels of nesting of an expression":
        m.add("s", "NOT " * (most + 1) + "x = 1")
    elif what == "levels of nesting of a computed attribute":
        m.add("s", "abs(" * most + "x" + ")" * most + " = 1")
    elif what == "levels of groups of a regular expression":
        m.add("s", f"x RLIKE '{'(' * (most + 1)}a{')' * (most + 1)}'")
    elif what == "levels of nesting of a context's values":
        m.set_context("ann", nested(most + 1))
    elif what == "levels of nesting of own attributes":
        m.add("s", "x = 1", attributes=nested(most + 1))
    elif what == "characters of a number":
        m.add("s", "x = " + "9" * (most + 1))
    elif "XOR" in what:
        parts = [f"(x = {i} OR y = {i} OR z = {i} OR w = {i})" for i in range(190)]
        m.add("s", " XOR ".join(parts))
    elif "DNF" in what:
        dnf(mw.parse(" AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(20))))
    elif what == "levels of nesting of an event":
        m.match(nested(most + 1))
    elif "id" in what:
        m.add(2**most, "x = 1")
    else:
        m.add("s", "x = 1", priority=2**most)


@pytest.mark.parametrize(
    "limit", [each for each in LIMITS if each.error], ids=lambda each: each.what
)
def test_beyond_a_limit_is_its_error(limit) -> None:
    m = mw.Matcher()
    with pytest.raises(limit.error):
        too_much(limit.what, limit.most, m)
    assert len(m) == 0


def test_the_deepest_own_attributes_are_filtered_by() -> None:
    most = next(each.most for each in LIMITS if each.what == "levels of nesting of own attributes")
    m = mw.Matcher()
    m.add("deep", "x = 1", attributes=nested(most))
    assert m.match({"x": 1}, where="a IS NOT NULL AND subscriber.a IS NOT NULL") == ["deep"]
    with pytest.raises(mw.SubscriptionError, match=f"nested at most {most} deep"):
        m.replace("deep", "x = 1", attributes=json.dumps(nested(most + 1)))


def test_a_context_as_deep_as_an_event_is_taken_and_no_loop() -> None:
    m = mw.Matcher()
    m.set_context("ann", nested(50))
    loop: dict = {}
    loop["again"] = loop
    with pytest.raises(mw.EventError, match="nested at most 50 deep"):
        m.set_context("ann", loop)
    with pytest.raises(mw.EventError, match="nested at most 50 deep"):
        m.set_context_many({"bob": loop})
    assert m.context_ids() == ["ann"]


def test_deep_nots_are_not_called_computed() -> None:
    with pytest.raises(mw.ParseError, match="nesting of at most 200 levels, found more"):
        mw.parse("NOT " * 201 + "x = 1")


def test_the_page_of_limits_shows_the_list() -> None:
    assert as_table() in DOCS.read_text()


def test_an_expression_of_many_terms_is_not_decided() -> None:
    m = mw.Matcher()
    m.add("many", " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(8)))
    m.add("one", "a1 = 1")
    assert m.overlaps("one").unknown == ["many"]
    assert m.subsumes("one", "many") is None


def test_metrics_are_in_the_text_format_of_prometheus() -> None:
    m = mw.Matcher()
    m.add(1, "x = 1")
    for _ in range(5):
        m.match({"x": 1})
    with pytest.raises(mw.ParseError):
        m.add(2, "x =")
    calls = m.stats()["calls"]
    assert (calls["match"]["count"], calls["add"]["count"]) == (5, 2)
    assert 0 < calls["match"]["p50"] <= calls["match"]["p99"]
    lines = m.metrics().splitlines()
    assert "matchwood_subscriptions 1" in lines
    assert 'matchwood_call_seconds_count{call="match"} 5' in lines
    assert 'matchwood_call_seconds_bucket{call="match",le="+Inf"} 5' in lines
    assert 'matchwood_work_total{counter="events"} 5' in lines
    buckets = [int(line.split()[-1]) for line in lines if 'bucket{call="match"' in line]
    assert buckets == sorted(buckets)
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
    for line in lines:
        assert line.startswith("#") or float(line.split()[-1]) >= 0
