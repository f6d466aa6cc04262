"""Whatever the text is: a tree or a ParseError, soon."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.errors import ParseError
from matchwood.lang import MAX_DEPTH, MAX_TEXT, parse, to_text

N = MAX_TEXT - 1
LONG = {
    "parentheses": "(" * N,
    "closing parentheses": ")" * N,
    "parentheses around a name": "(" * 10_000 + "a" + ")" * 10_000,
    "parentheses around a literal": "a = " + "(" * 400_000 + "1" + ")" * 400_000 + ")",
    "nots": "NOT " * (N // 4),
    "bangs": "!" * N,
    "signs": "a = " + "- " * 400_000 + "x",
    "single quotes": "'" * N,
    "double quotes": '"' * N,
    "back-ticks": "`" * N,
    "escaped quotes": "a = '" + r"\'" * 400_000,
    "digits": "a = " + "1" * 900_000,
    "a fraction": "a = 0." + "1" * 900_000,
    "an exponent": "a = 1e" + "1" * 900_000,
    "a huge decimal": "a = 1e999999999999BD",
    "a long name": "a" * N + " =",
    "dots": "." * N,
    "a name of dots": "a." * (N // 2),
    "spaced dots": "a . " * (N // 4),
    "blanks": " " * N,
    "comment openers": "/*" * (N // 2),
    "comments": "/**/" * (N // 4),
    "dashes": "-" * N,
    "commas": "a IN (" + "," * 900_000,
    "a list without end": "a IN (" + "1," * 400_000,
    "connectives": "AND " * (N // 4),
    "raw string openers": "r'" * (N // 2) + "'",
    "exclusive ors": "a XOR " * 100_000 + "a",
    "too long": "a" * 5_000_000,
    "surrogate": "a = '\ud800'",
    "nul": "a = '\0'",
    "nul outside": "a \0= 1",
    "control character": "a \x01= 1",
    "file separator": "a \x1c= 1",
    "next line": "a \x85= 1",
    "zero width space": "a \u200b= 1",
    "empty": "",
    "only blanks": " \n\t ",
    "only a comment": "-- a = 1",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_a_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.line > 0
    assert len(str(caught.value)) < 1_000


@pytest.mark.slow
def test_a_long_flat_text_is_fine() -> None:
    text = " OR ".join(f"a{i} = {i} AND b IN ({i}, 'x')" for i in range(10_000))
    assert to_text(parse(text)) == text


def test_nesting_is_fine_up_to_the_limit() -> None:
    pairs = MAX_DEPTH // 2
    text = "(a AND (b OR " * (pairs - 1) + "(a AND b)" + "))" * (pairs - 1)
    tree = parse(text)
    assert parse(to_text(tree)) == tree
    xors = parse(" XOR ".join(["a"] * MAX_DEPTH))
    assert parse(to_text(xors)) == xors
    with pytest.raises(ParseError, match="nesting of at most"):
        parse("NOT " * (MAX_DEPTH + 1) + "a")
    with pytest.raises(ParseError, match="open parentheses"):
        parse("(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1))


WORDS = """
    a b1 ctx. date DATE TIMESTAMP double r R 1 -2 .5 1e3 20L 0.1F 1BD ( ) ( ) , . ; -- /* */ é ½ ٣
    = == <> != < <= > >= <=> !< ! & | ~ + - * / % '' 'x' "y" '\\u00' '2026-01-01' 'NaN' ' " ` \\
    AND OR NOT XOR XNOR IN LIKE BETWEEN IS NULL TRUE FALSE ESCAPE and Or
"""
PIECES = [*WORDS.split(), "`x y`", "\n", "\t", "\x1c"]


@given(st.lists(st.sampled_from(PIECES), max_size=25), st.sampled_from(["", " "]))
def test_random_tokens_give_a_tree_or_a_parse_error(pieces: list[str], joint: str) -> None:
    check(joint.join(pieces))


@given(st.text(st.characters(codec=None), max_size=40))
def test_random_characters_give_a_tree_or_a_parse_error(text: str) -> None:
    check(text)
    check("a = '" + text)
    check("a = '" + text + "'")
    check("`" + text + "` IN (1)")


@given(st.text("0123456789.eE+-LSYDFB", max_size=12))
def test_random_numbers_give_a_value_or_a_parse_error(text: str) -> None:
    check("a = " + text)


@given(st.text("0123456789-+: TZUTC.", max_size=30))
def test_random_moments_give_a_value_or_a_parse_error(text: str) -> None:
    check(f"a = TIMESTAMP '{text}'")
    check(f"a = DATE '{text}'")


def check(text: str) -> None:
    try:
        tree = parse(text)
    except ParseError as error:
        str(error)
        return
    printed = to_text(tree)
    assert to_text(parse(printed)) == printed
