"""Rules as the documentation of each system shows them, and what it says they match."""

from __future__ import annotations

from typing import Any

import pytest

import matchwood as mw

EC2 = {
    "source": "aws.ec2",
    "detail-type": "EC2 Instance State-change Notification",
    "time": "2017-10-02T16:24:49Z",
    "detail": {
        "c-count": 5,
        "d-count": 3,
        "x-limit": 301.8,
        "source-ip": "10.0.0.33",
        "state": "running",
    },
}


def matches(rule: Any, event: dict[str, Any], format: str | None = None, **options: Any) -> bool:  # noqa: A002
    report = mw.import_rules([rule], format, **options)
    assert report.errors == []
    matcher = mw.Matcher()
    matcher.add_many(report)
    return matcher.match(event) == [1]


@pytest.mark.parametrize(
    "pattern",
    [
        {"detail-type": [EC2["detail-type"]], "detail": {"state": ["initializing", "running"]}},
        {"time": [{"prefix": "2017-10-02"}]},
        {"source": [{"suffix": "ec2"}]},
        {"source": [{"wildcard": "aws*2"}]},
        {"detail": {"state": [{"anything-but": "initializing"}]}},
        {"detail": {"x-limit": [{"anything-but": 123}]}},
        {"detail": {"state": [{"anything-but": ["stopped", "overloaded"]}]}},
        {"detail": {"x-limit": [{"anything-but": [100, 200, 300]}]}},
        {"detail": {"state": [{"anything-but": {"prefix": "init"}}]}},
        {"detail": {"state": [{"anything-but": {"suffix": ["ed", "ing!"]}}]}},
        {"detail": {"state": [{"anything-but": {"wildcard": "init*"}}]}},
        {
            "detail": {
                "c-count": [{"numeric": [">", 0, "<=", 5]}],
                "d-count": [{"numeric": ["<", 10]}],
                "x-limit": [{"numeric": ["=", 3.018e2]}],
            }
        },
        {"detail": {"source-ip": [{"cidr": "10.0.0.0/24"}]}},
        {"detail": {"c-count": [{"exists": True}], "e-count": [{"exists": False}]}},
        {"$or": [{"source": ["x"]}, {"detail": {"$or": [{"c-count": [5]}, {"a": [1]}]}}]},
    ],
)
def test_event_rulers_examples_match_its_sample_event(pattern: dict[str, Any]) -> None:
    assert matches(pattern, EC2, "eventbridge")


def test_anything_but_needs_the_field() -> None:
    assert not matches({"state": [{"anything-but": "stopped"}]}, {}, "eventbridge")


def test_a_dollar_or_with_reserved_names_is_a_field_and_then_no_pattern() -> None:
    report = mw.import_rules([{"$or": [{"numeric": 123}, {"prefix": "abc"}]}], "eventbridge")
    assert report.subscriptions == []
    assert report.errors[0].construct == "numeric"


def test_mongo_ne_and_nin_match_documents_without_the_field() -> None:
    assert matches({"qty": {"$ne": 20}}, {}, "mongo")
    assert matches({"qty": {"$nin": [5, 15]}}, {}, "mongo")
    assert matches({"price": {"$not": {"$gt": 1.99}}}, {}, "mongo")
    assert matches({"$nor": [{"price": 1.99}, {"sale": True}]}, {"price": 2}, "mongo")


def test_mongo_exists_and_nin_together_need_the_field() -> None:
    query = {"qty": {"$exists": True, "$nin": [5, 15]}}
    assert matches(query, {"qty": 6})
    assert not matches(query, {"qty": 5})
    assert not matches(query, {})


def test_mongo_null_matches_a_missing_field() -> None:
    assert matches({"item": None}, {}, "mongo")
    assert not matches({"item": None}, {"item": 1}, "mongo")


def test_json_logics_examples() -> None:
    pie = {"and": [{"<": [{"var": "temp"}, 110]}, {"==": [{"var": "pie.filling"}, "apple"]}]}
    assert matches(pie, {"temp": 100, "pie": {"filling": "apple"}}, typed=True)
    assert not matches(pie, {"temp": 111, "pie": {"filling": "apple"}}, typed=True)
    assert matches({"<": [1, {"var": "n"}, 3]}, {"n": 2}, typed=True)
    assert matches({"<=": [1, {"var": "n"}, 3]}, {"n": 3}, typed=True)
    assert matches({"in": ["Spring", {"var": "city"}]}, {"city": "Springfield"})
    assert matches({"missing": ["a", "b"]}, {"a": "apple"})
    assert not matches({"missing_some": [1, ["a", "b", "c"]]}, {"a": "apple"})


def test_a_missing_variable_is_null_and_null_is_zero_beside_a_number() -> None:
    assert matches({"<": [{"var": "temp"}, 110]}, {}, typed=True)
    assert not matches({">": [{"var": "temp"}, 0]}, {}, typed=True)
    assert matches({"<": [{"var": ["temp", 200]}, 110]}, {"temp": 1}, typed=True)
    assert not matches({"<": [{"var": ["temp", 200]}, 110]}, {}, typed=True)


def test_a_range_of_addresses_holds_for_lists_of_them_too() -> None:
    pattern = {"ip": [{"cidr": "10.0.0.0/24"}]}
    assert matches(pattern, {"ip": ["1.1.1.1", "10.0.0.200"]}, "eventbridge")
    assert not matches(pattern, {"ip": ["1.1.1.1", None, "10.0.1.1"]}, "eventbridge")
    (text,) = [text for _, text in mw.import_rules([pattern], "eventbridge").subscriptions]
    assert text.count("arrays_overlap") == 1
    assert "array_contains" not in text
