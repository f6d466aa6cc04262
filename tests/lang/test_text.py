"""Text to tree to text, from fixtures; where nodes say they are; what errors say."""

from __future__ import annotations

import pickle
from decimal import Decimal
from pathlib import Path

import pytest

from matchwood.errors import ParseError
from matchwood.lang import And, Comparison, Const, Expr, Not, Or, Xor, children, parse, to_text

FIXTURES = Path(__file__).parents[1] / "fixtures"


def pairs(name: str) -> list[tuple[str, str]]:
    lines = (FIXTURES / name).read_text().splitlines()
    blocks = "\n".join(line for line in lines if not line.startswith("# ")).split("\n\n")
    return [tuple(block.strip("\n").split("\n")) for block in blocks if block.strip()]  # type: ignore[misc]


@pytest.mark.parametrize(("text", "printed"), pairs("lang_print.txt"))
def test_a_text_prints_in_its_canonical_spelling(text: str, printed: str) -> None:
    tree = parse(text)
    assert to_text(tree) == printed
    assert str(parse(printed)) == printed
    assert pickle.loads(pickle.dumps(tree)) == tree or "nan" in repr(tree)


@pytest.mark.parametrize(("text", "says"), pairs("lang_errors.txt"))
def test_an_error_points_at_its_place_and_says_what_to_do(text: str, says: str) -> None:
    column, _, part = says.partition(" ")
    with pytest.raises(ParseError) as caught:
        parse(text)
    error = caught.value
    assert part in error.message
    assert (error.line, error.column) == (1, int(column))
    assert str(error).splitlines()[-1].index("^") == int(column) + 1


def test_an_error_counts_lines() -> None:
    with pytest.raises(ParseError) as caught:
        parse("a = 1\nAND b = 2\n  AND c ~ 3")
    assert (caught.value.line, caught.value.column) == (3, 9)


@pytest.mark.parametrize("text", [None, b"a = 1", 5, ["a"]])
def test_what_is_no_text_is_refused(text: object) -> None:
    with pytest.raises(ParseError, match="expected the expression as text"):
        parse(text)  # type: ignore[arg-type]


def positions(node: Expr) -> list[tuple[str, int]]:
    here = [(type(node).__name__, node.position)]  # type: ignore[attr-defined]
    return here + [place for child in children(node) for place in positions(child)]


def test_a_node_is_where_it_starts_and_a_predicate_is_where_its_name_stands() -> None:
    text = " 3 < a AND (b XOR NOT c) OR ((d OR e) AND f)"
    assert positions(parse(text)) == [
        ("Or", 1),
        ("And", 1),
        ("Comparison", text.index("a")),
        ("Xor", text.index("b")),
        ("Comparison", text.index("b")),
        ("Not", text.index("NOT")),
        ("Comparison", text.index("c")),
        ("And", text.index("((d")),
        ("Or", text.index("d O")),
        ("Comparison", text.index("d O")),
        ("Comparison", text.index("e)")),
        ("Comparison", text.index("f)")),
    ]


@pytest.mark.parametrize("text", ["/* x */ a = 'é' AND b = 2", "\u3000a = 'é' AND b = 2"])
def test_positions_count_characters_past_comments_and_wide_blanks(text: str) -> None:
    assert [at for _, at in positions(parse(text))[1:]] == [text.index("a ="), text.index("b")]


def test_not_binds_more_than_and_and_xor_more_than_or() -> None:
    a, b, c, d = (Comparison(name, "=", True) for name in "abcd")
    assert parse("NOT a AND b XOR c OR d") == Or((Xor(And((Not(a), b)), c), d))


@pytest.mark.parametrize("keyword", ["and", "AND", "And", "aNd"])
def test_keywords_mind_no_case_but_names_do(keyword: str) -> None:
    assert parse(f"a {keyword} A") == And((Comparison("a", "=", True), Comparison("A", "=", True)))


def test_a_keyword_spelled_with_look_alikes_is_a_name() -> None:
    assert parse("l\u0131ke") == Comparison("l\u0131ke", "=", True)
    with pytest.raises(ParseError):
        parse("a LI\u212aE 'x'")


def test_beyond_64_bits_and_beyond_53_bits() -> None:
    assert parse("9007199254740993 = 9007199254740992e0") == Const(False)  # Spark rounds: TRUE
    value = parse(f"x = {10**40}").value  # type: ignore[attr-defined]
    assert type(value) is Decimal  # 1e40, the double, is another number
    assert value == 10**40
    assert parse(f"x = {2**64}").value == 2.0**64  # type: ignore[attr-defined]
