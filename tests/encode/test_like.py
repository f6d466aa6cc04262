"""LIKE: what a pattern costs, and that hostile ones cost no more."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import matchwood as mw
from matchwood.encode.like import LikeKind, classify, compile_pattern, successor
from naive import like

CHARACTERS = st.characters(exclude_categories=["Cs"])
EDGES = st.sampled_from(["", "a", "\x00", "\x7f", "\ud7ff", "\ue000", "\uffff", "\U0010ffff"])
TEXT = st.one_of(st.lists(EDGES, max_size=4).map("".join), st.text(CHARACTERS, max_size=4))
PATTERN = st.lists(
    st.sampled_from(["%", "_", r"\%", r"\_", r"\\", "a", "b", "\n", "😀"]), max_size=7
).map("".join)
SUBJECT = st.text(st.sampled_from("ab%_\\\n😀"), max_size=7)


@pytest.mark.parametrize(
    ("pattern", "kind", "text"),
    [
        ("", LikeKind.EQUAL, ""),
        ("abc", LikeKind.EQUAL, "abc"),
        (r"50\%", LikeKind.EQUAL, "50%"),
        (r"\\", LikeKind.EQUAL, "\\"),
        ("abc%", LikeKind.PREFIX, "abc"),
        ("abc%%%", LikeKind.PREFIX, "abc"),
        (r"\%%", LikeKind.PREFIX, "%"),
        ("%", LikeKind.ANY, ""),
        ("%%", LikeKind.ANY, ""),
        ("_", LikeKind.PATTERN, "_"),
        ("_%", LikeKind.PATTERN, "_%"),
        ("%a", LikeKind.PATTERN, "%a"),
        ("a%b", LikeKind.PATTERN, "a%b"),
        ("a_%", LikeKind.PATTERN, "a_%"),
        (r"a%\%", LikeKind.PATTERN, r"a%\%"),
    ],
)
def test_the_cheapest_form_of_a_pattern(pattern, kind, text):
    assert classify(pattern) == (kind, text)


@given(PATTERN, SUBJECT)
@example("%", "\n")
@example("a%b%", "a\nb\n")
def test_every_form_agrees_with_the_definition(pattern, subject):
    kind, text = classify(pattern)
    holds = {
        LikeKind.EQUAL: subject == text,
        LikeKind.ANY: True,
        LikeKind.PREFIX: subject.startswith(text),
        LikeKind.PATTERN: compile_pattern(pattern).fullmatch(subject) is not None,
    }[kind]
    assert holds is like(subject, pattern)


@given(PATTERN, SUBJECT)
def test_compiled_patterns_agree_with_the_definition(pattern, subject):
    assert (compile_pattern(pattern).fullmatch(subject) is not None) is like(subject, pattern)


@given(TEXT.filter(bool), TEXT)
@example("\ud7ff", "")
@example("a\U0010ffff", "\U0010ffff")
@example("\U0010ffff\U0010ffff", "b")
def test_a_prefix_is_the_interval_up_to_its_successor(prefix, text):
    end = successor(prefix)
    inside = prefix <= text and (end is None or text < end)
    assert inside is text.startswith(prefix)
    assert end is None or end > prefix
    if end is not None:
        end.encode()


@pytest.mark.parametrize(
    ("prefix", "following"),
    [
        ("a", "b"),
        ("az", "a{"),
        ("\ud7ff", "\ue000"),
        ("a\ud7ff", "a\ue000"),
        ("\U0010ffff", None),
        ("a\U0010ffff\U0010ffff", "b"),
        ("\x7f", "\x80"),
        ("\uffff", "\U00010000"),
    ],
)
def test_successors_at_the_edges_of_unicode(prefix, following):
    assert successor(prefix) == following


@given(TEXT.filter(bool), st.lists(TEXT, min_size=1, max_size=5))
def test_prefixes_match_in_the_matcher_at_every_edge(prefix, texts):
    m = mw.Matcher()
    m.add("with", mw.attr("x").startswith(prefix))
    m.add("without", ~mw.attr("x").startswith(prefix))
    for text in [*texts, prefix, prefix + "\x00", prefix[:-1]]:
        expected = "with" if text.startswith(prefix) else "without"
        assert m.match({"x": text}) == [expected]
    assert m.match({}) == []


@pytest.mark.parametrize(
    "pattern",
    [
        "%a" * 30 + "%b",
        "%a%" * 20 + "b",
        "%_" * 40 + "b",
        "a%" * 25 + "c",
        "%" + "ab" * 50 + "%" + "ab" * 50 + "c",
        "%%%%%%%%%%%%%%%%%%%%%%%%b",
        "_%" * 30 + "_b",
    ],
)
def test_hostile_patterns_end(pattern):
    """A backtracking engine would need longer than the sun has on these."""
    m = mw.Matcher()
    m.add("hostile", mw.attr("x").like(pattern))
    assert m.match({"x": "a" * 5_000}) == []
    assert m.match({"x": "ab" * 2_500 + "x"}) == []


def test_patterns_of_one_attribute_are_kept_apart():
    m = mw.Matcher()
    m.add_many([(p, mw.attr("x").like(p)) for p in ("%a%", "_a", "%b", "a_", "a%b")])
    m.add_many([(f"not {p}", ~mw.attr("x").like(p)) for p in ("%a%", "_a", "%b", "a_", "a%b")])
    for text in ("", "a", "ab", "ba", "aab", "b"):
        positive = {p for p in ("%a%", "_a", "%b", "a_", "a%b") if like(text, p)}
        expected = [p for p in ("%a%", "_a", "%b", "a_", "a%b") if p in positive]
        expected += [f"not {p}" for p in ("%a%", "_a", "%b", "a_", "a%b") if p not in positive]
        assert m.match({"x": text}) == expected


def test_patterns_that_nobody_uses_are_forgotten():
    m = mw.Matcher()
    m.add("stays", "x LIKE '%stays%'")
    m.add_many((i, f"x LIKE '%{i}%'") for i in range(2_000))
    full = m.stats()["bytes"]["attributes"]
    m.remove_many(range(2_000))
    assert m.stats()["bytes"]["attributes"] < full / 2
    assert m.match({"x": "it stays 7"}) == ["stays"]
    m.add("again", "x LIKE '%7%'")
    assert m.match({"x": "it stays 7"}) == ["stays", "again"]
