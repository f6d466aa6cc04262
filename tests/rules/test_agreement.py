"""A rule, its text and a matcher say the same as the system that the rule comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood as mw
from matchwood.rules.texts import language
from rules.systems import event_ruler, json_logic, mongo

STRINGS = ["", "a", "ab", "abc", "b.c", "A", "50%", "x_y", "10.0.0.7", "10.0.1.7", "5", "ab\n"]
NUMBERS = [0, 1, 2.5, -3, 5, 1_000_000]


def is_open() -> bool:
    """Whether one attribute may be asked about values of several kinds."""
    try:
        mw.Matcher().add(1, "a = 1 OR a = 'x'")
    except mw.SchemaError:
        return False
    return True


Holds = Callable[[Any, dict[str, Any]], bool]
strings, numbers, booleans = st.sampled_from(STRINGS), st.sampled_from(NUMBERS), st.booleans()
KINDS = {"s": strings, "t": strings, "n": numbers, "m": numbers, "flag": booleans}
"""Values by attribute; where attributes have types, these are all that there is."""


def values_of(name: str) -> st.SearchStrategy[Any]:
    return st.one_of(strings, numbers, booleans) if is_open() else KINDS[name]


def event_value(name: str, lists: bool) -> st.SearchStrategy[Any]:
    one = values_of(name)
    if not (lists and is_open() and language().arrays):
        return one
    return one | st.lists(KINDS[name], min_size=1, max_size=3)


def events(lists: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Flat attributes and one nested object of some of them."""
    flat = st.fixed_dictionaries({}, optional={name: event_value(name, lists) for name in KINDS})
    return st.tuples(flat, flat).map(
        lambda both: {**both[0], "in": both[1]} if both[1] else both[0]
    )


def check(
    rules: list[Any], kind: str, found: list[dict[str, Any]], holds: Holds, **options: Any
) -> None:
    """All rules are imported, their texts are canonical, and one matcher finds what they mean."""
    report = mw.import_rules(rules, kind, **options)
    assert report.errors == []
    assert all(str(mw.parse(text)) == text for _, text in report)
    matcher = mw.Matcher()
    assert matcher.add_many(report).errors == []
    expected = [[n for n, rule in enumerate(rules, 1) if holds(rule, event)] for event in found]
    assert list(matcher.match_many(found)) == expected


def several(each: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(each, min_size=1, max_size=6)


# -- EventBridge -----------------------------------------------------------------------------------


@st.composite
def text_tests(draw: st.DrawFn) -> dict[str, Any]:
    text = draw(strings)
    operators = ["prefix", "suffix", "wildcard", "cidr"]
    if language().any_case:
        operators += ["equals-ignore-case", "prefix-any", "suffix-any"]
    operator = draw(st.sampled_from(operators))
    if operator.endswith("-any"):
        return {operator.removesuffix("-any"): {"equals-ignore-case": text}}
    if operator == "wildcard":
        plain = text.replace("\\", "\\\\").replace("*", "\\*")
        return {
            operator: draw(st.sampled_from([f"{plain}*", f"*{plain}", f"{plain}*b", "*", plain]))
        }
    if operator == "cidr":
        return {operator: draw(st.sampled_from(["10.0.0.0/24", "10.0.0.7/32", "10.0.0.4/30"]))}
    return {operator: text}


@st.composite
def number_tests(draw: st.DrawFn) -> dict[str, Any]:
    low, high = draw(numbers), draw(numbers)
    forms = [["=", low], ["<", low], [">=", high], [">", low, "<=", high], [">=", low, "<", high]]
    return {"numeric": draw(st.sampled_from(forms))}


@st.composite
def anything_but(draw: st.DrawFn, name: str) -> dict[str, Any]:
    base = numbers if name in ("n", "m") else strings
    listed = st.lists(base, min_size=1, max_size=3)
    forms = [base, listed]
    if base is strings:
        inner = ["prefix", "suffix"] + (["equals-ignore-case"] if language().any_case else [])
        forms += [st.sampled_from(inner).flatmap(
            lambda each: (strings | listed).map(lambda operand: {each: operand}))]  # fmt: skip
    return {"anything-but": draw(st.one_of(forms))}


@st.composite
def patterns(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    pattern: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=2, unique=True)):
        tests = [values_of(name), st.booleans().map(lambda each: {"exists": each})]
        if name != "flag":
            tests += [number_tests() if name in ("n", "m") else text_tests(), anything_but(name)]
        pattern[name] = draw(st.lists(st.one_of(tests), min_size=1, max_size=3))
    if depth and draw(st.booleans()):
        pattern["in"] = draw(patterns(0))
    if depth and draw(st.booleans()):
        pattern["$or"] = draw(st.lists(patterns(depth - 1), min_size=2, max_size=3))
    return pattern


@pytest.mark.slow
@given(several(patterns()), several(events(lists=True)))
def test_eventbridge_patterns_match_what_event_ruler_matches(
    rules: list[Any], found: list[dict[str, Any]]
) -> None:
    check(rules, "eventbridge", found, event_ruler)


# -- MongoDB -----------------------------------------------------------------------------------


@st.composite
def mongo_operators(draw: st.DrawFn, name: str, depth: int) -> dict[str, Any]:
    value = values_of(name)
    operators: dict[str, st.SearchStrategy[Any]] = {
        "$eq": value | st.none(),
        "$ne": value | st.none(),
        "$in": st.lists(value | st.none(), max_size=3),
        "$nin": st.lists(value | st.none(), max_size=3),
        "$all": st.lists(value, max_size=2),
        "$exists": booleans,
        "$gt": value, "$gte": value, "$lt": value, "$lte": value,
    }  # fmt: skip
    if name in ("s", "t"):
        regexes = ["^a", "b", r"\.c$", "^ab$", "^a.*", r"50%", "x_"]
        operators["$regex"] = st.sampled_from(regexes)
    if depth:
        operators["$not"] = mongo_operators(name, depth - 1)
    chosen = draw(st.lists(st.sampled_from(list(operators)), min_size=1, max_size=2, unique=True))
    return {each: draw(operators[each]) for each in chosen}


@st.composite
def queries(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    query: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=2, unique=True)):
        path = draw(st.sampled_from([name, f"in.{name}"]))
        query[path] = draw(values_of(name) | st.none() | mongo_operators(name, 1))
    if depth and draw(st.booleans()):
        joint = draw(st.sampled_from(["$and", "$or", "$nor"]))
        query[joint] = draw(st.lists(queries(depth - 1), min_size=1, max_size=3))
    return query


@pytest.mark.slow
@given(several(queries()), several(events(lists=True)))
def test_mongo_queries_match_what_mongodb_finds(
    rules: list[Any], found: list[dict[str, Any]]
) -> None:
    check(rules, "mongo", found, mongo)


# -- JSONLogic -----------------------------------------------------------------------------------


def variables(name: str) -> st.SearchStrategy[dict[str, Any]]:
    paths = st.sampled_from([name, f"in.{name}"])
    with_default = st.tuples(paths, KINDS[name]).map(list)
    return (paths | with_default).map(lambda each: {"var": each})


def sides(name: str) -> st.SearchStrategy[list[Any]]:
    pair = st.tuples(variables(name), KINDS[name])
    return pair.map(list) | pair.map(lambda both: [both[1], both[0]])


def operation(operator: str, operands: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return operands.map(lambda each: {operator: each})


def predicates_of(name: str, typed: bool) -> st.SearchStrategy[Any]:
    constants, var = KINDS[name], variables(name)
    forms = [operation(op, sides(name)) for op in ("===", "!==")]
    forms += [operation("===", var.map(lambda each: [each, None]))]
    forms += [
        operation("in", st.tuples(var, st.lists(constants | st.none(), max_size=3)).map(list))
    ]
    if name in ("s", "t"):
        forms += [operation("==", var.map(lambda each: [each, "ab"]))]
        forms += [operation("in", constants.map(lambda each: [each, {"var": name}]))]
    if typed:
        forms += [operation(op, sides(name)) for op in ("==", "!=", "<", "<=", ">", ">=")]
        forms += [operation("<", st.tuples(constants, var, constants).map(list))]
    return st.one_of(forms)


def logic(typed: bool, depth: int = 2) -> st.SearchStrategy[Any]:
    leaves = [predicates_of(name, typed) for name in ("s", "t", "n", "m")]
    leaves += [st.sampled_from([{"missing": ["s", "in.t"]}, {"missing_some": [1, ["s", "t"]]}])]
    leaves += [st.sampled_from([True, False, 0, "x", [], None])]
    if typed:
        flag = variables("flag")
        leaves += [flag, operation("!", flag), operation("!!", flag.map(lambda each: [each]))]
    if not depth:
        return st.one_of(leaves)
    parts = st.lists(logic(typed, depth - 1), min_size=1, max_size=3)
    joined = [operation(op, parts) for op in ("and", "or", "if")]
    return st.one_of(
        st.one_of(leaves), *joined, operation("!", logic(typed, depth - 1).map(lambda each: [each]))
    )


def typed_events() -> st.SearchStrategy[dict[str, Any]]:
    flat = st.fixed_dictionaries({}, optional=KINDS)
    return st.tuples(flat, flat).map(
        lambda both: {**both[0], "in": both[1]} if both[1] else both[0]
    )


@given(several(logic(typed=True)), several(typed_events()))
def test_json_logic_of_typed_values_is_truthy_where_the_text_holds(
    rules: list[Any], found: list[dict[str, Any]]
) -> None:
    check(rules, "jsonlogic", found, json_logic, typed=True)


@pytest.mark.slow
@given(several(logic(typed=False)), several(events(lists=False)))
def test_json_logic_of_any_values_is_truthy_where_the_text_holds(
    rules: list[Any], found: list[dict[str, Any]]
) -> None:
    check(rules, "jsonlogic", found, json_logic)
