"""Which kernels a test compiled although all that the product needs is compiled ahead."""

from __future__ import annotations

from collections.abc import Iterable

from matchwood.kernel import store
from matchwood.kernel.cache import folder_name
from matchwood.kernel.compile_times import Compiled


def left_out(compiled: Iterable[Compiled]) -> list[str]:
    """The kernels among them whose module was compiled ahead as it is now, but not they.

    A module that was edited since then is compiled at its first use, and is not reported; nor is
    anything in a clone where nothing was compiled ahead.
    """
    ahead = {file.partition("/")[0] for shelf in store.shelves() for file in shelf.sums}
    return [
        f"{each.module}.{each.function}({each.signature})"
        for each in compiled
        if each.module.startswith("matchwood.") and folder_name(each.module) in ahead
    ]
