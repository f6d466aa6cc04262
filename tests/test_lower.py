"""The code of kernels means what Python means, though it is not the code that Numba would write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from matchwood.kernel.bound import IS_COMPILED
from matchwood.kernel.jit import kernel, part  # by name: kept code follows lower.py

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="about compiled code")

KINDS = ("int8", "uint8", "int32", "int64", "uint64", "float32", "float64", "bool")


@kernel
def moved(values, out, at):
    """Elements by variables, constants, small and unsigned numbers."""
    out[0] = values[at]
    out[1] = values[len(values) - 1]
    out[2] = values[np.uint64(1)]
    out[np.int8(3)] = values[0]
    out[np.uint8(4)] = values[at - 1]
    return values[at] == out[0]


@pytest.mark.parametrize("kind", KINDS)
def test_elements_are_counted_from_0_for_every_type(kind):
    values = (np.arange(7) % 2 == 0) if kind == "bool" else np.arange(60, 67).astype(kind)
    for at in (1, 3, 6):
        out, expected = np.zeros(6, kind), np.zeros(6, kind)
        moved(values, out, at)
        moved.py_func(values, expected, at)
        assert out.tolist() == expected.tolist()


def test_an_index_from_the_end_is_refused():
    @kernel
    def last(values):
        return values[-1]

    @kernel
    def mark(grid):
        grid[0, -2] = 1

    with pytest.raises(Exception, match="expected an index from 0 on, found -1"):
        last(np.arange(5))
    with pytest.raises(Exception, match="expected an index from 0 on, found -2"):
        mark(np.zeros((2, 3)))


@kernel
def turned(grid, out):
    """Elements of two dimensions by numbers of several types, and by constants."""
    for i in range(grid.shape[0]):
        for j in range(grid.shape[1]):
            out[j, np.uint8(i)] = grid[np.int32(i), j]
    out[0, 1] += grid[1, 0] * 10
    return out[0, 1]


def test_elements_of_two_dimensions_are_where_python_has_them():
    grid = np.arange(12, dtype=np.int32).reshape(3, 4)
    for given in (grid, grid[:2], grid[:, 1:], grid.T, grid.astype(np.float64)):
        out, expected = np.zeros(given.shape[::-1]), np.zeros(given.shape[::-1])
        assert turned(given, out) == turned.py_func(given, expected)
        assert out.tolist() == expected.tolist()


def test_a_value_is_converted_to_the_type_of_the_array():
    @kernel
    def fill(small, flags, reals, value):
        small[0] = value
        flags[0] = value
        reals[0] = value
        reals[1] = value == 3

    small, flags, reals = np.zeros(1, np.int8), np.zeros(1, bool), np.zeros(2, np.float32)
    fill(small, flags, reals, np.int64(259))
    assert (small[0], flags[0], reals.tolist()) == (3, True, [259, 0])


@part
def digits(a, b, c):
    return a * 100 + b * 10 + c


@kernel
def spread(pair, c):
    return digits(*pair, c)


def test_a_call_with_unpacked_arguments_is_rewritten_as_numba_does():
    assert spread((1, 2), 3) == 123


class Inner(NamedTuple):
    grid: np.ndarray
    gaps: np.ndarray


class Outer(NamedTuple):
    words: np.ndarray
    inner: Inner
    bytes: np.ndarray


@part
def described(outer, box):
    grid, gaps = outer.inner.grid, outer.inner.gaps
    total = np.int64(0)
    for i in range(grid.shape[0]):
        for j in range(grid.shape[1]):
            total += grid[i, j] * (i + 1) * (j + 2)
        total += grid[i][1]
    for i in range(len(gaps)):
        total += gaps[i] * (i + 3)
    sizes = grid.size + 10 * grid.strides[0] + 100 * grid.strides[1] + 1000 * grid.itemsize
    sizes += outer.bytes.strides[0] + 7 * outer.bytes.itemsize + box.strides[0] + box.size
    return total + outer.words[len(outer.words) - 1] + outer.bytes[0] + box[1, 1, 1], sizes


@part
def through(outer, box):
    return described(outer, box)


@kernel
def described_all(outer, box):
    return through(outer, box)


def test_arrays_of_all_shapes_reach_parts_of_parts_as_they_are():
    grid = np.arange(12).reshape(3, 4)
    gaps = np.arange(20)[::3]
    outer = Outer(np.arange(5), Inner(grid, gaps), np.frombuffer(b"\x09\x08", np.uint8))
    box = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    assert described_all(outer, box) == described.py_func(outer, box)
    flat = Outer(np.arange(5), Inner(grid[:, ::2], gaps), outer.bytes)
    assert described_all(flat, box) == described.py_func(flat, box)
    thin = Outer(np.arange(5), Inner(grid[:1], gaps[:0]), outer.bytes)
    assert described_all(thin, box) == described.py_func(thin, box)


class Mixed(NamedTuple):
    count: int
    pair: tuple[np.ndarray, np.ndarray]
    share: float
    is_open: bool
    name: np.ndarray


@kernel
def summed(mixed, scalar, out):
    one, other = mixed.pair
    for i in range(len(one)):
        out[0] += one[i] * (i + 1)
    for i in range(len(other)):
        out[0] += other[i] * (i + 1)
    out[1] = mixed.count * 10 + mixed.is_open
    return len(one), len(other), mixed.share + scalar[()], mixed.name[len(mixed.name) - 1]


def test_arguments_of_python_reach_a_kernel_whatever_holds_them(tmp_path):
    """Arrays that are mapped, cannot be written, are empty or have no dimension, in tuples."""
    path = tmp_path / "numbers"
    np.arange(5).tofile(path)
    mapped = np.memmap(path, np.int64, "r")
    plain = np.arange(7)[2:]
    fixed = np.arange(3)
    fixed.flags.writeable = False
    for pair in ((mapped, mapped[1:]), (plain, plain[:0]), (fixed, fixed), (fixed, plain)):
        mixed = Mixed(-4, pair, 0.5, True, np.frombuffer(b"abc", np.uint8))
        out, expected = np.zeros(2, np.int64), np.zeros(2, np.int64)
        scalar = np.array(1.25)
        assert summed(mixed, scalar, out) == summed.py_func(mixed, scalar, expected)
        assert out.tolist() == expected.tolist()


def test_slices_and_rows_are_passed_with_their_own_lengths():
    @part
    def total(values):
        found = np.int64(0)
        for i in range(len(values)):
            found += values[i] * (i + 1)
        return found + values[len(values) - 1]

    @kernel
    def totals(values, grid):
        return total(values[2:5]), total(grid[1]), total(values[-2:])

    values, grid = np.arange(8), np.arange(12).reshape(3, 4)
    assert totals(values, grid) == (2 + 6 + 12 + 4, 4 + 10 + 18 + 28 + 7, 6 + 14 + 7)


@kernel
def wandering(values, n):
    """Variables that are assigned once, in loops, in one of two branches, and again."""
    length = len(values)
    total = np.int64(0)
    last = np.int64(-1)
    for i in range(n):
        doubled = values[i % length] * 2
        if doubled > 8:
            step = doubled - last
            if i % 3 == 0:
                continue
        elif i == 7:
            break
        else:
            step = np.int64(1)
            while step < doubled:
                grown = step + step
                step = grown + (i & 1)
        last = doubled
        total += step + last
    return total, last, length


def test_variables_have_the_values_that_python_gives_them():
    for n in range(12):
        values = np.array([3, 1, 9, 4, 0])
        assert wandering(values, n) == wandering.py_func(values, n)


def test_a_function_that_calls_itself_passes_arrays():
    @kernel
    def depth(left, at):
        if at < 0:
            return np.int64(0)
        return depth(left, left[at]) + 1

    assert depth(np.array([-1, 0, 1, 1, 3]), 4) == 4


@pytest.mark.slow
def test_functions_of_numba_that_take_arrays_are_refused():
    @kernel
    def total(values):
        return np.searchsorted(values, 2.0)

    with pytest.raises(Exception, match="write a part"):
        total(np.arange(5.0))
