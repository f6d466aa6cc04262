"""Chains: a kernel that calls others by their addresses gives them the arguments that it means."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood.kernel.bound import IS_COMPILED
from matchwood.kernel.chains import (
    FAILED,
    call_with_one,
    call_with_two,
    call_without,
    is_usable,
    native_address,
)
from matchwood.kernel.jit import kernel
from matchwood.kernel.store import IS_CHECKED

pytestmark = pytest.mark.skipif(
    not IS_COMPILED or IS_CHECKED, reason="without a compiler, or with checks, nothing is chained"
)


@kernel
def bare(bound, mine, query, first, stamp):
    return bound[0] + 10 * mine[0] + 100 * query[0] + 1_000 * first + 10_000 * stamp


@kernel
def with_two(bound, mine, one, two, query, first, stamp):
    mine[0] += 1
    return bare(bound, mine, query, first, stamp) + 100_000 * one + 1_000_000 * two


@kernel
def raising(bound, mine, one, query, first, stamp):
    return bound[0] // one


@kernel
def call(address, n_settings, bound, mine, query):
    settings = (np.int64(7), np.int64(-2))
    if n_settings == 0:
        return call_without(address, settings, bound, mine, query, np.int64(5))
    if n_settings == 1:
        return call_with_one(address, (np.int64(0), np.int64(0)), bound, mine, query, np.int64(5))
    return call_with_two(address, settings, bound, mine, query, np.int64(5))


def test_arguments_arrive() -> None:
    bound, mine, query = (np.array([n]) for n in (1, 2, 3))
    words = [each.ctypes.data for each in (bound, mine, query)]
    address = native_address(bare, (bound, mine, query, 0, 5))
    assert call(address, 0, *words) == bare(bound, mine, query, 0, 5) == 50_321
    address = native_address(with_two, (bound, mine, 7, -2, query, 0, 5))
    assert call(address, 2, *words) == 50_331 + 700_000 - 2_000_000
    assert mine[0] == 3
    assert is_usable()


def test_what_raises_has_failed() -> None:
    bound, mine, query = (np.array([n]) for n in (1, 2, 3))
    words = [each.ctypes.data for each in (bound, mine, query)]
    address = native_address(raising, (bound, mine, 1, query, 0, 5))
    assert call(address, 1, *words) == FAILED
