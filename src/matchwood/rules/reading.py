"""Which rules there are, and of which system: the shapes in which people keep them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from matchwood.errors import SubscriptionError

FORMATS = ("eventbridge", "mongo", "jsonlogic", "sql")

IDS = ("id", "Name", "name")
RULES = ("rule", "EventPattern", "pattern", "query", "logic", "expr")
"""Keys under which an object has its id and its rule; EventBridge lists Name and EventPattern."""

_LOGIC = {
    "and", "or", "!", "!!", "if", "?:", "var", "==", "===", "!=", "!==", "<", "<=", ">", ">=", "in",
    "missing", "missing_some", "all", "some", "none", "+", "-", "*", "/", "%", "cat", "substr",
    "min", "max", "map", "filter", "reduce", "merge", "log",
}  # fmt: skip


_ENVELOPE = {
    "version", "id", "detail-type", "source", "account", "time", "region", "resources", "detail",
}  # fmt: skip
"""The fields of an EventBridge event."""


def numbered(rules: Any) -> list[tuple[Any, Any]]:
    """Ids and rules; a rule that is the JSON text of an object is read."""
    if isinstance(rules, Mapping):
        if isinstance(rules.get("Rules"), list):  # as `aws events list-rules` prints them
            return numbered(rules["Rules"])
        if _is_one_rule(rules):
            return [(1, rules)]
        return [(id_, _loaded(rule)) for id_, rule in rules.items()]
    if isinstance(rules, (str, bytes)) or not isinstance(rules, Iterable):
        raise SubscriptionError(
            f"expected a mapping or an iterable of rules, found {type(rules).__name__}: "
            "put a single rule in a list"
        )
    return [_numbered(row, each) for row, each in enumerate(rules, 1)]


def _is_one_rule(rules: Mapping[Any, Any]) -> bool:
    """Whether a mapping cannot be one from ids to rules, or has the fields of an event alone."""
    if not rules:
        return False
    if len(rules) == 1 and next(iter(rules)) in _LOGIC:
        return True
    if not all(isinstance(rule, (str, bytes, Mapping)) for rule in rules.values()):
        return True
    if any(isinstance(rule, (str, bytes)) for rule in rules.values()):
        return False
    return set(rules) <= _ENVELOPE or any(map(_tests_one_field, rules.values()))


def _tests_one_field(value: Mapping[Any, Any]) -> bool:
    """Whether an object has operators that only stand below a field of a query document."""
    operators = {str(key) for key in value if str(key).startswith("$")}
    return bool(operators - {"$and", "$or", "$nor", "$expr", "$comment", "$text", "$where"})


def _numbered(row: int, each: Any) -> tuple[Any, Any]:
    if isinstance(each, tuple) and len(each) == 2:
        return each[0], _loaded(each[1])
    if isinstance(each, Mapping):
        id_key = next((key for key in IDS if key in each), None)
        rule_key = next((key for key in RULES if key in each), None)
        if id_key is not None and rule_key is not None:
            return each[id_key], _loaded(each[rule_key])
    return row, _loaded(each)


def _loaded(rule: Any) -> Any:
    if isinstance(rule, str) and rule.lstrip().startswith("{"):
        try:
            return json.loads(rule)
        except ValueError:
            return rule
    return rule


def guessed_format(rules: list[Any]) -> str:
    """The one system that all rules may be of; SubscriptionError if there is none, or several."""
    fitting = set(FORMATS)
    for rule in rules:
        fitting &= set(_fitting(rule))
    if len(fitting) != 1:
        found = " or ".join(sorted(fitting)) or "rules of several kinds"
        raise SubscriptionError(f"expected rules of one kind, found {found}: name the format")
    return fitting.pop()


def _fitting(rule: Any) -> list[str]:
    if isinstance(rule, str):
        return ["sql"]
    if not isinstance(rule, Mapping):
        return ["jsonlogic"]
    if len(rule) == 1 and next(iter(rule)) in _LOGIC:
        return ["jsonlogic"]
    if _has_operator(rule):
        return ["mongo"]
    return ["eventbridge"] if _has_arrays(rule) else ["mongo"]


def _has_operator(value: Any) -> bool:
    """Whether a key begins with a dollar sign; EventBridge has $or, too, beside arrays."""
    if isinstance(value, Mapping):
        return any(
            (str(key).startswith("$") and key != "$or") or _has_operator(each)
            for key, each in value.items()
        )
    return isinstance(value, list) and any(map(_has_operator, value))


def _has_arrays(rule: Mapping[str, Any]) -> bool:
    """Whether every leaf stands in an array, as EventBridge wants it."""
    for key, each in rule.items():
        if isinstance(each, Mapping):
            if not _has_arrays(each):
                return False
        elif not isinstance(each, list) or (
            key == "$or" and not all(isinstance(e, Mapping) and _has_arrays(e) for e in each)
        ):
            return False
    return True
