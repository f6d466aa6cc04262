"""Which kernels are compiled ahead, and which a test compiled although they should be."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator

import matchwood
from matchwood.kernel import store
from matchwood.kernel.cache import KernelCache, folder_name
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


def kernels() -> Iterator[tuple[str, str]]:
    """Module and name of every kernel of the package."""
    for found in pkgutil.walk_packages(matchwood.__path__, "matchwood."):
        if found.name.startswith("matchwood.spark") or found.name == "matchwood.__main__":
            continue
        module = importlib.import_module(found.name)
        for each in vars(module).values():
            is_kernel = isinstance(getattr(each, "_cache", None), KernelCache)
            if is_kernel and each.py_func.__module__ == found.name:
                yield found.name, each.py_func.__name__


def are_all_ahead(baseline: str) -> bool:
    """Whether every kernel is compiled for a baseline as it is now, as after `bin/setup dev`."""
    whole = [each for each in store.shelves() if each.is_whole and each.baseline == baseline]
    ahead = {file.rpartition("-")[0] for shelf in whole for file in shelf.sums}
    return all(f"{folder_name(module)}/{name}" in ahead for module, name in kernels())
