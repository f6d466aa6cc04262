"""Verdict rules on invented numbers: each rule holds, holds partly, fails, or has no numbers."""

from __future__ import annotations

from typing import Any

import pytest

from matchwood.bench.papers.claims import (
    FAILS,
    HOLDS,
    NOT,
    PART,
    PARTLY,
    REPRODUCED,
    UNMEASURED,
    Claim,
    Curves,
    Finding,
    judge,
    verdict,
)
from matchwood.errors import MatchwoodError

XS = [1, 10, 100]


def curves(higher: bool = False, xs: list[Any] = XS, **values: list[float | None]) -> Curves:
    refused = {who: [value is None for value in found] for who, found in values.items()}
    return Curves(xs, values, refused, list(values), higher)


def score(rule: str, who: Any, found: Curves, **more: Any) -> float | None:
    claim = Claim.read("test", {"rule": rule, "who": who, "says": "so", **more})
    return judge(claim, found).score


def test_a_winner_by_half_of_the_claimed_gain_holds() -> None:
    found = curves(a=[1.0, 1.0, 1.0], b=[3.0, 3.0, 3.0], c=[9.0, 9.0, 9.0])
    assert score("faster", "a", found, factor=5.0) == HOLDS
    assert score("faster", "a", found, factor=10.0) == PARTLY
    assert score("faster", "b", found, factor=1.0) == FAILS
    assert score("faster", "b", found, than=["c"], factor=3.0) == HOLDS
    near = curves(a=[1.0, 1.0, 1.0], b=[1.3, 1.3, 1.3])
    assert score("faster", "a", near, factor=2.5) == PARTLY  # 1.75 would be half of the gain
    assert score("faster", "a", near, factor=1.5) == HOLDS


def test_a_winner_at_some_points_holds_partly() -> None:
    found = curves(a=[1.0, 1.0, 4.0], b=[2.0, 2.0, 2.0])
    assert score("faster", "a", found) == PARTLY
    assert score("faster", "a", found, at="first") == HOLDS
    assert score("faster", "a", found, at="last") == FAILS
    assert score("faster", "a", found, at=[10]) == HOLDS
    assert score("faster", "a", found, at="any", factor=2.0) == HOLDS


def test_more_throughput_is_better() -> None:
    found = curves(higher=True, a=[9.0, 9.0, 9.0], b=[3.0, 3.0, 3.0])
    assert score("faster", "a", found, factor=3.0) == HOLDS
    assert score("faster", "b", found) == FAILS


def test_methods_of_the_same_index_are_no_rivals() -> None:
    found = curves(a=[2.0], a_ours=[1.0], b=[4.0], xs=[1])._replace(
        families={"a": "i", "a_ours": "i", "b": "j"}
    )
    assert score("faster", "a", found, factor=2.0) == HOLDS


def test_a_refused_rival_is_not_compared_and_a_refused_winner_is_not_measured() -> None:
    found = curves(a=[1.0, 1.0, 1.0], b=[2.0, None, None], c=[None, None, None])
    assert score("faster", "a", found, factor=2.0) == HOLDS
    assert score("faster", "c", found) is None


def test_orders_count_pairs() -> None:
    found = curves(a=[1.0] * 3, b=[2.0] * 3, c=[3.0] * 3)
    assert score("order", ["a", "b", "c"], found) == HOLDS
    assert score("order", ["b", "a", "c"], found) == PARTLY
    assert score("order", ["c", "b", "a"], found) == FAILS


def test_growth_is_flat_rising_falling_or_linear() -> None:
    found = curves(flat=[1.0, 1.2, 1.1], up=[1.0, 10.0, 100.0], down=[100.0, 10.0, 1.0])
    assert score("flat", "flat", found) == HOLDS
    assert score("flat", "up", found) == FAILS
    assert score("rises", "up", found, factor=100.0) == HOLDS
    assert score("rises", ["up", "flat"], found, factor=10.0) == PARTLY
    assert score("rises", "down", found) == FAILS
    assert score("falls", "down", found, factor=50.0) == HOLDS
    assert score("linear", "up", found) == HOLDS
    assert score("linear", "flat", found) == FAILS
    assert score("returns", "flat", found, factor=1.25) == HOLDS
    assert score("returns", "up", found) == FAILS
    assert score("grows_less", "flat", found, than=["up"]) == HOLDS
    assert score("grows_less", "up", found, than=["flat"]) == FAILS
    level = curves(a=[1.0, 2.0, 3.1], b=[1.0, 2.0, 3.0])
    assert score("grows_less", "a", level, than=["b"]) == PARTLY  # within the noise


def test_curves_cross_where_claimed_elsewhere_or_come_nearer() -> None:
    claimed = {"than": ["b"], "at": [1, 10]}
    assert score("cross", "a", curves(a=[1.0, 4.0, 4.0], b=[2.0] * 3), **claimed) == HOLDS
    assert score("cross", "a", curves(a=[1.0, 1.0, 4.0], b=[2.0] * 3), **claimed) == PARTLY
    assert score("cross", "a", curves(a=[1.0, 1.1, 1.5], b=[2.0] * 3), **claimed) == PARTLY
    assert score("cross", "a", curves(a=[4.0, 4.0, 1.0], b=[2.0] * 3), **claimed) == FAILS


def test_the_best_point_may_be_the_neighbour() -> None:
    found = curves(a=[3.0, 1.0, 2.0])
    assert score("best_at", "a", found, at=10) == HOLDS
    assert score("best_at", "a", found, at=100) == PARTLY
    assert score("best_at", "a", curves(a=[1.0, 2.0, 3.0]), at=100) == FAILS
    assert score("best_at", "a", curves(a=[1.0, 1.0, 1.05]), at=100) == HOLDS  # level


def test_refusing_from_a_point_on_is_a_claim() -> None:
    found = curves(a=[1.0, None, None], b=[1.0, 1.0, None], c=[1.0, 1.0, 1.0])
    assert score("refuses", "a", found, at=10) == HOLDS
    assert score("refuses", "b", found, at=10) == PARTLY
    assert score("refuses", "c", found, at=10) == FAILS


def test_similar_and_at_most_have_limits() -> None:
    found = curves(a=[1.0] * 3, b=[1.4] * 3)
    assert score("similar", ["a", "b"], found, factor=1.5) == HOLDS
    assert score("similar", ["a", "b"], found, factor=1.2) == PARTLY
    assert score("at_most", "b", found, factor=1.4) == HOLDS
    assert score("at_most", "b", found, factor=0.5) == FAILS


def test_nothing_measured_has_no_score() -> None:
    empty = curves(a=[None, None, None])
    assert score("faster", "a", empty) is None
    assert score("linear", "a", empty) is None
    assert score("flat", "missing", empty) is None


@pytest.mark.parametrize(
    ("scores", "word"),
    [
        ([], UNMEASURED),
        ([None], UNMEASURED),
        ([HOLDS, HOLDS], REPRODUCED),
        ([HOLDS, None], REPRODUCED),
        ([HOLDS, PARTLY], PART),
        ([HOLDS, FAILS], PART),
        ([PARTLY], PART),
        ([FAILS, FAILS, PARTLY], NOT),
    ],
)
def test_a_verdict_is_one_word_for_all_claims(scores: list[float | None], word: str) -> None:
    assert verdict([Finding(each, "") for each in scores]) == word


def test_an_unknown_rule_is_an_error_when_read() -> None:
    with pytest.raises(MatchwoodError, match="a rule among"):
        Claim.read("here", {"rule": "wins", "who": "a", "says": "so"})
