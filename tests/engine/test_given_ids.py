"""Ids of a class of their own are their plain value, and paths are paths."""

from __future__ import annotations

from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchwood as mw


class Genre(str, Enum):  # noqa: UP042 - StrEnum is a class of its own
    CRIME = "crime"
    ART = "art"


class Number(IntEnum):
    ONE = 1
    TWO = 2


GIVEN = [
    (Genre.CRIME, "crime", Genre.ART),
    (np.str_("crime"), "crime", np.str_("art")),
    (Number.ONE, 1, Number.TWO),
    (np.int32(1), 1, np.int32(2)),
]


@pytest.mark.parametrize(("given", "plain", "other"), GIVEN)
@pytest.mark.parametrize("index", ["auto", "be_tree"])
def test_an_id_of_a_subclass_is_its_plain_value(
    given: Any, plain: Any, other: Any, index: str
) -> None:
    m = mw.Matcher(index=index)
    m.add(given, "a = 1")
    m.add_many([(other, "a = 1"), {"id": given, "expr": "a = 2"}])  # the second is taken
    assert [type(each) for each in m.ids()] == [type(plain)] * 2
    assert [type(each) for each in m.match({"a": 1})] == [type(plain)] * 2
    assert given in m
    assert plain in m
    assert m[given].id == m[plain].id == plain
    assert m.explain(given, {"a": 1}).matches
    assert m.why_not(given, {"a": 1}) == []
    assert m.subsumes(given, other) is True
    m.replace(given, "a = 3")
    assert m.replace_many([(given, "a = 4")]).count == 1
    assert m[plain].text == "a = 4"
    with m.batch() as b:
        b.remove(given)
        b.add(given, "a = 5", context=given)
    assert m.context_ids() == [plain]
    assert type(m.context_ids()[0]) is type(plain)
    m.remove(given)
    assert m.remove_many([other, given]).count == 1
    assert len(m) == 0


@pytest.mark.parametrize("n_others", [0, 3000])
def test_an_id_of_a_subclass_is_taken_in_a_segment_as_well(n_others: int) -> None:
    m = mw.Matcher()
    m.add_many([("crime", "a = 1"), *((n, "a = 2") for n in range(n_others))])
    found = m.add_many([(Genre.CRIME, "a = 3"), ("new", "a = 3")])
    assert found.count == 1
    assert "taken" in str(found.errors[0].error)
    with pytest.raises(mw.SubscriptionError, match="taken"):
        m.add(Genre.CRIME, "a = 3")


@pytest.mark.parametrize("given", [None, 7, b"books"])
def test_what_is_no_path_is_refused_with_a_sentence(given: Any, tmp_path: Path) -> None:
    m = mw.Matcher()
    for call in (m.save, mw.Matcher.load, mw.Matcher.open):
        with pytest.raises(mw.StorageError, match=r"expected a path, a str or an os\.PathLike"):
            call(given)


def test_the_warning_of_damaged_segments_is_a_sentence(tmp_path: Path) -> None:
    with mw.Matcher.open(tmp_path / "f", sync=False) as m:
        m.add("cheap", "price < 20")
        m.checkpoint()
    (tmp_path / "f" / "checkpoint.json").write_text("nonsense")
    said = "the segments in 'f' cannot be used and are built again"
    with pytest.warns(RuntimeWarning, match=said), mw.Matcher.open(tmp_path / "f") as m:
        assert m.match({"price": 5}) == ["cheap"]
