"""Rows of programs that are not ours, on conjunctions of whole numbers: what else people would use.

    numpy        intervals by attribute, compared at once and counted by subscription
    duckdb       an inequality join of events with predicates, grouped and counted
    python_eval  one compiled expression a subscription, evaluated one after the other
    rule_engine  the package `rule-engine`, one rule a subscription
    matcher      our `Matcher`, its reading of events included

All start from the same conditions and dicts and must give the same pairs.  The extra
`matchwood[external]` brings the packages; one that is missing is a labelled point.  Spark's
nested-loop join is part of the suite `spark` (`--index joins`).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from matchwood import Matcher
from matchwood.bench.papers.cases import Limits
from matchwood.bench.papers.index_rows import Contender
from matchwood.errors import MatchwoodError
from matchwood.workload import Workload, event_dicts

Match = Callable[[list[dict[str, int]]], list[tuple[int, int]]]
_LOW, _HIGH = -(2**31), 2**31


class Conditions(NamedTuple):
    """Subscriptions as lists of (attribute, operator, values), and events as dicts."""

    subscriptions: list[list[tuple[str, str, list[int]]]]
    events: list[dict[str, int]]


def conditions(workload: Workload) -> Conditions:
    """Read a workload of predicates on whole numbers."""
    rows = workload.subscriptions(0, workload.n_subscriptions).to_pylist()
    found: list[list[tuple[str, str, list[int]]]] = [[] for _ in range(workload.n_subscriptions)]
    for number, group in groupby(rows, key=lambda row: row["id"]):
        found[number] = [(r["attribute"], r["operator"], r["values"]) for r in group]
    table = workload.events(0, workload.n_events)
    return Conditions(found, event_dicts(table, 0, workload.n_events))


def intervals(operator: str, values: list[int]) -> list[tuple[int, int]]:
    """A predicate as closed intervals of whole numbers."""
    first = values[0]
    if operator in ("IN", "="):
        return [(each, each) for each in sorted(set(values))]
    if operator in ("<>", "NOT IN"):
        ends = [_LOW - 1, *sorted(set(values)), _HIGH + 1]
        return [(a + 1, b - 1) for a, b in pairwise(ends) if a + 1 <= b - 1]
    return {
        "<": [(_LOW, first - 1)], "<=": [(_LOW, first)], ">": [(first + 1, _HIGH)],
        ">=": [(first, _HIGH)], "BETWEEN": [(first, values[-1])],
    }[operator]  # fmt: skip


def steps(contender: Contender, given: Conditions, limits: Limits) -> Iterator[Any]:
    """Inside the process: one row."""
    began = time.process_time()
    match = PROGRAMS[contender.series.index](given)
    build = time.process_time() - began
    pairs, times = match(given.events), []
    for _ in range(limits.repetitions):
        began = time.process_time()
        match(given.events)
        times.append(time.process_time() - began)
    answers = hashlib.sha256(repr(sorted(pairs)).encode()).hexdigest()
    per_event = float(np.median(times)) / len(given.events)
    yield {
        "times": times,
        "n_events": len(given.events),
        "answers": answers,
        "build_seconds": build,
        "metrics": {
            "us_per_event": per_event * 1e6,
            "build_seconds": build,
            "matches_per_event": len(pairs) / len(given.events),
        },
    }


def _numpy(given: Conditions) -> Match:
    by_attribute: dict[str, list[tuple[int, int, int]]] = {}
    for number, predicates in enumerate(given.subscriptions):
        for attribute, operator, values in predicates:
            for lo, hi in intervals(operator, values):
                by_attribute.setdefault(attribute, []).append((lo, hi, number))
    arrays = {name: np.array(rows).T for name, rows in by_attribute.items()}
    need = np.array([len(each) for each in given.subscriptions])

    def match(events: list[dict[str, int]]) -> list[tuple[int, int]]:
        found = []
        for number, event in enumerate(events):
            hits = [
                value_set[(lo <= value) & (value <= hi)]
                for name, value in event.items()
                if name in arrays
                for lo, hi, value_set in [arrays[name]]
            ]
            counts = np.bincount(
                np.concatenate([*hits, np.empty(0, np.int64)]), minlength=len(need)
            )
            found += [(number, each) for each in np.flatnonzero(counts == need).tolist()]
        return found

    return match


def _duckdb(given: Conditions) -> Match:
    database = _imported("duckdb").connect()
    database.execute("SET threads = 1")
    pyarrow = import_module("pyarrow")
    rows = [
        (number, attribute, lo, hi)
        for number, predicates in enumerate(given.subscriptions)
        for attribute, operator, values in predicates
        for lo, hi in intervals(operator, values)
    ]
    names = ("sub", "attr", "lo", "hi")
    predicates = pyarrow.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    needs = [len(each) for each in given.subscriptions]
    need = pyarrow.table({"sub": list(range(len(needs))), "n": needs})
    database.register("given_p", predicates)
    database.register("given_n", need)
    database.execute("CREATE TABLE p AS FROM given_p")
    database.execute("CREATE TABLE need AS FROM given_n")

    def match(events: list[dict[str, int]]) -> list[tuple[int, int]]:
        entries = [
            (i, name, value) for i, event in enumerate(events) for name, value in event.items()
        ]
        columns = map(list, zip(*entries, strict=True))
        table = pyarrow.table(dict(zip(("event", "attr", "v"), columns, strict=True)))
        database.register("e", table)
        query = (
            "SELECT event, sub FROM (SELECT e.event, p.sub, count(*) AS c FROM e JOIN p ON "
            "e.attr = p.attr AND e.v BETWEEN p.lo AND p.hi GROUP BY ALL) JOIN need USING (sub) "
            "WHERE c = n"
        )
        return [(int(a), int(b)) for a, b in database.execute(query).fetchall()]

    return match


_PYTHON = {"=": "==", "<>": "!=", "IN": "in", "NOT IN": "not in"}


def _python_eval(given: Conditions) -> Match:
    def text(attribute: str, operator: str, values: list[int]) -> str:
        value = f"e[{attribute!r}]"
        if operator == "BETWEEN":
            return f"{attribute!r} in e and {values[0]} <= {value} <= {values[-1]}"
        other = tuple(values) if "IN" in operator else values[0]
        return f"{attribute!r} in e and {value} {_PYTHON.get(operator, operator)} {other}"

    codes = [
        compile(" and ".join(text(*each) for each in predicates), "subscription", "eval")
        for predicates in given.subscriptions
    ]

    def match(events: list[dict[str, int]]) -> list[tuple[int, int]]:
        return [
            (i, number)
            for i, event in enumerate(events)
            for number, code in enumerate(codes)
            if eval(code, {"e": event})  # noqa: S307 - generated from numbers, for comparison
        ]

    return match


def _rule_engine(given: Conditions) -> Match:
    engine = _imported("rule_engine")

    def text(attribute: str, operator: str, values: list[int]) -> str:
        parts = {"IN": " or ", "NOT IN": " and "}
        if operator in parts:
            sign = "==" if operator == "IN" else "!="
            test = parts[operator].join(f"{attribute} {sign} {each}" for each in values)
        elif operator == "BETWEEN":
            test = f"{attribute} >= {values[0]} and {attribute} <= {values[-1]}"
        else:
            test = f"{attribute} {_PYTHON.get(operator, operator)} {values[0]}"
        return f"{attribute} != null and ({test})"

    context = engine.Context(default_value=None)
    rules = [
        engine.Rule(" and ".join(text(*each) for each in predicates), context=context)
        for predicates in given.subscriptions
    ]

    def match(events: list[dict[str, int]]) -> list[tuple[int, int]]:
        return [
            (i, number)
            for i, event in enumerate(events)
            for number, rule in enumerate(rules)
            if rule.matches(event)
        ]

    return match


def _matcher(given: Conditions) -> Match:
    def text(attribute: str, operator: str, values: list[int]) -> str:
        if operator == "BETWEEN":
            return f"{attribute} BETWEEN {values[0]} AND {values[-1]}"
        if "IN" in operator:
            return f"{attribute} {operator} ({', '.join(map(str, values))})"
        return f"{attribute} {operator} {values[0]}"

    matcher = Matcher()
    matcher.add_many(
        (number, " AND ".join(text(*each) for each in predicates))
        for number, predicates in enumerate(given.subscriptions)
    )

    def match(events: list[dict[str, int]]) -> list[tuple[int, int]]:
        found = matcher.match_many(events)
        event = np.repeat(np.arange(len(events)), np.diff(found.offsets))
        ids = np.asarray(found.ids).tolist()
        return list(zip(event.tolist(), ids, strict=True))

    return match


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MatchwoodError(
            f"expected the package {name}, found none: pip install 'matchwood[external]'"
        ) from None


PROGRAMS: dict[str, Callable[[Conditions], Match]] = {
    "numpy": _numpy,
    "duckdb": _duckdb,
    "python_eval": _python_eval,
    "rule_engine": _rule_engine,
    "matcher": _matcher,
}
