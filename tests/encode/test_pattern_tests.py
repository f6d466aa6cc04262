"""RLIKE of many patterns: found by pieces of the string, with the answers of computing them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood as mw
from encode.grouped import compare_grouped_tests
from matchwood.lang.functions.regex import Regex, RegexProblem, required

ATOMS = ["a", "b", "ab", "abc", ".", r"\.", r"\d", "[ab]", "[^a]", "(a|b)", "(?:ab)", "(ab|c)", "é",
         "^", "$", r"\n", "7", r"\\"]  # fmt: skip
MARKS = ["", "", "", "", "*", "+", "?", "{2}", "{0,1}", "*?"]

patterns = st.builds(
    lambda begin, parts: begin + "".join(parts),
    st.sampled_from(["", "", "", "(?i)", "^"]),
    st.lists(
        st.builds(str.__add__, st.sampled_from(ATOMS), st.sampled_from(MARKS))
        | st.sampled_from(["|", "ab|", "abc"]),
        max_size=6,
    ),
)
strings = st.text(alphabet="abcABé.7\n\\", max_size=12)


def compiled(pattern: str) -> Regex | None:
    try:
        return Regex(pattern)
    except RegexProblem:
        return None


@given(patterns, st.lists(strings, max_size=8))
def test_every_string_that_fits_has_what_is_required(pattern: str, texts: list[str]) -> None:
    regex = compiled(pattern)
    if regex is not None:
        for text in texts:
            assert not regex.search(text) or regex.required in text


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("^abc[0-9]+x$", "abc"), ("ab|cd", ""), ("(ab|cd)efg", "efg"), ("(?i)abc", ""),
     ("ab?cd", "cd"), ("ab*", "a"), (r"a\.b", "a.b"), ("a{2}bc", "bc"), ("", ""), (r"\dab\w", "ab"),
     ("a+b", "b")],
)  # fmt: skip
def test_what_a_pattern_requires(pattern: str, expected: str) -> None:
    assert required(pattern) == expected


FORMS = ["x RLIKE '{}'", "NOT x RLIKE '{}'", "x RLIKE '{}' AND n < 3", "(x RLIKE '{}') IS NULL",
         "x RLIKE '{}' OR y RLIKE '^b'", "(x RLIKE '{}') IS NOT TRUE", "m['k'] RLIKE '{}'",
         "x RLIKE '{}' XOR n < 3"]  # fmt: skip
subscriptions = st.lists(
    st.builds(
        lambda form, pattern: form.format(pattern.replace("\\", "\\\\")),
        st.sampled_from(FORMS),
        patterns.filter(lambda pattern: compiled(pattern) is not None),
    ),
    max_size=12,
)
values = strings | st.sampled_from([None, 7, 1.5, True, ["ab"], {"ab": 1}, b"abc"])
events = st.fixed_dictionaries(
    {"x": values, "n": st.integers(0, 5), "y": strings, "m": st.builds(lambda v: {"k": v}, strings)}
)


def answers(texts: list[str], rows: list[dict[str, Any]], index: str) -> list[Any]:
    m = mw.Matcher(index=index)
    m.add_many(list(enumerate(texts)))
    many = m.match_many(rows).to_pylist()
    assert [m.match(each) for each in rows] == many
    return [many, m.stats()["unknown"]]


@pytest.mark.slow
@pytest.mark.parametrize("index", ["scan", "auto"])
def test_pieces_give_what_computing_gives(index: str) -> None:
    compare_grouped_tests(subscriptions, events, partial(answers, index=index))


@pytest.mark.slow
def test_an_event_is_tested_with_the_patterns_that_it_has_a_piece_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searched: list[str] = []
    search = Regex.search

    def counted(self: Regex, text: str) -> bool:
        searched.append(text)
        return search(self, text)

    monkeypatch.setattr(Regex, "search", counted)
    m = mw.Matcher()
    m.add_many([(i, f"name RLIKE 'piece {i}[a-z]+'") for i in range(2_000)])
    m.add("any", "name RLIKE '[0-9]+x$' AND name RLIKE '.*'")
    events = [{"name": f"a piece {i}x"} for i in range(20)]
    assert m.match_many(events).to_pylist() == [[i, "any"] for i in range(20)]
    assert m.match_many(pa.table({"name": [each["name"] for each in events]})).to_pylist() == [
        [i, "any"] for i in range(20)
    ]
    assert len(searched) < 2 * 20 * 5
