"""Cells inside of computed attributes: each place that reads one tells what its text means."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.encode.entry_events import EntryEvents
from matchwood.engine.formats.files import read_events
from matchwood.lang.cells import read_cell

HOLDS = {
    "price * qty > 100": ({"price": "30", "qty": "4"}, {"price": "30.5", "qty": "4"}),
    "price / qty BETWEEN 7 AND 8": ({"price": "30", "qty": "4"},),
    "abs(x) = 7": ({"x": "-7"}, {"x": " -7.0 "}),
    "round(x, 1) = 7.3": ({"x": "7.25"},),
    "length(zip) = 4": ({"zip": "0123"},),
    "zip || '!' = '0123!'": ({"zip": "0123"},),
    "concat(a, b) = '0712'": ({"a": "07", "b": "12"},),
    "lower(name) = 'x'": ({"name": "X"},),
    "name RLIKE '^0'": ({"name": "0123"},),
    "a = b": ({"a": "7", "b": "07"}, {"a": "x", "b": "x"}, {"a": "7.0", "b": "7"}),
    "a < b": ({"a": "9", "b": "10"}, {"a": "x10", "b": "x9"}, {"a": "10", "b": "9x"}),
    "a < b + 3": ({"a": "12", "b": "10"},),
    "greatest(a, b) = 10": ({"a": "9", "b": "10"},),
    "greatest(a, b) = '9x'": ({"a": "10", "b": "9x"},),
    "a IN (b, c)": ({"a": "7", "b": "6", "c": "07"},),
    "nullif(a, 0) IS NULL": ({"a": "0.0"}, {}),
    "nullif(a, b) IS NULL": ({"a": "7", "b": "07"},),
    "coalesce(x, 0) > 1": ({"x": "2"},),
    "coalesce(x, 'none') = '07'": ({"x": "07"},),
    "coalesce(a, b) = '07'": ({"b": "07"},),
    "coalesce(a, b) = 7": ({"b": "07"},),
    "CASE WHEN a > 1 THEN b END = '07'": ({"a": "2", "b": "07"},),
    "CASE WHEN flag THEN x + 1 ELSE 0 END = 8": ({"flag": "true", "x": "7"},),
    "if(a = 'x', 1, 2) = 1": ({"a": "x"},),
    "nvl2(a, b, 0) = 7": ({"a": "?", "b": "7"},),
    "(NOT flag) = other": ({"flag": "true", "other": "FALSE"},),
    "cast(x AS int) = 7": ({"x": "7"},),
    "try_cast(x AS int) IS NULL": ({"x": "seven"},),
    "year(d) = 2026": ({"d": "2026-02-03"}, {"d": "2026-02-03T04:05:06Z"}),
    "datediff(d, DATE '2026-02-01') = 2": ({"d": "2026-02-03"},),
    "date_add(d, n) = DATE '2026-02-05'": ({"d": "2026-02-03", "n": "2"},),
    "substr(sku, n, 2) IN ('bc')": ({"sku": "abc", "n": "2"},),
    "array_contains(array(a, b), 7)": ({"a": "7", "b": "8"},),
    "m + n <=> 3": ({"m": "1", "n": "2"},),
}
FAILS = {
    "price * qty > 100": ({"price": "3", "qty": "4"}, {"price": "a lot", "qty": "4"}),
    "length(zip) = 3": ({"zip": "0123"},),
    "a < b": ({"a": "10", "b": "9"}, {"a": "9x", "b": "10"}, {"a": "1"}),
    "a = b": ({"a": "7", "b": "7x"},),
    "cast(x AS int) = 7": ({"x": "seven"}, {"x": "7.0"}),
    "year(d) = 2026": ({"d": "tomorrow"},),
    "price * qty IS NULL": ({"price": "a lot", "qty": "4"},),
}
OTHERS = ["zip > 5", "x = 'a'", "a", "b > 1", "d < DATE '2030-01-01'", "price > 1", "name = 3"]


def cases() -> list[tuple[str, dict[str, str], bool]]:
    return [
        (text, event, holds)
        for each, holds in ((HOLDS, True), (FAILS, False))
        for text, events in each.items()
        for event in events
    ]


def from_csv(m: mw.Matcher, events: list[dict[str, str]], tmp_path) -> list[list[str]]:
    names = sorted({name for event in events for name in event})
    lines = [",".join(["event_id", *names])]
    lines += [",".join([str(i), *[e.get(n, "") for n in names]]) for i, e in enumerate(events)]
    path = tmp_path / "events.csv"
    path.write_text("\n".join(lines))
    parts = [m.match_many(part.events) for part in read_events(path, m.text_types())]
    return [list(each) for part in parts for each in part]


def from_texts(m: mw.Matcher, events: list[dict[str, str]]) -> list[list[str]]:
    entries = [(i, *item) for i, event in enumerate(events) for item in event.items()]
    rows, names, values = zip(*entries, strict=True)
    array = EntryEvents(len(events), np.array(rows), pa.array(names), pa.array(values), read_cell)
    return [list(each) for each in m.match_many(array)]


@pytest.mark.parametrize("others", [[], OTHERS], ids=["alone", "among others"])
def test_each_place_tells_what_a_cell_means(tmp_path, others):
    m = mw.Matcher()
    for text in {**HOLDS, **FAILS, **dict.fromkeys(others)}:
        m.add(text, text)
    events = [event for _, event, _ in cases()]
    for found in (from_csv(m, events, tmp_path), from_texts(m, events)):
        wrong = [
            (text, event)
            for (text, event, holds), ids in zip(cases(), found, strict=True)
            if (text in ids) is not holds
        ]
        assert not wrong


def test_a_declared_attribute_is_read_as_its_type_everywhere(tmp_path):
    m = mw.Matcher(schema=mw.Schema({"zip": "string", "n": "int"}))
    m.add("text", "length(zip) = 4")
    m.add("no number", "zip = '0123'")
    m.add("number", "n + 1 = 8")
    events = [{"zip": "0123", "n": "7"}]
    assert from_csv(m, events, tmp_path) == [["text", "no number", "number"]]
    assert from_texts(m, events) == [["text", "no number", "number"]]


def test_moments_in_json_are_texts_to_functions_of_texts(tmp_path):
    m = mw.Matcher()
    m.add("after", "ts > TIMESTAMP '2026-01-01'")
    m.add("text", "substr(ts, 1, 4) = '2026'")
    m.add("year", "year(ts) = 2026")
    path = tmp_path / "events.jsonl"
    path.write_text('{"ts": "2026-02-01T09:30:00Z"}\n')
    (part,) = read_events(path, m.text_types())
    assert list(m.match_many(part.events)[0]) == ["after", "text", "year"]
