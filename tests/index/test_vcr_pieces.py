"""VCR's geometry: the paper's figures, decompositions, the covering set."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.vcr_checks import decomposed
from matchwood.index.vcr.change import INNER, RIGHT
from matchwood.index.vcr.decompose import n_vcrs, vcr_id
from matchwood.index.vcr.plan import covering

K = st.integers(0, 4)


# ── the paper's examples ────────────────────────────────────────────────────────────────────────


def test_nine_vcrs_stand_at_the_first_point_in_figure_1() -> None:
    ids = [vcr_id(0, 0, i, j, 10, 2, 2) for j in range(3) for i in range(3)]
    assert ids == list(range(9))
    assert vcr_id(1, 0, 0, 0, 10, 2, 2) == 9  # horizontal scanning: the next point's first
    assert vcr_id(0, 1, 0, 0, 10, 2, 2) == 90


@given(kx=K, ky=K)
def test_equation_1_numbers_all_vcrs_without_gaps(kx: int, ky: int) -> None:
    range_x, range_y = 5, 3
    corners = product(range(range_y), range(range_x))
    ids = [
        vcr_id(x, y, i, j, range_x, kx, ky)
        for y, x in corners
        for j in range(ky + 1)
        for i in range(kx + 1)
    ]
    assert ids == list(range((kx + 1) * (ky + 1) * range_x * range_y))


def test_simple_decomposition_of_figure_3() -> None:
    assert decomposed((3, 3, 11, 6), 2, 2, overlapped=False) == [
        (3, 3, 4, 4), (7, 3, 4, 4), (11, 3, 2, 4), (13, 3, 1, 4),
        (3, 7, 4, 2), (7, 7, 4, 2), (11, 7, 2, 2), (13, 7, 1, 2),
    ]  # fmt: skip


def test_overlapped_decomposition_of_figure_4() -> None:
    assert decomposed((3, 3, 11, 6), 2, 2, overlapped=True) == [
        (3, 3, 4, 4), (7, 3, 4, 4), (10, 3, 4, 4),
        (3, 5, 4, 4), (7, 5, 4, 4), (10, 5, 4, 4),
    ]  # fmt: skip


def test_the_overlaps_that_the_paper_counts() -> None:
    assert len(points((3, 3, 4, 4)) & points((7, 3, 4, 4))) == 5
    assert len(points((7, 3, 4, 4)) & points((10, 3, 4, 4))) == 10


@pytest.mark.parametrize(("height", "strip"), [(5, 4), (10, 8)])
def test_a_strip_is_as_high_as_fits(height: int, strip: int) -> None:
    assert decomposed((0, 0, 1, height), 3, 3, overlapped=False)[0][3] == strip


def points(rectangle: tuple[int, int, int, int]) -> set[tuple[int, int]]:
    """All grid points of a closed rectangle."""
    x, y, width, height = rectangle
    return set(product(range(x, x + width + 1), range(y, y + height + 1)))


# ── decompositions ──────────────────────────────────────────────────────────────────────────────

RECTANGLES = st.tuples(
    st.integers(0, 50), st.integers(0, 50), st.integers(1, 40), st.integers(1, 40)
)


@given(rectangle=RECTANGLES, kx=K, ky=K, overlapped=st.booleans())
def test_a_decomposition_covers_its_rectangle_and_nothing_else(
    rectangle: tuple[int, int, int, int], kx: int, ky: int, overlapped: bool
) -> None:
    pieces = decomposed(rectangle, kx, ky, overlapped)
    assert set().union(*map(points, pieces)) == points(rectangle)
    assert len(pieces) == n_vcrs(rectangle[2], rectangle[3], kx, ky, overlapped)
    assert len(set(pieces)) == len(pieces)
    assert max(width for _, _, width, _ in pieces) <= 1 << kx
    assert max(height for *_, height in pieces) <= 1 << ky


@given(rectangle=RECTANGLES, kx=K, ky=K)
def test_simple_pieces_meet_at_their_borders_only(
    rectangle: tuple[int, int, int, int], kx: int, ky: int
) -> None:
    pieces = decomposed(rectangle, kx, ky, overlapped=False)
    assert sum(width * height for *_, width, height in pieces) == rectangle[2] * rectangle[3]


@given(rectangle=RECTANGLES, kx=K, ky=K)
def test_overlapped_pieces_are_of_one_size_and_no_more_than_simple_ones(
    rectangle: tuple[int, int, int, int], kx: int, ky: int
) -> None:
    pieces = decomposed(rectangle, kx, ky, overlapped=True)
    assert len({(width, height) for *_, width, height in pieces}) == 1
    assert len(pieces) <= len(decomposed(rectangle, kx, ky, overlapped=False))


# ── the covering set ────────────────────────────────────────────────────────────────────────────


def cov(a: int, b: int, kx: int, ky: int, range_x: int) -> list[int]:
    """Equation 2, word by word: the numbers of the VCRs that cover a point, ascending."""
    lx, ly = 1 << kx, 1 << ky
    found = [
        vcr_id(x, y, i, j, range_x, kx, ky)
        for x in range(a - lx, a + 1)
        for y in range(b - ly, b + 1)
        for i in range(kx + 1)
        for j in range(ky + 1)
        if a <= x + (1 << i) <= a + lx and b <= y + (1 << j) <= b + ly
    ]
    return sorted(found)


def test_the_covering_set_of_figure_5() -> None:
    # L = 4: ten VCRs of one height at one y; 2 + 1 * 2 + 2 * 3 by the appendix
    _, step_x, step_y, edge = covering(2, 2, 100)
    assert np.bincount(step_x[(step_y == 0)]).tolist() == [1, 1, 2, 3, 3]
    assert len(step_x) == 10 * 10
    assert (edge == INNER).sum() == 4 * 4  # 1 x of a side of 2, 3 of a side of 4; as many y
    assert (edge & RIGHT > 0).sum() == 3 * 10  # one corner for each width


@given(kx=K, ky=K, a=st.integers(16, 80), b=st.integers(16, 80), range_x=st.integers(97, 120))
def test_constant_size_and_identical_gaps(kx: int, ky: int, a: int, b: int, range_x: int) -> None:
    lx, ly = 1 << kx, 1 << ky
    expected = cov(a, b, kx, ky, range_x)
    assert len(expected) == (2 * lx + kx) * (2 * ly + ky)
    pivot = vcr_id(a - lx, b - ly, 0, 0, range_x, kx, ky)
    distance = covering(kx, ky, range_x).distance
    assert (pivot + distance).tolist() == expected
    assert np.diff(distance).tolist() == np.diff(cov(40, 40, kx, ky, range_x)).tolist()
