"""Texts that go straight to leaf rows give the rows that the parser gives, or are left to it."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood as mw
from matchwood.encode.leaves import LeafBatch
from matchwood.encode.texts import bulk as bulk_texts
from matchwood.encode.texts import quick as quick_texts
from matchwood.encode.texts.quick import write_text
from matchwood.engine.input.parsing import parse_texts
from matchwood.errors import MatchwoodError
from matchwood.lang.parser import parse

N_TEXTS = {"long": 200_000, "ci": 4_000}.get(os.environ.get("MATCHWOOD_PROFILE", ""), 1_500)
COLUMNS = ("names", "attr", "op", "position", "start", "values", "code", "expr_start", "row_start")

NAMES = ["price", "a", "b_1", "user.age", "x.y.z", "date", "_", "timestamp", "IN", "not", "ctx.a",
         "`a b`", "`NOT`", "TRUE", "double", "é", "a.in", "isx", "like", "NULLs"]  # fmt: skip
LITERALS = ["5", "0", "007", "-3", "'x'", "12.5", "'a%'", "-0.0", "+4", "1e5", "1.", ".5",
            "9" * 18, "9" * 19,
            "9" * 40, "0.10000000000000000001", "'x'", "''", "'it''s'", "'a\\'b'", "'--'", "'/*'",
            "'AND'", "' IN (1) '", "NULL", "TRUE", "DATE '2024-01-01'", '"q"', "'é'", "5L", "a",
            "1.5BD", "- 3", "'x' 'y'", "'%'", "'a%'", "'_b'", "'a\nb'", "0.1", "1_000"]  # fmt: skip
VERBS = ["=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "!<", "IN", "NOT IN", "LIKE", "is",
         "BETWEEN", "not  between", "NOT\tLIKE", "In", "nOt In", "IS NOT", "RLIKE"]  # fmt: skip
BLANKS = [" ", " ", " ", "", "  ", "\t", "\n", " -- c\n", "/* c */", "\u00a0", "\x1c"]


def usual(rng: random.Random, choices: list[str], n: int) -> str:
    """Mostly one of the first n."""
    return rng.choice(choices[:n] if rng.random() < 0.9 else choices)


def predicate(rng: random.Random) -> str:
    verb = rng.choice(VERBS)
    word = verb.upper()
    one = usual(rng, LITERALS, 7)
    if "BETWEEN" in word:
        rest = one + rng.choice([" AND ", " and ", "  AND\t", "AND"]) + usual(rng, LITERALS, 7)
    elif "IN" in word.split():
        inside = rng.choice([", ", ",", " ,\n"]).join(
            [usual(rng, LITERALS, 7) for _ in range(rng.randrange(4))]
        )
        rest = f"({inside})"
    elif word.startswith("IS"):
        rest = rng.choice(["NULL", "not null", "NULLs", "TRUE", "5"])
    else:
        rest = one
    gap = rng.choice(BLANKS) if rng.random() < 0.3 else " "
    return f"{usual(rng, NAMES, 8)}{gap}{verb}{gap}{rest}"


def text_of(rng: random.Random) -> str:
    joint = [" AND ", " AND ", " AND ", " and ", "  AND\n", " OR ", "AND", " AND NOT ", " AND ("]
    parts = [predicate(rng) for _ in range(rng.randrange(1, 5))]
    text = parts[0]
    for part in parts[1:]:
        text += (rng.choice(joint) if rng.random() < 0.4 else " AND ") + part
    if rng.random() < 0.2:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice("'\"()=<>!.-+ \n5aN\\\0`,") + text[at + rng.randrange(2) :]
    return rng.choice(["", " "]) * (rng.random() < 0.1) + text + rng.choice(["", "", " ", "\n"])


def tree_of(rng: random.Random, depth: int = 0) -> str:
    """Predicates under AND, OR, NOT and parentheses; sometimes with one character changed."""
    draw = rng.random()
    if depth > 3 or draw < 0.35:
        text = rng.choice([usual(rng, NAMES, 8), predicate(rng), simple(rng), simple(rng)])
    elif draw < 0.5:
        text = rng.choice(["NOT ", "not ", "NOT", "! ", "NOT NOT "]) + tree_of(rng, depth + 1)
    elif draw < 0.7:
        gap = rng.choice(["", "", " "])
        text = f"({gap}{tree_of(rng, depth + 1)}{gap})"
    else:
        joint = usual(rng, [" AND ", " OR ", " or ", " AND\n", " XOR ", "OR", " OR(", ") AND "], 4)
        parts = [tree_of(rng, depth + 1) for _ in range(rng.randrange(2, 4))]
        text = joint.join(parts)
    if depth == 0 and rng.random() < 0.1:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice("'()=<>!.- N") + text[at + rng.randrange(2) :]
    return text


def simple(rng: random.Random) -> str:
    """A predicate that is taken."""
    constants = ["5", "-3.5", "'x'", "'it''s'", "TRUE", "false", "DATE '2024-01-01'",
                 "timestamp'2024-01-01 10:00:00'", "date '2024-13-01'"]  # fmt: skip
    one, other = usual(rng, constants, 8), usual(rng, constants, 8)
    rest = rng.choice(
        [f"= {one}", f"<> {one}", f"< {one}", f">= {one}", "IS NULL", "IS NOT NULL",
         f"IN ({one}, {other})", f"NOT BETWEEN {one} AND {other}", "LIKE 'x%'", "NOT LIKE '_b%'"]
    )  # fmt: skip
    return f"{rng.choice(NAMES[:8])} {rest}"


def columns(batch: LeafBatch) -> list[Any]:
    return [list(getattr(batch, name)) for name in COLUMNS]


def slowly(text: str) -> LeafBatch | None:
    batch = LeafBatch()
    try:
        batch.add(parse(text))
    except MatchwoodError:
        return None
    return batch


def written(text: str) -> bool:
    """Whether compiled code takes a text."""
    return bool(bulk_texts.write_texts(LeafBatch(), [text])[0])


def check(text: str) -> tuple[bool, bool]:
    """Compare both quick ways with the parser; whether they took the text."""
    expected = slowly(text)
    alone, together = LeafBatch(), LeafBatch()
    taken = write_text(alone, text), bool(bulk_texts.write_texts(together, [text])[0])
    for batch, is_taken in zip((alone, together), taken, strict=True):
        if not is_taken:
            assert columns(batch) == columns(LeafBatch()), text
            continue
        assert expected is not None, text
        assert columns(batch) == columns(expected), text
        assert list(map(type, batch.values)) == list(map(type, expected.values)), text
    return taken


@pytest.mark.slow
def test_random_texts_give_the_rows_of_the_parser() -> None:
    rng = random.Random(3)
    alone, together = zip(*[check(text_of(rng)) for _ in range(N_TEXTS)], strict=True)
    assert sum(alone) > N_TEXTS // 20
    assert sum(together) > N_TEXTS // 20


@pytest.mark.slow
def test_random_trees_give_the_rows_of_the_parser() -> None:
    rng = random.Random(4)
    taken = [check(tree_of(rng))[1] for _ in range(N_TEXTS)]
    assert sum(taken) > N_TEXTS // 4


def nested(depth: int, opener: str, closer: str) -> str:
    return opener * depth + "a = 1" + closer * depth


@pytest.mark.parametrize("depth", [1, 14, 15, 16, 17, 70, 199, 200, 201])
@pytest.mark.parametrize(
    ("opener", "closer"),
    [("(", ")"), ("NOT ", ""), ("NOT (", ")"), ("b AND (c OR ", ")"), ("NOT NOT (b AND ", ")")],
)
def test_deep_trees_give_the_rows_of_the_parser_or_are_left(
    depth: int, opener: str, closer: str
) -> None:
    check(nested(depth, opener, closer))


@pytest.mark.slow
@pytest.mark.parametrize("joint", [" OR ", " AND "])
def test_what_is_refused_for_its_size_is_left_to_the_parser(joint: str) -> None:
    text = joint.join(["a"] * 150_000)
    assert check(text) == (False, joint == " AND ")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a AND b AND (c AND d)", [-9, 0, 1, 2, 3]),
        ("a OR (b OR c) OR d", [-10, 0, 1, 2, 3]),
        ("a AND (b OR c AND d)", [-5, 0, -6, 1, -5, 2, 3]),
        ("NOT (a OR b) AND c", [-5, -5, 0, 1, 2]),
        ("NOT (a AND NOT (b OR c))", [-6, 0, -6, 1, 2]),
    ],
)
def test_connectives_are_written_as_prefix_code(text: str, code: list[int]) -> None:
    assert check(text) == (False, True)
    batch = LeafBatch()
    bulk_texts.write_texts(batch, [text])
    assert list(batch.code) == code


@given(st.text(alphabet="ab1 .='<>(),ANDINOTRUE\n\\-", max_size=30))
def test_any_text_gives_the_rows_of_the_parser_or_is_left(text: str) -> None:
    check(text)


@pytest.mark.parametrize("name", ["lang_errors.txt", "lang_print.txt"])
def test_the_texts_of_the_language_give_the_rows_of_the_parser(name: str) -> None:
    for line in (Path(__file__).parents[1] / "fixtures" / name).read_text().splitlines():
        check(line)


@pytest.mark.parametrize(
    "text",
    [
        "a = 1", "a=1", "price BETWEEN 20 AND 40 AND genre IN ('x', 'y')", "a.b.c <> 'x'",
        "a IS NULL and b is not null", "a NOT LIKE 'x%'", "a = -1.5 AND b >= 2", "a IN(1)",
        "a = 1 AND a = 2 AND a = 1\n",
    ],
)  # fmt: skip
def test_the_usual_texts_are_taken(text: str) -> None:
    assert check(text) == (True, True)


@pytest.mark.parametrize(
    "text",
    [
        " a = 1", "a", "a = 1 OR b = 2", "NOT a = 1", "(a = 1)", "a = 'it''s'", "a = TRUE",
        "NOT a <> FALSE", "d >= DATE '2024-01-01'", "a IN (1)AND b = 2",
        "t BETWEEN TIMESTAMP '2024-01-01 10:00:00' AND TIMESTAMP '2024-01-02 10:00:00'",
        "NOT(a)AND(b OR NOT c IS NULL)",
    ],
)  # fmt: skip
def test_trees_of_the_usual_predicates_are_taken_many_at_a_time(text: str) -> None:
    assert check(text) == (False, True)


@pytest.mark.parametrize(
    "text",
    [
        "", "a = 1 AND", "a = 1 AND 5", "a XOR b", "(a) = 1", "a)", "(a", "TRUE", "a OR TRUE",
        "d BETWEEN DATE '2024-01-01' AND TIMESTAMP '2024-01-01 10:00:00'", "d = DATE '2024-13-01'",
        "a = 1 AND 5 AND b = 2", "a = 'x' AND 'y' AND b = 2", "IN = 1", "a BETWEEN5 AND 6",
        "aIN (1)", "ctx.x = 1", "a = b", "a = 1 -- x", "a = 'a\\n'", "é = 1",
        "a BETWEEN 5 AND b = 2", "a = 0.10000000000000000001", "a IN ()", "a = NULL", "a = '\0'",
    ],
)  # fmt: skip
def test_other_texts_are_left_to_the_parser(text: str) -> None:
    assert check(text) == (False, False)


def test_a_name_in_back_ticks_does_not_allow_the_reserved_word() -> None:
    batch, rows, refused = parse_texts(["`IN` = 1", "IN = 1", "`IN` = 2 AND a = 1"])
    assert rows == [0, 2]
    assert list(refused) == [1]
    assert list(batch.names) == ["IN", "a"]


def test_what_is_kept_is_forgotten_when_it_becomes_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_texts, "MOST_KEPT", 3)
    for i in range(20):
        assert all(check(f"kept_{i} = {7_000_001 + i} AND kept_{i} LIKE 'kept{i}%'"))
    assert len(quick_texts._names) <= 3
    assert len(quick_texts._verbs["="]) <= 3


@pytest.mark.parametrize("most", [1, 40, bulk_texts.MOST_SLICES])
def test_texts_together_give_the_rows_of_the_parser(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(bulk_texts, "MOST_SLICES", most)
    rng = random.Random(5)
    for _ in range(20):
        texts = [rng.choice((text_of, tree_of))(rng) for _ in range(rng.randrange(60))]
        batch, expected = LeafBatch(), LeafBatch()
        is_taken = bulk_texts.write_texts(batch, texts)
        assert is_taken.tolist() == [written(text) for text in texts]
        for i in np.flatnonzero(is_taken):
            expected.add(parse(texts[i]))
        assert columns(batch) == columns(expected)
        read, rows, refused = parse_texts(texts)
        in_order = LeafBatch()
        for i in rows:
            in_order.add(parse(texts[i]))
        assert sorted([*rows, *refused]) == list(range(len(texts)))
        assert rows == sorted(rows)
        by_code, codes = list(read.names), list(in_order.names)
        assert [by_code[i] for i in read.attr] == [codes[i] for i in in_order.attr]
        for name in COLUMNS[2:]:
            assert list(getattr(read, name)) == list(getattr(in_order, name)), name


def test_a_pattern_that_is_left_may_come_twice() -> None:
    texts = ["a LIKE '%'", "a = 1", "b LIKE '%' AND c = '%'", "c = '%'", "d LIKE 'x%%'"]
    batch = LeafBatch()
    assert bulk_texts.write_texts(batch, texts).tolist() == [False, True, False, False, False]
    assert columns(batch) == columns(slowly("a = 1") or LeafBatch())


def test_a_bulk_of_texts_matches_as_texts_added_one_by_one() -> None:
    rng = random.Random(11)
    texts = [rng.choice((text_of, tree_of))(rng) for _ in range(300)]
    one, many = mw.Matcher(), mw.Matcher()
    refused = {each.row for each in many.add_many(enumerate(texts), processes=1).errors}
    for i, text in enumerate(texts):
        try:
            one.add(i, text)
        except MatchwoodError:
            assert i in refused
        else:
            assert i not in refused
    events = [{"a": 5, "price": 0, "b_1": "x", "user": {"age": 12.5}}, {"a": "x"}, {}]
    assert many.match_many(events).to_pylist() == one.match_many(events).to_pylist()
