"""Searching arrays of bytes, 16 or 64 of them in one step, with the vector units of the CPU.

Each function has a twin in Python for running without a compiler.  The caller checks the bounds.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

QUOTE, BACKSLASH, SPACE, NEWLINE = 34, 92, 32, 10


def _vector(context: Any, builder: Any, signature: Any, arguments: Any, n: int) -> Any:
    """The n bytes of an array from a position on, and their type."""
    kind = ir.VectorType(ir.IntType(8), n)
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    pointer = builder.bitcast(builder.gep(data, [arguments[1]]), kind.as_pointer())
    loaded = builder.load(pointer)
    loaded.align = 1
    return loaded, kind


def _first_special(typing_context: Any, array: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded, kind = _vector(context, builder, signature, arguments, 16)
        found = builder.icmp_signed("<", loaded, ir.Constant(kind, [SPACE] * 16))
        for byte in (QUOTE, BACKSLASH):
            same = builder.icmp_unsigned("==", loaded, ir.Constant(kind, [byte] * 16))
            found = builder.or_(found, same)
        word, flag = ir.IntType(64), ir.IntType(1)
        mask = builder.zext(builder.bitcast(found, ir.IntType(16)), word)
        mask = builder.or_(mask, ir.Constant(word, 1 << 16))
        lowest = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(word, [word, flag]), "llvm.cttz.i64"
        )
        return builder.call(lowest, [mask, ir.Constant(flag, 1)])

    return types.int64(array, at), generate


def _plain_first_special(array: Any, at: Any) -> Any:
    for i, byte in enumerate(array[at : at + 16].tolist()):
        if byte in (QUOTE, BACKSLASH) or byte < SPACE or byte >= 128:
            return np.int64(i)
    return np.int64(16)


def _newlines(typing_context: Any, array: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded, kind = _vector(context, builder, signature, arguments, 64)
        same = builder.icmp_unsigned("==", loaded, ir.Constant(kind, [NEWLINE] * 64))
        return builder.bitcast(same, ir.IntType(64))

    return types.int64(array, at), generate


def _plain_newlines(array: Any, at: Any) -> Any:
    found = np.packbits(array[at : at + 64] == NEWLINE, bitorder="little")
    return found.view(np.int64)[0]


_IS_PLAIN = bool(numba.config.DISABLE_JIT)

first_special: Any = _plain_first_special if _IS_PLAIN else intrinsic(_first_special)
"""first_special(array, at): where the first of `array[at:at + 16]`, of uint8, is that is a quote, a
backslash, a control character or no ASCII: 0 to 15; 16 if there is none."""

newlines: Any = _plain_newlines if _IS_PLAIN else intrinsic(_newlines)
"""newlines(array, at): an int64 with bit i set where `array[at + i]`, of uint8, is a newline; i
below 64."""
