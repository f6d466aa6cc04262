"""A packed table is unpacked to what it was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.encode.packed_table import packed_array

INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES = st.one_of(
    st.lists(INT64, max_size=30),
    st.lists(INT64, max_size=30).map(sorted),
    st.lists(st.integers(-3, 300), max_size=30),
)


@given(VALUES)
def test_an_array_comes_back(values):
    array = np.array(values, np.int64)
    back = packed_array(array).unpacked()
    assert back.dtype == array.dtype
    assert np.array_equal(back, array)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64])
def test_an_array_comes_back_in_its_type(dtype):
    info = np.iinfo(dtype)
    array = np.array([info.min, info.max, 0, 5, info.max], dtype)
    assert np.array_equal(packed_array(array).unpacked(), array)
    assert packed_array(array).unpacked().dtype == dtype
    assert packed_array(array[:0]).unpacked().dtype == dtype


def test_equal_values_take_no_memory():
    assert packed_array(np.full(1_000, 7, np.int32)).nbytes == 0
    assert packed_array(np.arange(100_000, dtype=np.int64)).nbytes < 1_000
