from __future__ import annotations

import math

import numpy as np
import pytest

from matchwood.errors import MatchwoodError
from matchwood.workload import Skew2D, find_workload, load_subscriptions

N = 40_000


def rectangles(workload: Skew2D, n: int = N) -> np.ndarray:
    """[n, 4]: left, right, bottom, top."""
    table = workload.subscriptions(0, n)
    assert table.column("attribute").to_pylist()[:2] == ["x", "y"]
    return table.column("values").combine_chunks().flatten().to_numpy().reshape(n, 4)


def points(workload: Skew2D, n: int = N) -> np.ndarray:
    return workload.events(0, n).column("value").to_numpy().reshape(n, 2)


def share_in_region(workload: Skew2D, places: np.ndarray) -> float:
    left, bottom, width, height = workload.region
    x, y = places[:, 0], places[:, 1]
    inside = (left <= x) & (x < left + width) & (bottom <= y) & (y < bottom + height)
    return float(inside.mean())


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("alpha", "beta"), [(0.9, 0.1), (0.9, 0.01), (0.5, 0.3)])
def test_the_region_is_beta_of_the_plane_and_holds_alpha_of_corners_and_points(
    alpha: float, beta: float, whole: bool
) -> None:
    workload = Skew2D(alpha=alpha, beta=beta, whole=whole)
    left, bottom, width, height = workload.region
    assert abs(width * height / 60_000 - beta) < 0.02 * beta
    assert abs(left + width / 2 - 150) <= 1 and abs(bottom + height / 2 - 100) <= 1  # noqa: PT018
    within = 5 * math.sqrt(alpha * (1 - alpha) / N)
    corners = rectangles(workload)[:, [0, 2]]
    assert abs(share_in_region(workload, corners) - alpha) < within
    assert abs(share_in_region(workload, points(workload)) - alpha) < within


def test_places_are_even_inside_and_outside_of_the_region() -> None:
    workload = Skew2D(range_x=9, range_y=7, alpha=0.5, beta=0.2)
    left, bottom, width, height = workload.region
    at = points(workload)
    counts = np.zeros((7, 9))
    np.add.at(counts, (at[:, 1], at[:, 0]), 1)
    hot = np.zeros((7, 9), bool)
    hot[bottom : bottom + height, left : left + width] = True
    for cells in (counts[hot], counts[~hot]):
        assert np.abs(cells - cells.mean()).max() < 5 * math.sqrt(cells.mean())


def test_without_skew_the_region_is_the_plane() -> None:
    workload = find_workload("skew2d:figure-7-uniform")
    assert isinstance(workload, Skew2D)
    assert workload.region == (0, 0, 300, 200)
    at = points(workload)
    assert at.min() == 0
    assert at.max(axis=0).tolist() == [299, 199]


def test_widths_are_even_from_one_and_end_at_the_border() -> None:
    found = rectangles(Skew2D(width_x=8, width_y=4))
    width, height = found[:, 1] - found[:, 0], found[:, 3] - found[:, 2]
    for sizes, most, n_points in ((width, 8, 300), (height, 4, 200)):
        counts = np.bincount(sizes)
        assert (len(counts), counts[0]) == (most + 1, 0)
        border = 5 * math.sqrt(N / most) + N * most / n_points
        assert np.abs(counts[1:] - N / most).max() < border
    assert found[:, 1].max() <= 300
    assert found[:, 3].max() <= 200


def test_real_coordinates_are_real_and_stay_in_the_plane() -> None:
    workload = Skew2D(whole=False)
    assert dict(workload.schema()) == {"x": "float", "y": "float"}
    found, at = rectangles(workload), points(workload)
    assert (found % 1 != 0).mean() > 0.9
    assert (at % 1 != 0).all()
    assert (found[:, 0] <= found[:, 1]).all()
    assert (found[:, 2] <= found[:, 3]).all()
    assert found.min() >= 0
    assert (at >= 0).all()
    assert (at < [300, 200]).all()


def test_the_figures_are_presets() -> None:
    moderate, large = find_workload("skew2d:figure-7"), find_workload("skew2d:figure-9")
    assert isinstance(moderate, Skew2D)
    assert isinstance(large, Skew2D)
    assert moderate.range_x * moderate.range_y == 60_000
    assert large.range_x * large.range_y == 3_000_000
    assert (large.n_subscriptions, large.n_events) == (256_000, 100_000)
    assert [each["n_subscriptions"] for each in Skew2D.sweeps["figure-9"]] == [
        32_000, 64_000, 128_000, 256_000,
    ]  # fmt: skip


def test_all_rectangles_are_conjunctions_of_two_ranges() -> None:
    loaded = load_subscriptions(Skew2D(n_subscriptions=1_000))
    assert len(loaded.slots) == 1_000
    assert set(loaded.table.layout.size[loaded.slots].tolist()) == {2}


@pytest.mark.parametrize("changes", [{"alpha": 1.5}, {"beta": 0}, {"width_x": 0}, {"range_y": 0}])
def test_a_parameter_out_of_range_is_refused(changes: dict[str, float]) -> None:
    with pytest.raises(MatchwoodError, match="workload 'skew2d': expected"):
        find_workload("skew2d", **changes)
