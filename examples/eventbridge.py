"""EventBridge patterns, matched with JSON lines: import them once, match events by the million.

Each pattern becomes a text that holds for exactly the same events.  A pattern that has no such text
is named, with the reason; it never matches something else silently.

    python examples/eventbridge.py

The same on the command line:

    matchwood import patterns.json --out rules.csv
    tail -f events.jsonl | matchwood match rules.csv -
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import matchwood as mw

PATTERNS = {
    "stopped": {"source": ["aws.ec2"], "detail": {"state": ["stopped", "terminated"]}},
    "not-ours": {"account": [{"anything-but": ["111122223333", "444455556666"]}]},
    "big-object": {
        "source": ["aws.s3"],
        "detail": {
            "key": [{"prefix": "incoming/"}, {"suffix": ".parquet"}],
            "size": [{"numeric": [">=", 1_000_000, "<", 5_000_000]}],
        },
    },
    "office": {"detail": {"source-ip": [{"cidr": "10.0.0.4/30"}]}},
    "untagged": {"detail": {"owner": [{"exists": False}]}},
    "either": {"$or": [{"region": ["eu-west-1"]}, {"detail": {"state": [{"wildcard": "p*g"}]}}]},
    "anywhere": {"detail": {"source-ip": [{"cidr": "10.0.0.0/8"}]}},
}

EVENTS = """
{"source": "aws.ec2", "account": "111122223333", "detail": {"state": "stopped", "owner": "ann"}}
{"source": "aws.s3", "account": "999", "detail": {"key": "incoming/a", "size": 2e6, "owner": "bo"}}
{"source": "aws.s3", "account": "444455556666", "detail": {"key": "b.parquet", "size": 12}}
{"region": "us-east-1", "detail": {"state": "pending", "source-ip": "10.0.0.5", "owner": "cy"}}
"""


def open_rules() -> mw.Matcher:
    """A matcher with every pattern that could be translated.

    No field of these events is a list, and each has values of one type: texts are shorter then.
    """
    report = mw.import_rules(PATTERNS, "eventbridge", arrays=False, typed=True)
    for id_, text in report.subscriptions:
        print(f"{id_}: {text}")
    for refused in report.errors:
        print(f"refused {refused}")
    matcher = mw.Matcher()
    matcher.add_many(report)
    return matcher


def main(lines: Iterable[str]) -> None:
    matcher = open_rules()
    events = [json.loads(line) for line in lines if line.strip()]
    for number, ids in enumerate(matcher.match_many(events)):
        print(f"event {number}: {', '.join(map(str, ids)) or 'nothing'}")


if __name__ == "__main__":
    main(EVENTS.splitlines())
