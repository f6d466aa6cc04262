from __future__ import annotations

import numpy as np
import pytest

from matchwood.workload import Draws


def draws(rows: object, seed: int = 1, table: str = "t") -> Draws:
    return Draws(seed, table, np.asarray(rows))


def test_a_row_has_the_same_values_alone_and_among_others() -> None:
    all_rows = draws(np.arange(100)).bits("x", 3)
    some = draws([17, 3, 99]).bits("x", 3)
    assert (some == all_rows[[17, 3, 99]]).all()


@pytest.mark.parametrize("other", [draws([5], seed=2), draws([5], table="u"), draws([6])])
def test_seed_table_and_row_change_the_values(other: Draws) -> None:
    assert (draws([5]).bits("x", 8) != other.bits("x", 8)).all()


def test_columns_differ() -> None:
    assert (draws([5]).bits("x", 8) != draws([5]).bits("y", 8)).all()


def test_a_wider_column_begins_with_the_narrower_one() -> None:
    assert (draws([5]).bits("x", 8)[:, :2] == draws([5]).bits("x", 2)).all()


EXPECTED = [16484470759088067985, 891954077187712614, 16103720139284646290]


def test_values_never_change() -> None:
    # Result files carry hashes of answers: another generator would make all of them strangers.
    assert draws([0, 1, 2]).bits("x")[:, 0].tolist() == EXPECTED


def test_units_are_even() -> None:
    units = draws(np.arange(50_000)).unit("x", 2)
    assert units.min() >= 0
    assert units.max() < 1
    counts = np.histogram(units, bins=20, range=(0, 1))[0]
    assert np.abs(counts - 5_000).max() < 5 * np.sqrt(5_000)
    assert abs(np.corrcoef(units[:, 0], units[:, 1])[0, 1]) < 0.02
    assert abs(np.corrcoef(units[:-1, 0], units[1:, 0])[0, 1]) < 0.02


def test_below_takes_a_bound_per_value() -> None:
    bounds = np.array([[1, 7], [3, 1]])
    values = draws([0, 1]).below("x", bounds, 2)
    assert ((values >= 0) & (values < bounds)).all()


def test_distinct_gives_every_subset_equally_often() -> None:
    found = draws(np.arange(20_000)).distinct("x", 5, np.full(20_000, 2))
    subsets, counts = np.unique(np.sort(found, axis=1), axis=0, return_counts=True)
    assert len(subsets) == 10
    assert np.abs(counts - 2_000).max() < 5 * np.sqrt(2_000)


def test_distinct_gives_each_row_its_own_number() -> None:
    count = np.array([0, 1, 4, 2])
    found = draws(np.arange(4)).distinct("x", 4, count)
    assert ((found >= 0).sum(axis=1) == count).all()
    assert sorted(found[2].tolist()) == [0, 1, 2, 3]
