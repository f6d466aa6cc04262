"""Arrays that grow keep what they hold and get what was asked for at their end, of any size."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood.kernel import arrays
from matchwood.kernel.arrays import grown


@pytest.mark.parametrize("limit", [0, arrays.COPIED_AT_ONCE])
@pytest.mark.parametrize("fill", [0, -1, 7])
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float64, object])
@pytest.mark.parametrize("shape", [(0,), (5,), (0, 3), (4, 3)])
def test_an_array_grows(
    shape: tuple[int, ...], dtype: type, fill: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "COPIED_AT_ONCE", limit)
    before = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    before.flags.writeable = False
    found = grown(before, 9, fill)
    assert (found.dtype, found.shape) == (before.dtype, (9, *shape[1:]))
    assert found.flags.writeable
    assert found.flags.aligned
    assert found.flags.c_contiguous
    assert (found[: shape[0]] == before).all()
    assert (found[shape[0] :] == fill).all()
    assert grown(found, 9) is found
    assert grown(np.asfortranarray(before), 9, fill).tolist() == found.tolist()
    assert grown(np.zeros(3, bool), 9).dtype == bool
