"""Chains: several bound kernels, one after the other, in one compiled call.

Each call of a kernel from Python gives the interpreter's lock up and takes it again.  While another
thread runs Python code, taking it again may last as long as `sys.getswitchinterval`, so a search
that calls ten kernels may wait ten times.  A kernel that calls the others by their addresses waits
once:

    address = native_address(search, arguments)         # for the owner
    found = call_bound(address, settings, bound, mine, query, stamp)       # in a kernel

What is called is a kernel `(bound, mine, *settings, query, first, stamp) -> int64` over bound
layouts (`bound`), for event 0 of its query; settings are int64, at most two.  It gets its arguments
as kernels pass them to each other (lower.py): an array is its address and its length, of which
bound layouts read the address alone.  `is_usable` tries that once; where it does not hold, without
a compiler, or where indexes are checked (store.py), owners call kernel after kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from matchwood.kernel.bound import IS_COMPILED
from matchwood.kernel.store import IS_CHECKED

MOST_SETTINGS = 2

FAILED = -(2**62)
"""What `call_bound` returns where a kernel has raised."""

_WORD, _POINTER = ir.IntType(64), ir.IntType(8).as_pointer()


def native_address(called: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
    """Where the code of a kernel is for such arguments; compiles it if need be.  0: nowhere."""
    dispatcher: Any = called
    signature = tuple(map(numba.typeof, arguments))
    found = dispatcher.overloads.get(signature)
    if found is None:
        dispatcher.compile(signature)
        found = dispatcher.overloads.get(signature)
    if found is None:
        return 0
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name) or 0)


def _calling(n_settings: int) -> Callable[..., Any]:
    def typed(typing_context: Any, address: Any, settings: Any, *others: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            at, given, bound, mine, query, stamp = arguments
            result = cgutils.alloca_once(builder, _WORD)
            raised = cgutils.alloca_once(builder, _POINTER)
            zero = ir.Constant(_WORD, 0)

            def array(data: Any) -> list[Any]:
                return [builder.inttoptr(data, _POINTER), zero]

            numbers = [builder.extract_value(given, i) for i in range(n_settings)]
            words = [
                result, raised, *array(bound), *array(mine), *numbers, *array(query), zero, stamp,
            ]  # fmt: skip
            kind = ir.FunctionType(ir.IntType(32), [each.type for each in words])
            status = builder.call(builder.inttoptr(at, kind.as_pointer()), words)
            is_done = builder.icmp_signed("==", status, ir.Constant(ir.IntType(32), 0))
            return builder.select(is_done, builder.load(result), ir.Constant(_WORD, FAILED))

        return types.int64(address, settings, *others), generate

    def call(
        typing_context: Any, address: Any, settings: Any, bound: Any, mine: Any, query: Any,
        stamp: Any,
    ) -> Any:  # fmt: skip
        return typed(typing_context, address, settings, bound, mine, query, stamp)

    return call


def _uncompiled(*arguments: Any) -> int:
    """What a call is without a compiler, where nothing has an address."""
    raise NotImplementedError


_calls = [intrinsic(_calling(n)) if IS_COMPILED else _uncompiled for n in range(MOST_SETTINGS + 1)]
call_without, call_with_one, call_with_two = _calls
"""call_*(address, settings, bound, mine, query, stamp): call a kernel at an address.

settings  a pair of int64, of which as many count as the name says; all others are int64
"""


@cache
def is_usable() -> bool:
    """Whether kernels take their arguments as assumed here."""
    if not IS_COMPILED or IS_CHECKED:  # what a called kernel raises would be lost
        return False
    from matchwood.kernel.chain_kernels import probe, probed

    words = [np.array([n]) for n in (1, 2, 3)]
    bound, mine, query = words
    address = native_address(probed, (bound, mine, 4, query, 0, 5))
    if not address:
        return False
    return bool(probe(address, *[each.ctypes.data for each in words]) == 53_421)
