"""Durations and counts: which calls are measured, and the text that Prometheus reads."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import matchwood as mw

LABEL = r'[a-zA-Z_]\w*="[^"\\\n]*"'
SAMPLE = re.compile(rf"([a-zA-Z_:][\w:]*)(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")
"""A line of the text format, version 0.0.4: name, labels, value."""


def used(folder: Path) -> mw.Matcher:
    """A folder on which every kind of call was made once."""
    m = mw.Matcher.open(folder)
    m.add("a", "x > 1")
    m.add_many([("b", "x > 2"), ("c", "x > 3")])
    m.replace("a", "x > 2")
    m.replace_many([("b", "x > 3")])
    m.remove("a")
    m.remove_many(["b"])
    with m.batch() as b:
        b.add("d", "x > 4")
    m.set_context("ann", {"c": 1})
    m.set_context_many({"ann": {"c": 2}})
    m.remove_context("ann")
    event = {"x": 9}
    m.match(event)
    m.match_json('{"x": 9}')
    m.match_many([event])
    m.match_count(event)
    m.exists(event)
    m.explain("d", event)
    m.why_not("d", event)
    m.near(event)
    m.verify([event])
    m.overlaps("d")
    m.subsumes("d", "c")
    m.duplicates()
    m.sweep()
    m.compact()
    m.checkpoint()
    m.clear()
    return m


CALLS = [
    "add", "add_many", "replace", "replace_many", "remove", "remove_many", "batch",
    "set_context", "set_context_many", "remove_context", "match", "match_json", "match_many",
    "match_count", "exists", "explain", "why_not", "near", "verify", "overlaps", "subsumes",
    "duplicates", "sweep", "compact", "checkpoint", "clear",
]  # fmt: skip


def test_every_call_that_takes_time_is_measured(tmp_path: Path) -> None:
    m = used(tmp_path / "f")
    calls = m.stats()["calls"]
    assert sorted(calls) == sorted(CALLS)
    assert {name: each["count"] for name, each in calls.items()} == dict.fromkeys(CALLS, 1)
    for each in calls.values():
        ((most, count),) = each["histogram"].items()
        assert (count, each["p50"]) == (1, most)
        assert most / 2 <= max(each["seconds"], 0.5e-6) <= most
    m.close()


def test_metrics_are_lines_that_prometheus_reads(tmp_path: Path) -> None:
    m = used(tmp_path / "f")
    text = m.metrics()
    assert text.endswith("\n")
    kinds: dict[str, str] = {}
    buckets: dict[str, list[tuple[float, float]]] = {}
    seen: set[tuple[str, str]] = set()
    for line in text.splitlines():
        if line.startswith("# "):
            _, what, name, more = line.split(" ", 3)
            assert what in ("HELP", "TYPE")
            if what == "TYPE":
                assert name not in kinds
                kinds[name] = more
            continue
        found = SAMPLE.fullmatch(line)
        assert found is not None, line
        name, labels, value = found[1], found[2] or "", float(found[3])
        family = re.sub("_(bucket|sum|count)$", "", name)
        assert kinds[family if family in kinds else name] in ("gauge", "counter", "histogram")
        assert (name, labels) not in seen
        seen.add((name, labels))
        if name.endswith("_bucket"):
            call, most = re.fullmatch('call="(.*)",le="(.*)"', labels).groups()  # type: ignore[union-attr]
            buckets.setdefault(call, []).append((float(most), value))
    assert sorted(buckets) == sorted(CALLS)
    for each in buckets.values():
        assert all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(each))
        assert each[-1] == (float("inf"), 1)
        assert [most for most, _ in each[:-1]] == [2**n / 1e6 for n in range(len(each) - 1)]
    m.close()
