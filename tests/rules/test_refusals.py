"""What has no exact text is refused with its name and its path; everything else goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest

import matchwood as mw
from matchwood.rules.texts import language

REFUSED: list[tuple[str, Any, str, str]] = [
    ("eventbridge", {"a": [None]}, "null", "a[0]"),
    ("eventbridge", {"d": {"ip": [{"cidr": "10.0.0.0/8"}]}}, "cidr", "d.ip[0].cidr"),
    ("eventbridge", {"d": {"ip": [{"cidr": "2001:db8::/32"}]}}, "cidr", "d.ip[0].cidr"),
    ("eventbridge", {"d": {"ip": [{"cidr": "nowhere"}]}}, "cidr", "d.ip[0].cidr"),
    ("eventbridge", {"a": "x"}, "x", "a"),
    ("eventbridge", {"a": []}, "[]", "a"),
    ("eventbridge", {"a": {}}, "{}", "a"),
    ("eventbridge", {"a": [{"regex": "x"}]}, "regex", "a[0].regex"),
    ("eventbridge", {"a": [{"wildcard": "a**"}]}, "wildcard", "a[0].wildcard"),
    ("eventbridge", {"a": [{"wildcard": "a\\b"}]}, "wildcard", "a[0].wildcard"),
    ("eventbridge", {"a": [{"numeric": ["~", 1]}]}, "numeric", "a[0].numeric"),
    ("eventbridge", {"a": [{"numeric": ["<", 1, "<", 2]}]}, "numeric", "a[0].numeric"),
    ("eventbridge", {"a": [{"anything-but": ["x", 1]}]}, "anything-but", "a[0].anything-but"),
    ("eventbridge", {"a": [{"exists": "yes"}]}, "exists", "a[0].exists"),
    ("eventbridge", {"a": [{"prefix": "a", "x": 1}]}, "{'prefix': 'a', 'x': 1}", "a[0]"),
    ("eventbridge", {"$or": [{"a": [1]}, {"b": [[2]]}]}, "[2]", "$or[1].b[0]"),
    ("eventbridge", [], "the pattern", ""),
    ("mongo", {"a": {"$elemMatch": {"b": 1}}}, "$elemMatch", "a.$elemMatch"),
    ("mongo", {"$and": [{"a": {"$size": 3}}]}, "$size", "$and[0].a.$size"),
    ("mongo", {"$where": "this.a == 1"}, "$where", "$where"),
    ("mongo", {"a": {"b": 1}}, "an object as a value", "a"),
    ("mongo", {"a": [1, 2]}, "an array as a value", "a"),
    ("mongo", {"a.0": 1}, "a.0", "a.0"),
    ("mongo", {"a": {"$gt": None}}, "$gt", "a.$gt"),
    ("mongo", {"a": {"$regex": "^a", "$options": "m"}}, "$regex", "a.$regex"),
    ("mongo", {"a": float("nan")}, "NaN", "a"),
    ("jsonlogic", {"==": [{"var": "a"}, 1]}, "==", "=="),
    ("jsonlogic", {"==": [{"var": "a"}, "1"]}, "==", "=="),
    ("jsonlogic", {"!": [{"<": [{"var": "a"}, 1]}]}, "<", "!.<"),
    ("jsonlogic", {"and": [True, {"===": [{"%": [{"var": "a"}, 2]}, 0]}]}, "%", "and[1].===[0]"),
    ("jsonlogic", {"some": [{"var": "a"}, {"===": [{"var": ""}, 1]}]}, "some", "some"),
    ("jsonlogic", {"===": [{"var": "a"}, {"var": "b"}]}, "===", "==="),
    ("jsonlogic", {"===": [{"var": 1}, 1]}, "var", "===[0].var"),
    ("sql", "a = 1 AND", "the text", "line 1, column 10"),
    ("sql", {"a": 1}, "the rule", ""),
]  # fmt: skip


@pytest.mark.parametrize(("format", "rule", "construct", "path"), REFUSED)
def test_a_refusal_names_the_construct_and_its_path(
    format: str, rule: Any, construct: str, path: str  # noqa: A002
) -> None:  # fmt: skip
    fine: Any = {"eventbridge": {"a": [1]}, "mongo": {"a": 1}, "sql": "a = 1"}.get(format, True)
    report = mw.import_rules([("bad", rule), ("fine", fine)], format)
    assert [id_ for id_, _ in report] == ["fine"]
    (error,) = report.errors
    assert (error.row, error.id, error.construct, error.path) == (0, "bad", construct, path)
    assert error.message
    assert construct in str(error)


def test_rules_nested_too_deeply_are_refused() -> None:
    rule: Any = {"===": [{"var": "a"}, 1]}
    for _ in range(500):
        rule = {"!": {"or": [rule, {"===": [{"var": "b"}, 1]}]}}
    report = mw.import_rules([rule], "jsonlogic")
    assert len(report.errors) == 1


def test_rules_come_in_the_shapes_people_keep_them_in() -> None:
    text = "a = 1"
    pattern = {"a": [1]}
    for rules in (
        {"r": pattern},
        [("r", pattern)],
        [{"id": "r", "rule": pattern}],
        [{"Name": "r", "EventPattern": json.dumps(pattern)}],
        {"Rules": [{"Name": "r", "EventPattern": json.dumps(pattern), "State": "ENABLED"}]},
    ):
        assert mw.import_rules(rules, arrays=False).subscriptions == [("r", text)]
    assert [text for _, text in mw.import_rules([pattern, json.dumps(pattern)], arrays=False)] == [
        text
    ] * 2


def test_the_format_is_guessed_when_only_one_fits() -> None:
    assert (
        mw.import_rules([{"a": ["x"]}, {"$or": [{"a": [1]}, {"b": [2]}]}]).format == "eventbridge"
    )
    assert mw.import_rules([{"a": 1}, {"a": {"$in": [1]}}]).format == "mongo"
    assert mw.import_rules([{"and": [True, {"var": "a"}]}]).format == "jsonlogic"
    assert mw.import_rules(["a = 1"]).format == "sql"
    with pytest.raises(mw.SubscriptionError, match="name the format"):
        mw.import_rules(["a = 1", {"a": 1}])
    with pytest.raises(mw.SubscriptionError, match="expected format"):
        mw.import_rules(["a = 1"], "drools")
    with pytest.raises(mw.SubscriptionError, match="put a single rule in a list"):
        mw.import_rules("a = 1")


def test_a_report_is_what_add_many_takes() -> None:
    report = mw.import_rules({"x": {"price": {"$lt": 20}}, "y": {"$where": "1"}})
    matcher = mw.Matcher()
    assert matcher.add_many(report).count == len(report) == 1
    assert matcher.match({"price": 5}) == ["x"]
    assert report.to_dict()["errors"][0]["construct"] == "$where"


def test_negations_of_typed_values_are_short() -> None:
    for rule, text in (
        ({"a": [{"anything-but": ["x", "y"]}]}, "a NOT IN ('x', 'y')"),
        ({"a": {"$ne": 5}}, "a <> 5 OR a IS NULL"),
        ({"a": {"$not": {"$gt": 5}}}, "a <= 5 OR a IS NULL"),
        ({"!==": [{"var": "a"}, 5]}, "a <> 5 OR a IS NULL"),
    ):
        report = mw.import_rules([rule], typed=True, arrays=False)
        assert report.subscriptions == [(1, text)]


def test_lists_are_asked_only_where_there_may_be_some() -> None:
    rule = {"a": ["x"], "b": ["y"]}
    plain = mw.import_rules([rule], arrays=False).subscriptions
    assert plain == [(1, "a = 'x' AND b = 'y'")]
    if language().arrays:
        named = mw.import_rules([rule], arrays=["b"]).subscriptions
        assert named == [(1, "a = 'x' AND (b = 'y' OR array_contains(b, 'y'))")]
