"""Kinds of many rows at a time are those that a look at each row finds."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from matchwood.encode import resolve, row_kinds
from matchwood.encode.attributes import Attributes
from matchwood.encode.exact import EXACT
from matchwood.encode.kinds import of_kind
from matchwood.encode.leaves import ABSENT, OF_STRING, OPERATOR, LeafBatch
from matchwood.encode.merge_kernels import BETWEEN, EQ, IN, PRESENT
from matchwood.encode.resolve import _kind_of_row, _sorted_by_name
from matchwood.encode.row_kinds import WORTH_IT, plain_kinds
from matchwood.encode.schema import Schema
from matchwood.errors import SchemaError

VALUES: list[Any] = [1, 2.5, "x", True, Decimal("0.1"), np.int64(3), np.float64(2.5), "2024-01-01"]


def test_plain_rows_have_the_kind_that_a_look_at_each_finds() -> None:
    rng = random.Random(2)
    for _ in range(50):
        batch = LeafBatch()
        for _ in range(rng.randrange(WORTH_IT, 2 * WORTH_IT)):
            op, n = rng.choice([(EQ, 1), (BETWEEN, 2), (IN, 3), (PRESENT, 0), (EQ | OF_STRING, 1)])
            one = rng.choice(VALUES)
            values = tuple(one if rng.random() < 0.8 else rng.choice(VALUES) for _ in range(n))
            batch.write_row("a", op, values)
        for row, kind in enumerate(plain_kinds(batch)):
            try:
                expected = _kind_of_row(batch, row, ["a"], False)
            except SchemaError:
                expected = None
            if kind and not batch.op[row] & OF_STRING:
                assert kind == expected
            if not kind and batch.op[row] & OPERATOR == EQ and not batch.op[row] & OF_STRING:
                assert type(batch.values[batch.start[row]]) not in (int, float, Decimal, str, bool)


def test_rows_looked_at_one_by_one_have_the_kinds_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, batch = random.Random(3), LeafBatch()
    for _ in range(900):
        op, n = rng.choice([(EQ, 1), (BETWEEN, 2), (IN, 3), (PRESENT, 0), (EQ | OF_STRING, 1)])
        one = rng.choice(VALUES)
        values = tuple(one if rng.random() < 0.8 else rng.choice(VALUES) for _ in range(n))
        batch.write_row(rng.choice("abc"), op, values)
    found, groups = plain_kinds(batch), list(_sorted_by_name(batch))
    for module in (row_kinds, resolve):
        monkeypatch.setattr(module, "FEW", 0)
    assert plain_kinds(batch) == found
    assert sorted(set(found)) == ["", "bool", "number", "string"]
    for mine, same in zip(groups, _sorted_by_name(batch), strict=True):
        assert mine.name == same.name
        assert list(mine.rows) == list(same.rows)
        assert list(mine.at) == list(same.at)
        assert mine.values == same.values


@pytest.mark.parametrize("are_numbers", [False, True])
def test_many_rows_move_to_the_attributes_that_each_would(
    are_numbers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, batch = random.Random(4), LeafBatch()
    names = ["a", of_kind("b", "string"), "c", "d", "c" + EXACT, of_kind("d", "number")]
    for _ in range(900):
        op, n = rng.choice([(EQ, 1), (BETWEEN, 2), (IN, 3), (PRESENT, 0), (ABSENT, 0)])
        one = rng.choice([1, 2.5] if are_numbers else [*VALUES, date(2024, 1, 1)])
        batch.write_row(rng.choice(names), op, (one,) * n)
    if are_numbers:
        batch.values = np.array(batch.values, np.float64)
    for schema in ({}, {"d": "number", "b": "string"}):
        attributes = Attributes(Schema(schema))
        one_by_one = resolve.by_kind(batch, attributes)
        with monkeypatch.context() as patched:
            patched.setattr(resolve, "FEW", 0)
            many = resolve.by_kind(batch, attributes)
        assert list(many.names.items()) == list(one_by_one.names.items())
        assert list(many.attr) == list(one_by_one.attr)
        assert len(many.names) > len(names), "some rows have moved"


@pytest.mark.parametrize("values", [(5, "7"), ("7", 5), (True, False, 1), ("a", date(2024, 1, 1))])
def test_the_last_constants_of_a_batch_are_looked_at_too(
    values: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_kinds, "FEW", 0)
    batch = LeafBatch()
    for _ in range(WORTH_IT):
        batch.write_row("a", EQ, (1,))
    batch.write_row("a", IN, values)
    batch.write_row("a", PRESENT, ())
    assert plain_kinds(batch)[-2:] == ["", ""]
    monkeypatch.setattr(resolve, "FEW", 0)
    with pytest.raises(SchemaError, match="expected constants of one kind"):
        resolve.by_kind(batch, Attributes())


def test_few_rows_are_looked_at_one_by_one() -> None:
    batch = LeafBatch()
    batch.write_row("a", EQ, (1,))
    assert plain_kinds(batch) == [""]
