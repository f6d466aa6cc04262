"""How arguments of Python reach a kernel: arrays and tuples are read where they lie.

Numba calls a function for each array, and has code for what it may answer; a kernel may take sixty
arrays.  The variant that is called has been found by the types of the arguments, so here address
and shape of an array are loaded from the object (`PyArrayObject_fields` of NumPy's header
ndarraytypes.h, the same in all its versions), and kernels pass them on like this (lower.py):

    8 bytes each, behind the two words of every Python object:
    data    address of the first element
    nd      number of dimensions
    shape   address of the lengths
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as numba_types
from numba.core.pythonapi import NativeValue, PythonAPI

types: Any = numba_types  # its stubs lack some names

DATA, SHAPE = 2, 4
"""Where an array object has the addresses of its elements and of its lengths, in words."""


class KernelAPI(PythonAPI):  # type: ignore[misc]
    """Numba's, with other code for arguments that are arrays in one piece, or tuples with them."""

    def to_native_value(self, typ: Any, obj: Any) -> Any:
        if has_arrays(typ):
            if isinstance(typ, types.BaseTuple):
                return self._tuple(typ, obj)
            return NativeValue(self._array(typ, obj))
        return super().to_native_value(typ, obj)

    def _array(self, kind: Any, array: Any) -> Any:
        builder, word = self.builder, ir.IntType(64)
        words = builder.bitcast(array, word.as_pointer())

        def address(at: int, of: Any) -> Any:
            found = builder.load(builder.gep(words, [ir.Constant(word, at)]))
            return builder.inttoptr(found, of.as_pointer())

        element = self.context.get_data_type(kind.dtype)
        shape = address(SHAPE, word)
        axes = [ir.Constant(word, axis) for axis in range(kind.ndim)]
        lengths = [builder.load(builder.gep(shape, [axis])) for axis in axes]
        model = self.context.data_model_manager[kind]
        return model.from_argument(builder, (address(DATA, element), lengths))

    def _tuple(self, kind: Any, given: Any) -> Any:
        found = [
            self.to_native_value(each, self.tuple_getitem(given, i)) for i, each in enumerate(kind)
        ]
        is_error: Any = cgutils.false_bit
        for each in found:
            if each.is_error is not cgutils.false_bit:
                is_error = self.builder.or_(is_error, each.is_error)
        value = self.context.make_tuple(self.builder, kind, [each.value for each in found])
        return NativeValue(value, is_error=is_error)


def has_arrays(kind: Any) -> bool:
    """Whether a type is an array in one piece, or a tuple with one."""
    if isinstance(kind, types.BaseTuple):
        return any(map(has_arrays, kind))
    return isinstance(kind, types.Array) and kind.layout == "C"
