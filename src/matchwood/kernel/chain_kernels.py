"""Two kernels that try whether kernels can be called by their addresses (`chains.is_usable`)."""

from __future__ import annotations

import numpy as np

from matchwood.kernel.chains import call_with_one
from matchwood.kernel.jit import kernel


@kernel
def probed(bound, mine, setting, query, first, stamp):
    """A kernel as a chain calls it: tells its arguments from one another."""
    return bound[0] + 10 * mine[0] + 100 * setting + 1000 * query[0] + first + 10_000 * stamp


@kernel
def probe(address, bound, mine, query):
    """Call `probed` with the setting 4 and the stamp 5."""
    return call_with_one(address, (np.int64(4), np.int64(0)), bound, mine, query, np.int64(5))
