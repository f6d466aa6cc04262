"""The whole language: the general parser beside the quick one, computed attributes, laws."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood import attr, ctx, fn, parse
from matchwood.errors import ParseError
from matchwood.lang.functions.regex import Regex, RegexProblem, regex
from matchwood.lang.general import parse_general
from matchwood.lang.parser import _parse
from matchwood.lang.source import Source
from strategies import expression, schema


@given(seed=st.integers(0, 2**32))
def test_both_parsers_give_the_same_tree(seed):
    rng = Random(seed)
    text = str(expression(rng, schema(rng), rng.randrange(1, 12)))
    assert parse_general(Source(text)) == _parse(Source(text))


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (attr("price") * attr("qty") > 100, "price * qty > 100"),
        (fn.lower(attr("name")) == "x", "lower(name) = 'x'"),
        (attr("a") == attr("b"), "a = b"),
        (~(attr("a") < attr("b") + 3), "NOT a < b + 3"),
        ((attr("a") + 1).between(2, 3), "a + 1 BETWEEN 2 AND 3"),
        (attr("tags")[0] == "x", "tags[0] = 'x'"),
        (fn.array_contains(attr("tags"), "x") & attr("b"), "array_contains(tags, 'x') AND b"),
        (attr("name").ilike("A%"), "lower(name) LIKE 'a%'"),
        (attr("name").rlike("^a"), "name RLIKE '^a'"),
        (attr("x").eq_null_safe(None), "x IS NULL"),
        (attr("x") * 2 < ctx("y") + 5, "x * 2 < ctx.y + 5"),
        (-attr("x") / 2 >= 1, "- x / 2 >= 1"),
    ],
)
def test_the_builder_and_the_text_give_one_tree(built, text):
    assert str(built) == text
    assert parse(text) == built


def test_a_function_that_is_not_on_the_list_is_no_name_of_the_builder():
    with pytest.raises(AttributeError, match="did you mean lower"):
        _ = fn.lowr
    with pytest.raises(TypeError, match="expected substr"):
        fn.substr(attr("s"))


@pytest.mark.parametrize(
    "text", ["(" * 150 + "a + 1" + ")" * 150 + " > 1", "a" + " + 1" * 150 + " > 1"]
)
def test_nesting_has_a_limit(text):
    with pytest.raises(ParseError, match="nesting of at most"):
        parse(text)


# ── regular expressions ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("a", ["a", "xay"], ["", "b"]),
        ("^a.*b$", ["ab", "a--b", "ab\n"], ["xab", "a\nb", "abc"]),
        (r"^\d{2,3}$", ["12", "123"], ["1", "1234", "٣٣"]),
        ("[^a-c]", ["d", "ad"], ["", "abc"]),
        ("(ab|a)(c|bcd)?$", ["abcd", "ac"], ["abx"]),
        ("(?i)straße", ["STRAße"], ["STRASSE", "STRAẞE"]),
        ("^(a?){3}$", ["", "a", "aaa"], ["aaaa"]),
        ("x*", ["", "y"], []),
        (".", ["a", "é"], ["", "\n", "\u2028", "\r"]),
        ("a$", ["a", "a\n", "a\r\n", "a\u0085"], ["a\n\n", "ab"]),
        ("^(a{0}b|c{2,})$", ["b", "cc", "ccc"], ["ab", "c"]),
    ],
)
def test_a_pattern_finds_what_java_finds(pattern, yes, no):
    assert [text for text in yes if not regex(pattern).search(text)] == []
    assert [text for text in no if regex(pattern).search(text)] == []


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)", r"\bx", r"(a)\1", "a*+", "a**", "[a&&b]", "[[a]]", r"\p{L}", "(?s).", "{", "a{3,2}",
     "(", ")", "[", "[]a]", "[b-a]", r"\Qa\E", "a{5000}", "*a", r"\x41"],
)  # fmt: skip
def test_a_pattern_that_could_mean_something_else_is_refused(pattern):
    with pytest.raises(RegexProblem):
        Regex(pattern)
    with pytest.raises(ParseError):
        parse("s RLIKE r'" + pattern + "'")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a*)*b", "^(.*a){8}$", "(x+x+)+y"])
def test_no_pattern_takes_more_than_linear_time(pattern):
    """Each of these takes longer than the universe has, in a backtracking engine."""
    assert regex(pattern).search("a" * 3_000 + "!") in (True, False)
