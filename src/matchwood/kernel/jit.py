"""The two decorators for compiled code, and what can be known about compiling.

A `kernel` is a module-level function over NumPy arrays.  At its first call it is loaded from the
package, where it was compiled ahead, or from the cache; else it is compiled and kept (cache.py).
A `part` is a smaller function that kernels are made of.

Compiled code here never allocates, so Numba's reference counting is switched off (`_nrt=False`).
With it, every look at an array of a layout costs two atomic operations: encoding is several times
slower (docs/decisions/0002-kernels-without-reference-counts.md).  A kernel that does allocate fails
to compile, loudly.

Parts take signed integers as int64, whatever their callers have (compiler.py).  Start counters as
`np.int64(0)` all the same: a variable that begins as a bare 0 and goes on as something else has two
types, which Numba has to unite.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core import event as numba_event
from numba.extending import intrinsic

from matchwood.kernel.cache import cache_root, keep_on_disk
from matchwood.kernel.part_code import PartCompiler, WholeCompiler
from matchwood.kernel.store import IS_CHECKED, unfit

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile at first call, without the interpreter's lock, cached on disk."""
    compiled: Kernel = numba.njit(
        nogil=True, _nrt=False, no_cfunc_wrapper=True, pipeline_class=WholeCompiler
    )(function)
    keep_on_disk(compiled)
    return compiled


_PART: dict[str, Any] = {
    "nogil": True,
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": PartCompiler,
}


def part(function: Kernel) -> Kernel:
    """A piece of kernels, called from compiled code only.

    It has no entry for Python and no machine code: the kernels that use it carry its code in
    theirs, and are optimised with it (part_code.py).  Only kernels and parts can call it
    (lower.py).
    """
    compiled: Kernel = numba.njit(**_PART)(function)
    return compiled


def inlined(function: Kernel) -> Kernel:
    """A part that becomes a piece of its caller, always.

    An array is passed as its address and its length.  Where LLVM does not inline by itself, a small
    part that takes layouts of twenty arrays costs more to call than to run: the walk over JSON was
    three times faster with its parts inlined (when an array was passed as seven words).
    """
    compiled: Kernel = numba.njit(forceinline=True, **_PART)(function)
    return compiled


def _prefetch(typing_context: Any, array: Any, at: Any) -> Any:
    """Ask for a cache line that is not read yet; only a hint, never an error."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        # to read, into all levels of the cache, of data
        builder.call(hint, [pointer, *[ir.Constant(number, value) for value in (0, 3, 1)]])
        return context.get_dummy_value()

    return types.void(array, at), generate


def _nothing(array: Any, at: Any) -> None:
    """What `prefetch` is without a compiler."""


prefetch: Any = _nothing if numba.config.DISABLE_JIT else intrinsic(_prefetch)
"""prefetch(array, at): hide the wait for memory that will be read in a moment.

`at` counts the array's elements, whatever its shape; a place outside the array does no harm.
"""


def _of_a_word(name: str, *more: Any) -> Any:
    """An intrinsic of one int64, by LLVM's name, with constants behind it."""

    def typed(typing_context: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = ir.IntType(64)
            kinds = [number, *[value.type for value in more]]
            called = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(number, kinds), f"llvm.{name}.i64"
            )
            return builder.call(called, [arguments[0], *more])

        return types.int64(types.int64), generate

    return intrinsic(typed)


def _bits_set(word: Any) -> int:
    """What `bits_set` is without a compiler."""
    return (int(word) & (2**64 - 1)).bit_count()


def _lowest_bit(word: Any) -> Any:
    """What `lowest_bit` is without a compiler."""
    return np.int64((int(word) & -int(word)).bit_length() - 1)


bits_set: Any = _bits_set if numba.config.DISABLE_JIT else _of_a_word("ctpop")
"""bits_set(word): how many bits of an int64 are 1."""

lowest_bit: Any = (
    _lowest_bit if numba.config.DISABLE_JIT else _of_a_word("cttz", ir.Constant(ir.IntType(1), 1))
)
"""lowest_bit(word): the position of the lowest bit that is 1; the word is not 0."""


def _either(typing_context: Any, flag: Any, one: Any, other: Any) -> Any:
    """A choice that LLVM keeps as an instruction: both results are declared equally likely."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flag, one, other = arguments
        chosen = builder.select(builder.trunc(flag, ir.IntType(1)), one, other)
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
        return chosen

    return types.int64(types.boolean, types.int64, types.int64), generate


def _plain_either(flag: Any, one: Any, other: Any) -> Any:
    """What `either` is without a compiler."""
    return one if flag else other


either: Any = _plain_either if numba.config.DISABLE_JIT else intrinsic(_either)
"""either(flag, one, other): one of two int64, without a branch.

LLVM turns `one if flag else other` into a branch where the next step of a loop depends on it: a
binary search then takes five times as long, because half of the guesses are wrong
(tests/test_jit.py looks at the instructions).
"""


def _reversed_bytes(word: Any) -> Any:
    """What `reversed_bytes` is without a compiler."""
    return np.int64(np.int64(word).byteswap())


reversed_bytes: Any = _reversed_bytes if numba.config.DISABLE_JIT else _of_a_word("bswap")
"""reversed_bytes(word): an int64 with its bytes in the opposite order."""


def _word_at(typing_context: Any, array: Any, at: Any) -> Any:
    """Eight bytes of an array of bytes as one integer, wherever they begin."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        described = context.make_array(signature.args[0])(context, builder, arguments[0])
        data, word = described.data, ir.IntType(64)
        if IS_CHECKED:
            last = builder.sub(cgutils.unpack_tuple(builder, described.shape)[0], word(8))
            is_inside = builder.icmp_signed("<=", arguments[1], last)
            is_inside = builder.and_(is_inside, builder.icmp_signed(">=", arguments[1], word(0)))
            with builder.if_then(builder.not_(is_inside), likely=False):
                raised = IndexError, ("eight bytes outside the array",)
                context.call_conv.return_user_exc(builder, *raised)
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), word.as_pointer())
        loaded = builder.load(pointer)
        loaded.align = 1
        return loaded

    return types.uint64(array, at), generate


def _eight_bytes(array: Any, at: Any) -> Any:
    """What `word_at` is without a compiler."""
    return np.uint64(int.from_bytes(array[at : at + 8].tobytes(), sys.byteorder))


word_at: Any = _eight_bytes if numba.config.DISABLE_JIT else intrinsic(_word_at)
"""word_at(array, at): `array[at:at + 8]`, of uint8, as one uint64; the caller checks the bounds."""


def compile_seconds() -> float:
    """Seconds this process has spent compiling (not loading from the cache)."""
    return _listener.seconds


def compile_count() -> int:
    """How many functions this process has compiled (not loaded), once for each signature."""
    return _listener.count


class _CompileListener(numba_event.Listener):  # type: ignore[misc]
    """Adds up compile time, and tells a waiting person once what is going on."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.count = 0
        self.depth = 0
        self.began = 0.0
        self.is_reported = bool(os.environ.get("MATCHWOOD_QUIET"))

    def on_start(self, event: Any) -> None:
        if not is_ours(event):
            return
        if self.depth == 0:
            self.began = time.perf_counter()
        self.depth += 1
        self.count += 1
        if not self.is_reported:
            self.is_reported = True
            _write_notice()

    def on_end(self, event: Any) -> None:
        if not is_ours(event):
            return
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began


def _write_notice() -> None:
    """Say on stderr that kernels compile; no error where stderr is missing, closed or odd."""
    often = "once per installation"
    if cache_root() is None:
        often = "in each process: found no private folder to keep them in, set NUMBA_CACHE_DIR"
    if unfit() is not None:
        often = f"{often}; {unfit()}"
    with suppress(Exception):
        sys.stderr.write(f"matchwood: compiling its kernels, {often} (some seconds) ...\n")
        sys.stderr.flush()


def is_ours(event: Any) -> bool:
    """Whether an event of Numba is about a function of Matchwood."""
    dispatcher = (event.data or {}).get("dispatcher")
    module = getattr(getattr(dispatcher, "py_func", None), "__module__", None)
    return isinstance(module, str) and module.split(".", 1)[0] == "matchwood"


_listener = _CompileListener()
numba_event.register("numba:compile", _listener)
