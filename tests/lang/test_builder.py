"""Trees built in Python, and the law that every tree survives its text."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.errors import ParseError
from matchwood.lang import (
    COMPARISONS,
    And,
    Between,
    Comparison,
    Const,
    Expr,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Xnor,
    Xor,
    as_value,
    attr,
    parse,
    to_text,
)
from matchwood.lang.patterns import starts_with

a, b, c = attr("a"), attr("b"), attr("c")


@pytest.mark.parametrize(
    ("built", "text"),
    [
        ((attr("price") < 20) & (attr("price") >= 3), "price < 20 AND price >= 3"),
        (attr("price") < 20, "price < 20"),
        ((a == "x") | (b != 1) | (c <= 2.5), "a = 'x' OR b <> 1 OR c <= 2.5"),
        (a & b & c, "a AND b AND c"),
        (a | b & ~c, "a OR b AND NOT c"),
        (a ^ b, "a XOR b"),
        (a.xnor(b == 1), "a XNOR b = 1"),
        ((a == 1) & b, "a = 1 AND b"),
        (~a.isin("paperback"), "NOT a IN ('paperback')"),
        (a.isin(["x", "y"]) | a.isin(1, None), "a IN ('x', 'y') OR a IN (1, NULL)"),
        (a.isin(v for v in (1, 2)), "a IN (1, 2)"),
        (a.between(20, 40), "a BETWEEN 20 AND 40"),
        (a.like("x%") & b.startswith("50%_"), r"a LIKE 'x%' AND b LIKE '50\\%\\_%'"),
        (a.is_null() | b.is_not_null(), "a IS NULL OR b IS NOT NULL"),
        (attr("user.full name") == True, "user.`full name`"),  # noqa: E712
        (a == float("nan"), "a = double('NaN')"),
        (a < datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))),
         "a < TIMESTAMP '2026-01-02 01:00:00Z'"),
        (a < datetime(2026, 1, 2), "a < TIMESTAMP '2026-01-02 00:00:00Z'"),
        (a < date(2026, 1, 2), "a < DATE '2026-01-02'"),
    ],
)  # fmt: skip
def test_what_is_built_is_what_the_text_says(built: Expr, text: str) -> None:
    assert str(built) == text
    assert str(parse(text)) == text


class Size(IntEnum):
    BIG = 3


@pytest.mark.parametrize(
    ("given_value", "kept"),
    [
        (np.int32(5), 5),
        (np.float32(0.5), 0.5),
        (np.float64(2.0), 2.0),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.datetime64("2026-01-02T03:04:05.123456789"),
         datetime(2026, 1, 2, 3, 4, 5, 123456, UTC)),
        (np.datetime64("2026-01-02"), date(2026, 1, 2)),
        (Decimal("20.00"), 20),
        (Decimal("19.99"), 19.99),
        (Decimal("Infinity"), float("inf")),
        (2**63, float(2**63)),
        (-(2**63), -(2**63)),
        (Size.BIG, 3),
    ],
)  # fmt: skip
def test_a_value_becomes_a_plain_python_value(given_value: Any, kept: Any) -> None:
    value = as_value(given_value)
    assert value == kept
    assert type(value) is type(kept)


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (None, "is_null"),
        ([1, 2], "isin"),
        (b"x", "decode"),
        (timedelta(1), "convert"),
        (np.array([1, 2]), "isin"),
        (np.datetime64("NaT"), "is_null"),
        (1j, "convert"),
    ],
)
def test_a_value_of_a_wrong_type_says_what_to_write(value: Any, advice: str) -> None:
    with pytest.raises(TypeError, match=advice):
        a == value  # noqa: B015


@pytest.mark.parametrize(
    "build",
    [
        lambda: attr(""),
        lambda: attr("ctx.unread"),
        lambda: attr("a\0b"),
        lambda: attr("\ud800"),
        lambda: a == "\ud800",
        lambda: a == 10**400,
        lambda: a == Decimal("1e500000000"),
        lambda: a == Decimal("1.00000000000000000000001"),
        lambda: a.isin(),
        lambda: a.isin([]),
        lambda: a.like("a\\b"),
    ],
)
def test_what_the_language_cannot_hold_is_a_parse_error(build: Any) -> None:
    with pytest.raises(ParseError):
        build()


@pytest.mark.parametrize(
    "build",
    [
        lambda: attr(5),
        lambda: a.like(5),
        lambda: a.startswith(None),
        lambda: bool(a),
        lambda: 1 < a < 3,  # type: ignore[operator]
        lambda: a & 5,  # type: ignore[operator]
        lambda: (a == 1) | "b",  # type: ignore[operator]
        lambda: hash(a),
    ],
)
def test_misuse_is_a_type_error(build: Any) -> None:
    with pytest.raises(TypeError):
        build()


def test_not_a_number_is_equal_to_itself_in_trees() -> None:
    assert (a == float("nan")) == parse("a = double('NaN')")
    assert (a == Decimal("NaN")) == (a == np.float64("nan"))


def test_nodes_are_frozen() -> None:
    for node in (a == 1, a.isin(1), a.between(1, 2), a & b):
        with pytest.raises((FrozenInstanceError, TypeError)):
            node.position = 3  # type: ignore[attr-defined]


text = st.text(max_size=8)
values = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    text,
    st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(fold=0)),
    st.dates(),
)
names = st.one_of(
    st.sampled_from(
        ["a", "b.c", "and", "a.in", "date", "double", "r", "x y", "ctx", "`", "a..b", "é"]
    ),
    st.text(min_size=1, max_size=6).filter(lambda s: "\0" not in s and not s.startswith("ctx.")),
)
patterns = st.lists(
    st.one_of(st.sampled_from(["%", "_"]), text.map(lambda s: starts_with(s)[:-1])), max_size=4
).map("".join)
lists = st.lists(st.none() | values, min_size=1, max_size=4)
leaves = st.one_of(
    st.builds(Comparison, names, st.sampled_from(COMPARISONS), values),
    st.builds(Between, names, values, values, st.booleans()),
    st.builds(In, names, lists.map(tuple), st.booleans()),
    st.builds(Like, names, patterns, st.booleans()),
    st.builds(IsNull, names, st.booleans()),
    st.builds(Const, st.sampled_from([True, False, None])),
)  # fmt: skip
trees = st.recursive(
    leaves,
    lambda node: st.one_of(
        st.lists(node, min_size=1, max_size=4).map(lambda nodes: And(tuple(nodes))),
        st.lists(node, min_size=1, max_size=4).map(lambda nodes: Or(tuple(nodes))),
        st.builds(Xor, node, node),
        st.builds(Xnor, node, node),
        st.builds(Not, node),
    ),
    max_leaves=12,
)


def flat(node: Expr) -> Expr:
    """Chains of one connective as one node, and a chain of one as its operand."""
    if isinstance(node, (And, Or)):
        kind = type(node)
        operands: list[Expr] = []
        for operand in map(flat, node.operands):
            operands.extend(operand.operands if isinstance(operand, kind) else [operand])
        return operands[0] if len(operands) == 1 else kind(tuple(operands))
    if isinstance(node, (Xor, Xnor)):
        return type(node)(flat(node.left), flat(node.right))
    return Not(flat(node.operand)) if isinstance(node, Not) else node


@pytest.mark.slow
@given(trees)
def test_every_tree_survives_its_text_with_the_types_of_its_values(tree: Expr) -> None:
    printed = to_text(tree)
    back = parse(printed)
    assert back == flat(tree)
    assert repr(back) == repr(flat(tree))  # 1, 1.0 and TRUE are equal, but not alike
    assert to_text(back) == printed
