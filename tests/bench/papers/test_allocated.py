"""Measured memory of a contender: what it allocated, also in pages that were free before."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood.bench.papers.index_rows import allocated


def test_memory_that_is_taken_again_is_counted() -> None:
    if not allocated():
        pytest.skip("the C library does not say what is allocated")
    once = np.ones(4_000_000)
    del once  # its pages may stay with the process
    before = allocated()
    many = [np.ones(1_000) for _ in range(1_000)]
    assert 8_000_000 <= allocated() - before < 9_000_000
    assert len(many) == 1_000
    del many
    assert allocated() - before < 1_000_000
