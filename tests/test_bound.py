"""Bound layouts: a kernel sees the arrays of the tuple that was bound, those that it has now."""

from __future__ import annotations

import weakref
from typing import NamedTuple

import numpy as np
import pytest

from matchwood.kernel.bound import IS_COMPILED, Binding, Layout
from matchwood.kernel.jit import kernel


class Inner(NamedTuple):
    small: np.ndarray
    flags: np.ndarray


class Outer(NamedTuple):
    values: np.ndarray
    inner: Inner
    rows: np.ndarray
    shares: np.ndarray


LAYOUT = Layout(
    Outer,
    values="int32",
    inner=Layout(Inner, small="uint8", flags="bool"),
    rows="int64[2]",
    shares="float64",
)
outer_of = LAYOUT.reader()


@kernel
def total(bound, out):
    x = outer_of(bound)
    out[0] = len(x.values) + 10 * x.rows.shape[0] + 100 * x.rows.shape[1]
    for i in range(len(x.values)):
        out[1] += x.values[i]
    for i in range(len(x.inner.small)):
        if x.inner.flags[i]:
            out[1] += x.inner.small[i]
    for i in range(x.rows.shape[0]):
        for j in range(x.rows.shape[1]):
            out[1] += x.rows[i, j]
    for i in range(len(x.shares)):
        out[1] += np.int64(x.shares[i])


def sample(n: int = 5) -> Outer:
    return Outer(
        np.arange(n, dtype=np.int32),
        Inner(np.array([7, 250], np.uint8), np.array([False, True])),
        np.arange(6).reshape(3, 2),
        np.array([0.5, 2.5]),
    )


def result(bound: object) -> list[int]:
    out = np.zeros(2, np.int64)
    total(bound, out)
    return out.tolist()


def test_a_kernel_sees_the_arrays_that_were_bound():
    assert result(Binding(LAYOUT).of(sample())) == [5 + 30 + 200, 10 + 250 + 15 + 2]


def test_arrays_that_cannot_be_written_are_bound_alike():
    x = sample()
    x.values.flags.writeable = False
    assert result(Binding(LAYOUT).of(x)) == result(Binding(LAYOUT).of(sample()))


def test_empty_arrays_can_be_bound():
    x = sample(0)._replace(rows=np.empty((0, 2), np.int64))
    assert result(Binding(LAYOUT).of(x)) == [200, 250 + 2]


def test_it_is_written_again_when_a_part_is_another_object():
    binding, x = Binding(LAYOUT), sample()
    first = binding.of(x)
    assert binding.of(Outer(*x)) is first or not IS_COMPILED
    x.values[0] = 100  # in place: the same memory
    assert result(binding.of(x))[1] == 100 + 277
    grown = x._replace(values=np.arange(9, dtype=np.int32))
    assert result(binding.of(grown)) == [9 + 230, 36 + 267]


def test_replaced_arrays_are_let_go():
    binding, x = Binding(LAYOUT), sample()
    binding.of(x)
    replaced = weakref.ref(x.values)
    binding.forget(x)
    x = x._replace(values=np.arange(2, dtype=np.int32))
    assert replaced() is not None
    binding.forget(x)
    assert replaced() is None


@pytest.mark.skipif(not IS_COMPILED, reason="without a compiler arrays are passed as they are")
@pytest.mark.parametrize(
    "values", [np.arange(5), np.arange(10, dtype=np.int32)[::2], np.arange(5, dtype=np.uint32)]
)
def test_arrays_of_another_type_are_refused(values):
    with pytest.raises(TypeError, match="int32 in one piece for Outer"):
        Binding(LAYOUT).of(sample()._replace(values=values))


def test_a_layout_names_every_field_in_order():
    with pytest.raises(TypeError, match="expected the fields"):
        Layout(Inner, flags="bool", small="uint8")
