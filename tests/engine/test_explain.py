"""Explanations: never another answer than match, and reasons that are true and enough."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings

import matchwood as mw
from encode.world import mixed_expressions
from engine.invariants import trace
from matchwood.engine.answers.explain import Explanation, Node
from matchwood.lang.nodes import And, Const, Expr, Not, Or, Predicate, Xnor, Xor, predicates
from naive import Truth, and_, evaluate, flatten, matches, not_, or_, xor
from strategies import seeds, workload

FEWER = settings(max_examples=max(10, settings.default.max_examples // 3))
WORDS = {True: "TRUE", False: "FALSE", None: "UNKNOWN"}


def nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from nodes(child)


@pytest.mark.slow
@FEWER
@given(seed=seeds())
def test_every_node_has_the_truth_that_sql_gives_it(seed):
    rng = Random(seed)
    types, _, events = workload(rng, 0, 6)
    m = mw.Matcher(schema=types)
    exprs = mixed_expressions(rng, types, 10)
    for i, expr in enumerate(exprs):
        m.add(i, expr)
    for round_ in range(2):
        for event in events:
            matched = m.match(event)
            for i, expr in enumerate(exprs):
                explanation = m.explain(i, event)
                assert explanation.matches is (i in matched) is matches(expr, event)
                for node in nodes(explanation.tree):
                    assert node.value is evaluate(node.expr, event)
                    assert node.text == str(node.expr)
                assert (explanation.reasons == ()) is explanation.matches
        if round_ == 0:
            m.compact()  # constants that merging made needless are forgotten, and not missed


def three_valued(expr: Expr, truth_of: dict[str, Truth]) -> Truth:
    """Evaluate with chosen truths for the predicates, by their text."""
    if isinstance(expr, Const):
        return expr.value
    if isinstance(expr, Predicate):
        return truth_of[str(expr)]
    if isinstance(expr, Not):
        return not_(three_valued(expr.operand, truth_of))
    if isinstance(expr, (And, Or)):
        each = [three_valued(operand, truth_of) for operand in expr.operands]
        return and_(each) if isinstance(expr, And) else or_(each)
    assert isinstance(expr, (Xor, Xnor))
    differ = xor(three_valued(expr.left, truth_of), three_valued(expr.right, truth_of))
    return not_(differ) if isinstance(expr, Xnor) else differ


def said(explanation: Explanation) -> dict[str, Truth]:
    """The truths that the reasons claim."""
    leaves = {node.text: node.value for node in nodes(explanation.tree) if not node.children}
    claimed = {}
    for reason in explanation.reasons:
        [text] = [t for t, v in leaves.items() if reason.startswith(f"{t} is {WORDS[v]}")
                  and reason[len(f"{t} is {WORDS[v]}"):][:1] in ("", ":")]  # fmt: skip
        claimed[text] = leaves[text]
    return claimed


@pytest.mark.slow
@given(seed=seeds())
def test_reasons_are_true_and_enough(seed):
    """Whatever the other predicates were: with these as they are, the whole is not TRUE."""
    rng = Random(seed)
    types, _, events = workload(rng, 0, 4)
    m = mw.Matcher(schema=types)
    for i, expr in enumerate(mixed_expressions(rng, types, 8)):
        if len({str(each) for each in predicates(expr)}) > 5:
            continue
        m.add(i, expr)
        for event in events:
            explanation = m.explain(i, event)
            if explanation.matches:
                continue
            claimed = said(explanation)
            others = sorted({str(each) for each in predicates(expr)} - set(claimed))
            for truths in product((True, False, None), repeat=len(others)):
                chosen = dict(zip(others, truths, strict=True))
                assert three_valued(expr, {**chosen, **claimed}) is not True, str(explanation)


def test_one_reason_is_enough_for_a_conjunction():
    m = mw.Matcher()
    m.add(1, "price < 20 AND genre = 'classics' AND (a = 1 OR b = 2)")
    explanation = m.explain(1, {"price": 30, "genre": "classics"})
    assert explanation.reasons == ("price < 20 is FALSE: price is 30",)
    nothing = m.explain(1, {"price": 10, "genre": "classics"})
    assert nothing.reasons == (
        "a = 1 is UNKNOWN: a is absent",
        "b = 2 is UNKNOWN: b is absent",
    )


def test_an_explanation_reads_as_text_and_as_json():
    m = mw.Matcher()
    m.add("s1", "price < 20 AND NOT sold")
    explanation = m.explain("s1", {"price": 30})
    assert str(explanation).splitlines() == [
        "'s1' does not match",
        "FALSE   price < 20 AND NOT sold",
        "├── FALSE   price < 20   (price is 30)",
        "└── UNKNOWN NOT sold",
        "    └── UNKNOWN sold   (sold is absent)",
        "because price < 20 is FALSE: price is 30",
    ]
    assert json.loads(json.dumps(explanation.to_dict()))["tree"]["value"] == "FALSE"
    assert str(m.explain("s1", {"price": 3, "sold": False})).startswith("'s1' matches")


@pytest.mark.parametrize(
    ("text", "event", "truth"),
    [
        ("x NOT IN (1, NULL)", {"x": 2}, None),
        ("x NOT IN (1, NULL)", {"x": 1}, False),
        ("x IN (NULL)", {"x": 1}, None),
        ("x IN (1, NULL)", {"x": 1}, True),
        ("x = NULL", {"x": 1}, None),
        ("NULL", {}, None),
        ("TRUE", {}, True),
        ("x > 3 AND x < 1", {"x": 2}, False),
        ("x > 3 OR x > 1", {"x": 2}, True),
        ("user.age IS NULL", {"user": {"age": 3}}, False),
        ("x LIKE '%'", {"x": ""}, True),
        ("x LIKE '%a_'", {"x": "bab"}, True),
    ],
)
def test_the_truth_of_a_text(text, event, truth):
    m = mw.Matcher()
    m.add(1, text)
    for _ in range(2):
        explanation = m.explain(1, event)
        assert explanation.tree.value is truth is evaluate(mw.parse(text), flatten(event))
        assert m.match(event) == ([1] if truth else [])
        m.compact()


def test_only_events_with_values_are_explained():
    m = mw.Matcher()
    m.add(1, "x = 1")
    for event in (mw.parse("x = 1"), [{"x": 1}], "x", None):
        with pytest.raises(mw.EventError, match="expected a mapping"):
            m.explain(1, event)
    m = mw.Matcher(schema={"x": "number"})
    m.add(1, "x = 1")
    with pytest.raises(mw.EventError, match="expected number"):
        m.explain(1, {"x": "a"})


def test_explaining_changes_nothing():
    m = mw.Matcher()
    m.add(1, "x > 5 AND s LIKE '%a%'")
    before = trace(m)
    m.explain(1, {"x": 3, "s": "b", "unknown": 5})
    assert trace(m) == before


@pytest.mark.parametrize(
    ("kind", "operator", "value"),
    [
        ("bool", ">", True),
        ("bool", "<", False),
        ("float", ">", float("nan")),
        ("float", "<", float("-inf")),
        ("float", "<", 0.0),
        ("float", "<>", 0.0),
        ("float", ">", -5e-324),
        ("int", ">", 2**63 - 1),
        ("timestamp", ">", "9999-12-31 23:59:59.999999"),
        ("timestamp", ">=", "9999-12-31 23:59:59.999999"),
        ("date", "<", "0001-01-01"),
        ("date", "<>", "0001-01-01"),
    ],
)
def test_subscriptions_without_a_text_are_explained_at_the_ends_of_their_types(
    kind, operator, value
):
    values = {
        "bool": [True, False],
        "float": [0.0, -5e-324, float("nan"), float("-inf")],
        "int": [2**63 - 1],
    }
    m = mw.Matcher(schema={"x": kind})
    row = {"id": [1], "attribute": ["x"], "operator": [operator], "value": [value]}
    assert m.add_many(pa.table(row)).errors == []
    source = mw.attr("x")
    expr = {">": source > value, "<": source < value, ">=": source >= value, "<>": source != value}
    for each in values.get(kind, []):
        holds = matches(expr[operator], {"x": each})
        assert m.match({"x": each}) == ([1] if holds else [])
        assert m.explain(1, {"x": each}).matches is holds
    again = mw.Matcher(schema={"x": kind})
    again.add(1, str(m.expression(1)))
    for each in values.get(kind, []):
        assert again.match({"x": each}) == m.match({"x": each})
