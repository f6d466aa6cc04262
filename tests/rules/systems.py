"""What a rule of each system means, written down from its documentation; no cleverness, no SQL.

Events are plain JSON.  `event_ruler`, `mongo` and `json_logic` say whether a rule holds for one.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Iterator
from typing import Any

# -- event-ruler: fields are crushed to paths; a field matches when any of its values does ---------


def event_ruler(pattern: dict[str, Any], event: dict[str, Any]) -> bool:
    return _ruler(pattern, event, ())


def _ruler(pattern: dict[str, Any], event: dict[str, Any], path: tuple[str, ...]) -> bool:
    for key, wanted in pattern.items():
        here = (*path, key)
        if key == "$or":
            if not any(_ruler(each, event, path) for each in wanted):
                return False
        elif isinstance(wanted, dict):
            if not _ruler(wanted, event, here):
                return False
        else:
            values = list(_leaves(event, here))
            if not any(_ruler_value(each, values) for each in wanted):
                return False
    return True


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each, path)
    elif path:
        if isinstance(value, dict) and path[0] in value:
            yield from _leaves(value[path[0]], path[1:])
    elif not isinstance(value, dict):
        yield value


def _ruler_value(wanted: Any, values: list[Any]) -> bool:
    if isinstance(wanted, dict) and "exists" in wanted:
        return bool(values) == wanted["exists"]
    return any(_ruler_one(wanted, value) for value in values)


def _ruler_one(wanted: Any, value: Any) -> bool:
    if not isinstance(wanted, dict):
        return same_json(wanted, value)
    ((operator, operand),) = wanted.items()
    if operator == "anything-but":
        if isinstance(operand, dict):
            ((inner, texts),) = operand.items()
            each = texts if isinstance(texts, list) else [texts]
            return not any(_ruler_one({inner: text}, value) for text in each)
        return not any(
            same_json(o, value) for o in (operand if isinstance(operand, list) else [operand])
        )
    if operator == "numeric":
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return all(
            _ordered(op, value, bound)
            for op, bound in zip(operand[::2], operand[1::2], strict=True)
        )
    if not isinstance(value, str):
        return False
    if isinstance(operand, dict):
        operand, value = operand["equals-ignore-case"].lower(), value.lower()
    if operator == "prefix":
        return value.startswith(operand)
    if operator == "suffix":
        return value.endswith(operand)
    if operator == "equals-ignore-case":
        return value.lower() == operand.lower()
    if operator == "wildcard":
        parts = re.findall(r"\\.|[^\\]", operand, re.DOTALL)
        return (
            re.fullmatch(
                "".join(".*" if p == "*" else re.escape(p[-1]) for p in parts), value, re.DOTALL
            )
            is not None
        )
    if operator == "cidr":
        try:
            return ipaddress.ip_address(value) in ipaddress.ip_network(operand, strict=False)
        except ValueError:
            return False
    raise AssertionError(operator)


def same_json(a: Any, b: Any) -> bool:
    """Equal values of one JSON type: true is not 1, and "1" neither."""
    return _json_type(a) == _json_type(b) and bool(a == b)


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def _ordered(op: str, a: Any, b: Any) -> bool:
    return {"=": a == b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


# -- MongoDB -----------------------------------------------------------------------------------


def mongo(query: dict[str, Any], event: dict[str, Any]) -> bool:
    for key, wanted in query.items():
        if key == "$and":
            holds = all(mongo(each, event) for each in wanted)
        elif key == "$or":
            holds = any(mongo(each, event) for each in wanted)
        elif key == "$nor":
            holds = not any(mongo(each, event) for each in wanted)
        else:
            holds = _mongo_field(wanted, _at(event, key.split(".")))
        if not holds:
            return False
    return True


MISSING = object()


def _at(event: Any, path: list[str]) -> Any:
    for part in path:
        event = event.get(part, MISSING) if isinstance(event, dict) else MISSING
    return event


def _mongo_field(wanted: Any, value: Any) -> bool:
    if not (isinstance(wanted, dict) and any(key.startswith("$") for key in wanted)):
        return _mongo_equal(value, wanted)
    return all(_mongo_operator(op, operand, value, wanted) for op, operand in wanted.items())


def _mongo_operator(op: str, operand: Any, value: Any, beside: dict[str, Any]) -> bool:
    if op == "$eq":
        return _mongo_equal(value, operand)
    if op == "$ne":
        return not _mongo_equal(value, operand)
    if op == "$in":
        return any(_mongo_equal(value, each) for each in operand)
    if op == "$nin":
        return not any(_mongo_equal(value, each) for each in operand)
    if op == "$all":
        return bool(operand) and all(_mongo_equal(value, each) for each in operand)
    if op == "$exists":
        return (value is not MISSING) == bool(operand)
    if op == "$not":
        return not _mongo_field(operand, value)
    if op == "$options":
        return True
    elements = value if isinstance(value, list) else [value]
    if op == "$regex":
        flags = re.IGNORECASE if beside.get("$options") == "i" else 0
        return any(
            isinstance(e, str) and re.search(operand, e, flags) is not None for e in elements
        )
    sign = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}[op]
    return any(
        _json_type(e) == _json_type(operand) and _ordered(sign, _order(e), _order(operand))
        for e in elements
    )


def _order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _mongo_equal(value: Any, wanted: Any) -> bool:
    """A missing field equals null; a list equals what one of its elements equals."""
    if wanted is None:
        return value is MISSING or value is None
    if isinstance(value, list):
        return any(same_json(each, wanted) for each in value)
    return value is not MISSING and same_json(value, wanted)


# -- JSONLogic: json-logic-js, line by line -------------------------------------------------------


def json_logic(rule: Any, data: dict[str, Any]) -> bool:
    return _truthy(_apply(rule, data))


def _truthy(value: Any) -> bool:
    return bool(value) and not (isinstance(value, float) and math.isnan(value))


def _apply(rule: Any, data: Any) -> Any:
    if isinstance(rule, list):
        return [_apply(each, data) for each in rule]
    if not isinstance(rule, dict):
        return rule
    ((op, raw),) = rule.items()
    values = raw if isinstance(raw, list) else [raw]
    if op in ("if", "?:"):
        at = 0
        while at < len(values) - 1:
            if _truthy(_apply(values[at], data)):
                return _apply(values[at + 1], data)
            at += 2
        return _apply(values[at], data) if len(values) == at + 1 else None
    if op in ("and", "or"):
        current = None
        for each in values:
            current = _apply(each, data)
            if _truthy(current) == (op == "or"):
                return current
        return current
    return _operation(op, [_apply(each, data) for each in values], data)


def _operation(op: str, values: list[Any], data: Any) -> Any:
    if op == "var":
        found = _at(data, str(values[0]).split("."))
        return (
            (values[1] if len(values) > 1 else None) if found is MISSING or found is None else found
        )
    if op == "missing":
        keys = values[0] if values and isinstance(values[0], list) else values
        return [key for key in keys if _operation("var", [key], data) in (None, "")]
    if op == "missing_some":
        missing = _operation("missing", [values[1]], data)
        return [] if len(values[1]) - len(missing) >= values[0] else missing
    if op in ("!", "!!"):
        return _truthy(values[0]) == (op == "!!")
    if op == "in":
        if isinstance(values[1], str):
            return isinstance(values[0], str) and values[0] in values[1]
        return isinstance(values[1], list) and any(same_json(values[0], each) for each in values[1])
    if op in ("===", "!=="):
        return same_json(*values) == (op == "===")
    if op in ("==", "!="):
        return _loose(*values) == (op == "==")
    if len(values) == 3:
        return _operation(op, values[:2], data) and _operation(op, values[1:], data)
    a, b = values
    if isinstance(a, str) and isinstance(b, str):
        return _ordered(op, a.encode("utf-16-be"), b.encode("utf-16-be"))
    return _ordered(op, _number(a), _number(b))


def _loose(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is None and b is None
    if _json_type(a) == _json_type(b):
        return bool(a == b)
    return _number(a) == _number(b)


def _number(value: Any) -> float:
    """JavaScript's Number(value), for the texts that tests use."""
    if isinstance(value, str):
        try:
            return float(json.loads(value.strip() or "0"))
        except ValueError:
            return math.nan
    return float(value or 0)
