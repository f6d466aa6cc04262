"""Memory of others inside kernels: buffers of Arrow, read by their addresses.

A table of a thousand columns has two buffers for each.  As arguments of a kernel they would cost
more than what is read from them, so it gets one array of their addresses.  Whoever calls it keeps
the buffers, and reads inside of them alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from matchwood.kernel.bound import IS_COMPILED


def _loading(stored: Any, kind: Any, is_wider: bool) -> Callable[..., Any]:
    """An intrinsic that loads a value of an LLVM type from an address, of any alignment."""

    def load(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = builder.load(builder.inttoptr(arguments[0], stored.as_pointer()), align=1)
            return builder.sext(value, ir.IntType(64)) if is_wider else value

        return kind(types.int64), generate

    return load


def _one(stored: Any, kind: Any, plain: Any, is_wider: bool = False) -> Any:
    if IS_COMPILED:
        return intrinsic(_loading(stored, kind, is_wider))
    return lambda address: plain.from_address(int(address)).value


uint8_at: Any = _one(ir.IntType(8), numba.uint8, ctypes.c_uint8)
"""uint8_at(address): one byte."""

int32_at: Any = _one(ir.IntType(32), numba.int64, ctypes.c_int32, is_wider=True)
"""int32_at(address): a number of four bytes, as an int64."""

int64_at: Any = _one(ir.IntType(64), numba.int64, ctypes.c_int64)
"""int64_at(address): eight bytes as an int64."""

float64_at: Any = _one(ir.DoubleType(), numba.float64, ctypes.c_double)
"""float64_at(address): a double."""
