"""One JSON document, or one event with computed attributes, in a few compiled calls."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from engine.singles import (
    General,
    conjunction,
    event,
    matcher_of,
    mixed,
    warmed,
)
from inside import attributes_of, is_bound, view_of
from matchwood import EventError
from matchwood.encode.json.events import JsonLines
from matchwood.engine.segments.single_part import SinglePart
from matchwood.kernel.store import IS_CHECKED

pytestmark = pytest.mark.skipif(IS_CHECKED, reason="with checks nothing is chained")


def test_a_json_document_alone_has_the_answer_of_many() -> None:
    rng = random.Random(7)
    m = matcher_of(mixed, 5_000)
    m.add_many([(f"n{i}", mixed(rng)) for i in range(300)])
    documents = [json.dumps(event(rng)).encode() for _ in range(60)]
    documents += [b'{"a": 1, "a": 2, "b": 11}', b'{"a\\u0062": 1, "a": 1e400}', b' {"s": "w\\t3"} ']
    m.encode(JsonLines(documents * 100))
    for _ in range(4):
        m.match_json(documents[0])
    assert is_bound(m)
    expected = m.match_many_json(documents)
    for document, ids in zip(documents, expected, strict=True):
        assert m.match_json(document) == m.match_json(document.decode()) == ids
    for wrong in (b"", b"[]", b'{"a": }', b'{"a": 1} {}', b'{"s": "\xff"}'):
        with pytest.raises(EventError, match="expected a JSON object"):
            m.match_json(wrong)
    long = json.dumps({"unused": "\\" * 20_000, "s": "w3", "a": 1}).encode()
    assert m.match_json(long) == m.match_many_json([long])[0]


def test_values_of_other_kinds_in_documents_are_counted_once() -> None:
    m = matcher_of(conjunction, 40)
    documents = [b'{"a": "word", "b": 1}', b'{"a": 1, "b": [1]}', b'{"a": 1}']
    m.encode(JsonLines(documents * 500))
    for _ in range(4):
        m.match_json(documents[0])
    assert is_bound(m)

    def counted(ask: Any) -> dict[str, int]:
        attributes_of(m).unknown.clear()
        for document in documents:
            ask(document)
        return dict(attributes_of(m).unknown)

    assert counted(m.match_json) == counted(lambda each: m.match_many_json([each]))


COMPUTED = ("a + 1 > 4", "a * b = 12", "upper(s) = 'W1'", "10 / b > 3", "g + 1 = 2", "size(l) = 2",
            "n.x + 1 = 3", "length(s) > 40", "coalesce(a, 5) = 5", "g = l")  # fmt: skip


def test_computed_attributes_alone_have_the_answer_of_the_general_way() -> None:
    """Known and new values, ones that fail or are of another kind, and texts without room."""
    m = matcher_of(conjunction, 40)
    m.add_many([(text, text) for text in COMPUTED])
    m.add_many([(f"n{i}", f"a < {i} AND {COMPUTED[i % 5]}") for i in range(4_200)])
    rng = random.Random(11)
    values: list[Any] = [0, 1, 2, 3, 4.5, "w1", "w" * 5_000, [1, 2], None, True, 2**70, object()]
    events = [{name: rng.choice(values) for name in rng.sample("abgsl", 4)} for _ in range(150)]
    events += [{"a": i, "n": {"x": i}, "s": f"w{i}"} for i in range(20)]
    warmed(m, [{"a": 1}])
    assert is_bound(m)
    stores = [part.store.attributes for part in view_of(m).searched]

    def counted(each: dict[str, Any]) -> Any:
        for attributes in stores:
            attributes.unknown.clear()
            attributes.failed.clear()
        return m.match(each), [(dict(of.unknown), dict(of.failed)) for of in stores]

    for _ in range(2):
        rng.shuffle(events)
        for each in events:
            assert counted(each) == counted(General(each)), each


def test_computed_attributes_that_are_known_need_no_call_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    m = matcher_of(conjunction, 40)
    m.add_many([(text, text) for text in COMPUTED])
    events = [{"a": i % 5, "b": 3, "s": f"w{i % 4}", "n": {"x": i % 3}} for i in range(40)]
    warmed(m, events)
    expected = [m.match(each) for each in events]
    monkeypatch.setattr(SinglePart, "read", None)  # which reads an event by itself
    assert [m.match(each) for each in events] == expected
    assert any("upper(s) = 'W1'" in each for each in expected)


def test_memory_that_grew_for_a_long_text_beside_something_to_compute_is_that_of_the_next_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Compiled code would write to the memory that there was before, which is free by then."""
    m = matcher_of(conjunction, 40)
    m.add("sum", "a + 1 > 4")
    m.add("text", f"s = '{'é' * 5_000}'")
    warmed(m, [{"a": 5, "s": "é"}])
    m.match({"a": 5, "s": "é"})
    assert is_bound(m)
    long = {"a": 7, "s": "é" * 5_000}  # what 7 becomes is not known yet
    found = m.match(long)
    assert found[-2:] == ["sum", "text"]
    monkeypatch.setattr(SinglePart, "read", None)  # which is asked where there was no room
    assert m.match(long) == found == m.match(General(long))
