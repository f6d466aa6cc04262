"""Whoever owns arrays saves, restores, thaws and counts them alike."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from matchwood.kernel.owner import Owner


class Pair(NamedTuple):
    a: np.ndarray
    b: np.ndarray


class Inner(Owner):
    OWNED: ClassVar = {"pair": ""}

    def __init__(self, n: int) -> None:
        self.pair = Pair(np.arange(n), np.arange(n, dtype=np.int8))

    def _to_save(self, name, arrays):
        return arrays._replace(a=arrays.a[:2])

    def _owned(self, name, arrays):
        return arrays._replace(b=np.zeros_like(arrays.b))


class Outer(Owner):
    OWNED: ClassVar = {"inner": "in_", "written": "w_", "fixed": "f_"}
    REPLACED: ClassVar = ("fixed",)

    def __init__(self, n: int) -> None:
        self.inner = Inner(n)
        self.written = Pair(np.ones(n), np.ones(n))
        self.fixed = Pair(np.ones(n), np.ones(n))


def test_what_is_saved_is_taken_with_the_changes_that_its_owner_makes():
    layout = Outer(3).saved("x_")
    assert sorted(layout) == ["x_f_a", "x_f_b", "x_in_a", "x_in_b", "x_w_a", "x_w_b"]
    other = Outer(0)
    other.take(layout, "x_")
    assert other.inner.pair.a.tolist() == [0, 1]
    assert other.inner.pair.b.tolist() == [0, 0, 0]
    assert other.written.a.tolist() == [1, 1, 1]


def test_only_what_is_written_and_cannot_be_is_copied():
    outer = Outer(3)
    for pair in (outer.inner.pair, outer.written, outer.fixed):
        for array in pair:
            array.flags.writeable = False
    fixed, written = outer.fixed.a, outer.written.a
    outer.thaw()
    assert outer.fixed.a is fixed
    assert outer.written.a is not written
    assert outer.inner.pair.a.flags.writeable
    assert outer.written.b.flags.writeable
    thawed = outer.written.a
    outer.thaw()
    assert outer.written.a is thawed


def test_bytes_are_those_of_all_arrays():
    assert Outer(3).nbytes == 3 * (8 + 1) + 4 * 3 * 8
