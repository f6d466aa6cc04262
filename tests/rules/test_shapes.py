"""In which shapes rules may be given."""

from __future__ import annotations

from typing import Any

import pytest

import matchwood as mw

PATTERN = {"source": ["aws.ec2"], "detail": {"state": ["stopped"]}}


@pytest.mark.parametrize(
    ("rule", "event"),
    [
        (PATTERN, {"source": "aws.ec2", "detail": {"state": "stopped"}}),
        ({"detail": {"state": ["stopped"]}}, {"detail": {"state": "stopped"}}),
        ({"age": {"$gt": 17}}, {"age": 18}),
        ({"age": 18, "city": "Rome"}, {"age": 18, "city": "Rome"}),
        ({"===": [{"var": "age"}, 18]}, {"age": 18}),
    ],
    ids=str,
)
def test_one_rule_needs_no_id(rule: dict[str, Any], event: dict[str, Any]) -> None:
    report = mw.import_rules(rule)
    assert not report.errors
    matcher = mw.Matcher()
    matcher.add_many(report.subscriptions)
    assert matcher.match(event) == [1]
    assert matcher.match({"other": 1}) == []


@pytest.mark.parametrize(
    "rules",
    [
        {"stopped": PATTERN},
        [("stopped", PATTERN)],
        [{"id": "stopped", "rule": PATTERN}],
        {"Rules": [{"Name": "stopped", "EventPattern": PATTERN}]},
    ],
    ids=["mapping", "pairs", "objects", "listed"],
)
def test_ids_are_kept(rules: Any) -> None:
    assert [id_ for id_, _ in mw.import_rules(rules).subscriptions] == ["stopped"]
