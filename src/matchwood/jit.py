"""The two decorators for compiled code, and what can be known about compiling.

A `kernel` is a module-level function over NumPy arrays in a file named `*_kernels.py`.  It is
compiled by Numba at its first call and cached on disk, once per installation.  A `part` is a
smaller function that kernels are made of.

Compiled code here never allocates, so Numba's reference counting is switched off (`_nrt=False`).
With it, every look at an array of a layout costs two atomic operations: encoding is several times
slower (docs/decisions/0002-kernels-without-reference-counts.md).  A kernel that does allocate fails
to compile, loudly.

Start counters as `np.int64(0)` where they are passed on: a bare 0 has a literal type of its own and
makes Numba compile the callee once more.

Numba's own cache looks only at the file a function stands in: edit a kernel that another file's
kernel calls and the caller keeps running the old code.  A stale kernel is a wrong answer, so the
cache folder here is named after the sources of a file *and of every kernel file it imports*.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core import event as numba_event
from numba.core.caching import CompileResultCacheImpl, _CacheLocator
from numba.extending import intrinsic

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parent
_IS_ZIPPED = not _PACKAGE.is_dir()
"""Whether the package lies in a zip file, as `spark-submit --py-files` sends it."""
_IMPORT = re.compile(r"^from matchwood\.([\w.]+) import", re.MULTILINE)


def kernel(function: Kernel) -> Kernel:
    """Compile at first call, without the interpreter's lock, cached on disk."""
    before = numba.config.CACHE_DIR
    if not os.environ.get("NUMBA_CACHE_DIR"):
        numba.config.CACHE_DIR = str(_cache_folder(function.__module__))
    try:
        compiled: Kernel = numba.njit(cache=True, nogil=True, _nrt=False)(function)
    finally:
        numba.config.CACHE_DIR = before
    _forgive(compiled)
    return compiled


def _forgive(compiled: Any) -> None:
    """Take a cache that names a class which has moved since for empty, not for an error.

    A kernel is compiled for the NamedTuples of its callers, whose sources its folder's name does
    not cover.
    """
    file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if file is None:  # not compiled at all (NUMBA_DISABLE_JIT)
        return
    load = file._load_index

    def load_index() -> Any:
        try:
            return load()
        except (AttributeError, ImportError):
            return {}

    file._load_index = load_index


def part(function: Kernel) -> Kernel:
    """A piece of kernels, called from compiled code only.

    Without an entry for Python it compiles a third faster, and the kernels that use it carry its
    code in their own cache.
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Kernel = numba.njit(nogil=True, _nrt=False, **options)(function)
    return compiled


def _prefetch(typing_context: Any, array: Any, at: Any) -> Any:
    """Ask for a cache line that is not read yet; only a hint, never an error."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        place = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        # to read, into all levels of the cache, of data
        builder.call(hint, [place, *[ir.Constant(number, value) for value in (0, 3, 1)]])
        return context.get_dummy_value()

    return types.void(array, at), generate


def _nothing(array: Any, at: Any) -> None:
    """What `prefetch` is without a compiler."""


prefetch: Any = _nothing if numba.config.DISABLE_JIT else intrinsic(_prefetch)
"""prefetch(array, at): hide the wait for memory that will be read in a moment.

`at` counts the array's elements, whatever its shape; a place outside the array does no harm.
"""


def compile_seconds() -> float:
    """Seconds this process has spent compiling (not loading from the cache)."""
    return _listener.seconds


@cache
def _cache_root() -> Path:
    """Beside the package where that is writable, else the user's cache, else a temporary folder."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "matchwood"
    told = os.environ.get("NUMBA_CACHE_DIR")
    own = Path(told) if told else _PACKAGE / "__pycache__"
    for root in (own, user, Path(tempfile.gettempdir()) / "matchwood"):
        try:
            folder = root / "kernels"
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="matchwood-kernels-"))


def _cache_folder(module: str) -> Path:
    digest = hashlib.sha256()
    for name in sorted(_sources(module, set())):
        digest.update(name.encode())
        digest.update(_source(name))
    return _cache_root() / f"{module.rpartition('.')[2]}-{digest.hexdigest()[:16]}"


def _sources(module: str, seen: set[str]) -> set[str]:
    """A module and every Matchwood module it imports, directly or not."""
    if module not in seen:
        seen.add(module)
        for imported in _IMPORT.findall(_source(module).decode()):
            _sources(f"matchwood.{imported}", seen)
    return seen


@cache
def _source(module: str) -> bytes:
    *folders, name = module.split(".")[1:] or [""]
    folder = files("matchwood").joinpath(*folders)  # of the package, zipped or not
    for candidate in (folder.joinpath(f"{name}.py"), folder.joinpath(name, "__init__.py")):
        if candidate.is_file():
            return candidate.read_bytes()
    spec = sys.modules.get(module)
    file = getattr(spec, "__file__", None)
    return Path(file).read_bytes() if file else module.encode()


class _Zipped(_CacheLocator):  # type: ignore[misc]
    """Where Numba caches kernels of a package in a zip file: in the folder named after its sources.

    Its own locator for such files takes only the ending .zip, and would not see that a kernel of
    another file has changed.
    """

    def __init__(self, function: Any) -> None:
        self._folder = _cache_folder(function.__module__)
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Zipped | None:
        return cls(function) if function.__module__.startswith("matchwood.") else None


if _IS_ZIPPED:
    CompileResultCacheImpl._locator_classes.insert(0, _Zipped)


class _CompileListener(numba_event.Listener):  # type: ignore[misc]
    """Adds up compile time, and tells a waiting person once what is going on."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.depth = 0
        self.began = 0.0
        self.told = bool(os.environ.get("MATCHWOOD_QUIET"))

    def on_start(self, event: Any) -> None:
        if not _is_ours(event):
            return
        if self.depth == 0:
            self.began = time.perf_counter()
        self.depth += 1
        if not self.told:
            self.told = True
            sys.stderr.write(
                "matchwood: compiling its kernels, once per installation (some seconds) ...\n"
            )
            sys.stderr.flush()

    def on_end(self, event: Any) -> None:
        if not _is_ours(event):
            return
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began


def _is_ours(event: Any) -> bool:
    dispatcher = (event.data or {}).get("dispatcher")
    function = getattr(dispatcher, "py_func", None)
    return getattr(function, "__module__", "").startswith("matchwood")


_listener = _CompileListener()
numba_event.register("numba:compile", _listener)
