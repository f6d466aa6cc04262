"""JSON text gives the answers that `json.loads` and a dict give, whatever is in it."""

from __future__ import annotations

import json
import os
import random
from collections import OrderedDict
from typing import Any

import pytest

import matchwood as mw
from inside import is_bound
from matchwood.encode.json.events import JsonLines
from matchwood.kernel.store import IS_CHECKED

N_DOCUMENTS = {"long": 1_000_000, "ci": 20_000}.get(os.environ.get("MATCHWOOD_PROFILE", ""), 4_000)
PER_MATCHER = 2_000

NAMES = ["a", "b", "c", "d", "e", "tags", "user", "name", "é", "x", "y", "b.c", "x.y", "b.d", "zz",
         "user.name", "", ".", "a.", 'k"q', "n\\u"]  # fmt: skip
SCALARS: list[Any] = [
    0, 1, -1, 7, 10**17, 10**18, -(10**18) + 1, 2**63, 2**63 - 1, 2**53 + 1, 10**30,
    0.5, -1.25, 1e300, 1e-7, 3.14159265358979, 0.1, 1e22, 1.7e308, 123456789.123456789, 5e-324,
    -0.0, 1.0, "", "x", "héé", 'a"b\\c/\n\t', "\U0001f600 hi", "\ud83d", "日本", "quo\x01te",
    "\x7f", "🎉🎉🎉", "plain text here", "2024-01-01", "2024-01-01T10:00:00Z", True, False, None,
]  # fmt: skip
TEXTS = [
    "a = 7", "a > 0", "a <= 0.5", "a = 10.0", "a < 100000000000000000", "a IN (1, -1, 0)",
    "a = 'x'", "a LIKE 'h%'", "a IS NULL", "a IS NOT NULL", "a", "NOT a", "a = TRUE", "a >= '日'",
    "a < 'b'", "b.c > 1", "b.c IS NULL", "b.c = 'plain text here'", "b.c LIKE '%i%'", "b.d.e = 1",
    "b IS NULL", "b.d IS NOT NULL", "tags IS NOT NULL", "user.name = 'a\"b\\\\c/\n\t'",
    "user.name = '🎉🎉🎉'", "user.name <> 'x'", "é = 1", "é = 'é'", "x.y = 5e-324", "x.y = 1e300",
    "x.y > 3.14159265358979 AND a IS NOT NULL", "x.y = DATE '2024-01-01'",
    "zz >= TIMESTAMP '2024-01-01 00:00:00'", "a = 0.10000000000000000001",
    "a = 9223372036854775807", "x.y BETWEEN -1.25 AND 0.1", "name = '' OR c = FALSE",
    "lower(user.name) = 'x'", "a + 1 > 7",
]  # fmt: skip
COMPUTED = [
    "10 / a > 1", "size(tags) > 1", "tags[0] = 'x'", "a = b.c", "coalesce(x.y, a, 0) >= 0",
    "(b.c + 1) IS NULL", "array_contains(tags, 'x')", "b['c'] = 1", "user['name'] = 'x'",
    "length(user.name) > 2", "year(zz) = 2024", "-a = 1.25",
]  # fmt: skip
TYPES = ["int", "float", "number", "string", "bool", "timestamp"]


def value(rng: random.Random, depth: int) -> Any:
    if depth > 4 or rng.random() < 0.6:
        return rng.choice(SCALARS)
    if rng.random() < 0.4:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return mapping(rng, depth + 1)


def mapping(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    return {rng.choice(NAMES): value(rng, depth) for _ in range(rng.randrange(6))}


def document(rng: random.Random) -> bytes:
    """A JSON object, one time in three with a byte or two changed."""
    separators = rng.choice([(",", ":"), (", ", ": "), (" ,\n", "\t: ")])
    is_ascii = rng.random() < 0.5
    made = json.dumps(mapping(rng), ensure_ascii=is_ascii, separators=separators)
    text = bytearray(made.encode("utf-8", "surrogatepass"))
    for _ in range(rng.choice([0, 0, 0, 0, 1, 2])):
        at, kind = rng.randrange(len(text) + 1), rng.random()
        if kind < 0.7:
            byte = rng.choice(b'{}[]",:\\ue0123456789.-+ \n\x00\xff\xc3\xed\xa0\x80tfnNE')
            text[at : at + (kind < 0.4)] = bytes([byte])
        else:
            del text[at : at + 1]
    if rng.random() < 0.1:
        text = bytearray(b" \n" + bytes(text).replace(b"1", b"01") + b"\t")
    return bytes(text)


def read(text: bytes) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def matcher(rng: random.Random) -> mw.Matcher:
    schema = {"a": rng.choice(TYPES), "x.y": "float"} if rng.random() < 0.5 else None
    made = mw.Matcher("scan", schema=schema)
    texts = rng.sample(TEXTS, rng.randrange(3, len(TEXTS)))
    for i, text in enumerate(texts + random.Random(len(texts)).sample(COMPUTED, 4)):
        try:
            made.add(i, text)
        except mw.SchemaError:
            continue
    if rng.random() < 0.5:
        made.remove_many([id_ for id_ in range(len(TEXTS)) if id_ in made and id_ % 3 == 0])
    return made


def is_moment(m: mw.Matcher, event: Any) -> bool:
    """Whether a declared time has a string, which only JSON text reads as a time."""
    return m.schema.get("a") == "timestamp" and isinstance(event.get("a"), str)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(N_DOCUMENTS // PER_MATCHER))
def test_json_text_gives_what_a_dict_gives(seed: int) -> None:
    rng = random.Random(seed)
    m = matcher(rng)
    documents = [document(rng) for _ in range(PER_MATCHER)]
    events = [read(text) for text in documents]
    found = m.match_many_json(documents)
    expected = m.match_many([{} if event is None else event for event in events])
    for number, event in enumerate(events):
        if event is not None and is_moment(m, event):
            continue
        is_bad = event is None or number in expected.errors
        assert (number in found.errors) == is_bad, documents[number]
        if not is_bad:
            assert found[number] == expected[number], documents[number]
            warned = [list(map(str, each.warnings.get(number, []))) for each in (found, expected)]
            assert warned[0] == warned[1], documents[number]


@pytest.mark.skipif(IS_CHECKED, reason="with checks nothing is chained")
@pytest.mark.parametrize("seed", range(4))
def test_one_document_with_computed_attributes_gives_what_a_dict_gives(seed: int) -> None:
    rng = random.Random(seed)
    m = mw.Matcher()
    m.add_many(list(enumerate(COMPUTED + TEXTS[:10])))
    documents = [text for text in (document(rng) for _ in range(700)) if read(text) is not None]
    bad = m.match_many([read(text) for text in documents]).errors
    documents = [text for number, text in enumerate(documents) if number not in bad]
    before = m.stats()
    expected = [m.match(read(text)) for text in documents]
    between = m.stats()
    assert [m.match_json(text) for text in documents] == expected
    assert is_bound(m)
    after = m.stats()
    for kind in ("unknown", "failed"):
        names = between[kind].keys() | after[kind].keys()
        first, second = [
            {name: late[kind].get(name, 0) - early[kind].get(name, 0) for name in names}
            for early, late in ((before, between), (between, after))
        ]
        assert first == second
    assert sum(map(len, expected)) > 100


@pytest.mark.parametrize("seed", range(6))
def test_a_dict_gives_what_any_other_mapping_gives(seed: int) -> None:
    """A dict is read by what is known of its values (`dicts/events`), other mappings are not."""
    rng = random.Random(seed)
    m = matcher(rng)
    events = [mapping(rng) for _ in range(800)]
    found, expected = m.match_many(events), m.match_many([OrderedDict(each) for each in events])
    assert found.to_pylist() == expected.to_pylist()
    assert found.errors.keys() == expected.errors.keys()
    assert sum(map(len, expected)) > 50


@pytest.mark.parametrize("n", [1, 3_000])
def test_one_document_and_many_give_the_same(n: int) -> None:
    m = mw.Matcher()
    m.add_many([(i, f"x.y = {i} AND s < 'k{i:04}'") for i in range(50)])
    texts = [f'{{"s": "k{i % 60:04}", "x": {{"y": {i % 60}}}}}' for i in range(n)]
    expected = [list(ids) for ids in m.match_many([json.loads(text) for text in texts])]
    assert [list(ids) for ids in m.match_many_json(texts)] == expected
    assert [list(ids) for ids in m.match_many_json("\n".join(texts))] == expected
    assert [m.match_json(text) for text in texts[:100]] == expected[:100]


@pytest.mark.slow
def test_a_plan_follows_every_change() -> None:
    m = mw.Matcher()
    event = b'{"a": 5, "b": "x", "c": {"d": 1.5}}'
    for round_ in range(40):
        m.add(round_, ["a >= 5", "b = 'x'", "c.d > 1", "b LIKE '%x'", "z IS NULL"][round_ % 5])
        if round_ % 3 == 2:
            m.remove(round_ - 1)
        many = m.match_many_json([event] * 500)  # enough of them to make a plan
        assert many[0] == many[499] == m.match_json(event) == m.match(json.loads(event))


def test_keys_in_another_order_with_names_that_need_escapes_and_constants_that_begin_alike() -> (
    None
):
    """The key that came next the last time is tried first, and it may have a quote in its name."""
    rng = random.Random(3)
    names = [
        "a",
        "ab",
        "abcdefgh",
        "abcdefghi",
        'q"',
        'q" ',
        "b\\",
        "n\n",
        "é" * 9,
        "deep.a",
        "x" * 40,
    ]
    words = ["common start 1", "common start 12", "common start", "common", "other", "", "z\0", "z"]
    m = mw.Matcher()
    texts = [f"`{name}` {op} '{word}'" for name in names for word in words for op in ("=", "<")]
    m.add_many([(i, text) for i, text in enumerate(texts)])
    values = [
        *words,
        "common start 11",
        "common start 2",
        "commom",
        "zz",
        "\0",
        "common start 1" * 9,
    ]
    events = []
    for _ in range(1_500):
        picked = rng.sample(names, rng.randrange(1, len(names)))
        events.append({name: rng.choice(values) for name in picked})
    documents = [json.dumps(each, ensure_ascii=rng.random() < 0.5) for each in events]
    documents[::50] = ['{"q"": "common"}'] * len(documents[::50])  # no JSON, if read by the name
    found, expected = m.match_many_json(documents), m.match_many(events)
    for number in range(len(events)):
        if number % 50 == 0:
            assert number in found.errors
        else:
            assert found[number] == expected[number], documents[number]
    assert sum(map(len, expected)) > 10_000


def test_short_lines_long_lines_and_blank_ones_are_told_apart() -> None:
    rng = random.Random(5)
    m = mw.Matcher()
    m.add("s", "a >= 0")
    for _ in range(60):
        lines = [
            rng.choice(
                ["", " \t\r", f'{{"a":{i}}}', f'{{"a":{i},"b":"{"x" * rng.randrange(200)}"}}']
            )
            for i in range(rng.randrange(300))
        ]
        buffer = "\n".join(lines) + rng.choice(["", "\n", "\n\n "])
        n = sum(1 for line in lines if line.strip())
        assert [list(ids) for ids in m.match_many_json(buffer)] == [["s"]] * n


def test_blank_lines_are_no_events_and_bad_ones_are_reported() -> None:
    m = mw.Matcher()
    m.add("s", "a = 1")
    found = m.match_many_json(b'{"a": 1}\n\n  \r\n{"a": }\n[1]\n{"a": 1}')
    assert [list(ids) for ids in found] == [["s"], [], [], ["s"]]
    assert sorted(found.errors) == [1, 2]
    found = m.match_many_json(b'\x01\n{"a": 1}\n\t\r\n\x0c\n\x00')
    assert [list(ids) for ids in found] == [[], ["s"], [], []]
    assert sorted(found.errors) == [0, 2, 3]
    with pytest.raises(mw.EventError, match="expected a JSON object, found list"):
        m.match_json("[1]")
    with pytest.raises(mw.EventError, match="expected JSON text as bytes or str, found int"):
        m.match_json(1)


def test_strings_of_declared_times_are_read_as_times() -> None:
    m = mw.Matcher(schema={"at": "timestamp", "log.day": "date"})
    m.add("s", "at >= TIMESTAMP '2024-01-01 10:00:00'")
    m.add("d", "log.day = DATE '2024-02-03'")
    assert m.match_json('{"at": "2024-01-01T10:00:00Z", "log": {"day": "2024-02-03"}}') == [
        "s",
        "d",
    ]
    assert m.match_json('{"at": "2023-12-31T10:00:00Z"}') == []


def test_values_of_another_kind_are_counted_as_with_dicts() -> None:
    texts = [b'{"a": "x", "b": 1}', b'{"a": [1], "b": {"c": 2}}', b'{"a": 2}'] * 200
    counts = []
    for is_json in (False, True):
        m = mw.Matcher()
        m.add_many([("n", "a > 1"), ("s", "b = 'x'")])
        m.match_many_json(texts) if is_json else m.match_many([json.loads(text) for text in texts])
        counts.append(m.stats()["unknown"])
    assert counts[0] == counts[1]


def test_lines_are_documents() -> None:
    lines = JsonLines(b'{"a": 1}\n{"b": 2}\n')
    assert len(lines) == 2
    assert list(lines) == [{"a": 1}, {"b": 2}]
