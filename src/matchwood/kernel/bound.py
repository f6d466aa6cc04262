"""Bound calls: a layout goes into a kernel as one array of addresses, not as its arrays.

Numba takes an array argument apart whenever a kernel is called, which costs about 0.1 µs for each:
a layout of sixty arrays costs more than the search of a small index.  So the arrays of a layout are
described once, and their addresses and lengths written into one int64 array by their owner:

    VIEW = Layout(View, tree=TREE, predicates=Layout(PredicateLayout, attr="int32", lo="int64"))
    view_of = VIEW.reader()                     # for kernels
    binding = Binding(VIEW)                     # for the owner
    ...
    match(binding.of(View(tree, predicates)), ...)

    @kernel
    def match(bound, ...):
        view = view_of(bound)                   # the NamedTuple again; no reference is counted

    bound     [address, length] for each array, in the order of the fields, nested layouts in place;
              an array of two dimensions has [address, rows, columns], one of three another number

`of` writes a new array whenever a part is another object than before, and keeps the parts, so that
their memory stays where it is while the kernel runs.  Kernels see arrays that can be written,
whatever the flags of the owner's say: a search writes to those of its scratch alone, and a
memory-mapped layout needs no kernels of its own.  Without a compiler a bound layout is the tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_size_t
from operator import is_
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

IS_COMPILED = not numba.config.DISABLE_JIT


def _data_of(array: np.ndarray) -> int:
    """The address right behind the head of an array's object."""
    return c_size_t.from_address(id(array) + object.__basicsize__).value


def described(array: np.ndarray) -> int:
    """The same from what NumPy tells of an array: a dict, made in 3 µs for one number."""
    found: int = array.__array_interface__["data"][0]
    return found


def _is_there() -> bool:
    """Whether that is where the address is, as for all extensions that are compiled with NumPy."""
    samples = [np.empty(n, dtype) for n, dtype in ((0, np.int64), (9, np.uint8), (999, np.int32))]
    samples += [each[1:] for each in samples]
    return all(_data_of(each) == described(each) for each in samples)


data_of: Callable[[np.ndarray], int] = _data_of if _is_there() else described
"""data_of(array): where its elements begin."""


class Layout:
    """Which arrays a NamedTuple has: by field its type ("int32", "int32[2]" with two dimensions,
    "int32[3]" with three), or the layout of a tuple inside it.
    """

    def __init__(self, kind: type, /, **fields: str | Layout) -> None:
        self.kind = kind
        names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
        if names != tuple(fields):
            raise TypeError(f"expected the fields {names} of {kind.__name__}, found {(*fields,)}")
        self._fields = list(fields.values())
        self._dtypes = [_dtype(each) if isinstance(each, str) else None for each in self._fields]

    @property
    def n_words(self) -> int:
        """Length of a bound layout."""
        return sum(
            [
                each.n_words if isinstance(each, Layout) else 1 + _n_axes(each)
                for each in self._fields
            ]
        )

    def numba_type(self) -> Any:
        """The type that kernels see; Numba gives a tuple of Python the same."""
        inside = [
            each.numba_type() if isinstance(each, Layout) else _array_type(each)
            for each in self._fields
        ]
        return types.BaseTuple.from_types(inside, self.kind)  # type: ignore[attr-defined]

    def write(self, arrays: Any, out: list[int]) -> None:
        """Append addresses and lengths; arrays of another type are an error of the owner."""
        for each, dtype, array in zip(self._fields, self._dtypes, arrays, strict=True):
            if isinstance(each, Layout):
                each.write(array, out)
                continue
            if array.dtype != dtype or not array.flags.c_contiguous or not array.flags.aligned:
                raise TypeError(
                    f"expected {each} in one piece for {self.kind.__name__}, found {array.dtype}"
                )
            out.append(data_of(array))
            out.extend(array.shape)

    def reader(self) -> Any:
        """What gives a kernel the NamedTuple of a bound layout."""
        return intrinsic(_reading(self)) if IS_COMPILED else _itself


class Binding:
    """The bound layout of one owner, written again when a part of it has changed."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._now: tuple[Any, Any] | None = None

    def of(self, parts: Any) -> Any:
        """The parts, a NamedTuple, as a kernel takes them."""
        now = self._now
        if now is not None and all(map(is_, now[0], parts)):
            return now[1]
        bound: Any = parts
        if IS_COMPILED:
            words: list[int] = []
            self._layout.write(parts, words)
            bound = np.array(words, np.int64)
        self._now = parts, bound  # in one step: several threads may do this at the same time
        return bound

    def forget(self, parts: Any) -> None:
        """Let go of arrays that the owner has replaced."""
        now = self._now
        if now is not None and not all(map(is_, now[0], parts)):
            self._now = None


def _dtype(text: str) -> np.dtype[Any]:
    return np.dtype(text.split("[")[0])


def _n_axes(text: str) -> int:
    return int(text.partition("[")[2].rstrip("]") or 1)


def _array_type(text: str) -> Any:
    return types.Array(numba.from_dtype(_dtype(text)), _n_axes(text), "C")


def _itself(bound: Any) -> Any:
    """What a reader is without a compiler."""
    return bound


def _reading(layout: Layout) -> Callable[..., Any]:
    kind = layout.numba_type()

    def read(typing_context: Any, bound: Any) -> Any:
        """The NamedTuple of a bound layout."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            words = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            value, _ = _tuple_at(context, builder, kind, words, 0)
            return value

        return kind(bound), generate

    return read


def _tuple_at(context: Any, builder: Any, kind: Any, words: Any, at: int) -> tuple[Any, int]:
    """The code that makes a tuple from the words from `at` on; and where these end."""
    values = []
    for each in kind.types:
        make = _array_at if isinstance(each, types.Array) else _tuple_at
        value, at = make(context, builder, each, words, at)
        values.append(value)
    return context.make_tuple(builder, kind, values), at


def _array_at(context: Any, builder: Any, kind: Any, words: Any, at: int) -> tuple[Any, int]:
    def word(i: int) -> Any:
        return builder.load(builder.gep(words, [context.get_constant(types.intp, i)]))

    element = context.get_data_type(kind.dtype)
    size = context.get_abi_sizeof(element)
    shape = [word(at + 1 + axis) for axis in range(kind.ndim)]
    strides = [context.get_constant(types.intp, size)]
    for axis in range(kind.ndim - 1, 0, -1):
        strides.insert(0, builder.mul(shape[axis], strides[0]))
    array = context.make_array(kind)(context, builder)
    populate_array(
        array,
        data=builder.inttoptr(word(at), element.as_pointer()),
        shape=shape,
        strides=strides,
        itemsize=context.get_constant(types.intp, size),
        meminfo=None,
    )
    return array._getvalue(), at + 1 + kind.ndim


def _address_of(typing_context: Any, array: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return types.int64(array), generate


def _no_address(array: Any) -> int:
    """What `address_of` is without a compiler, where nothing is bound by addresses."""
    raise NotImplementedError


address_of: Any = intrinsic(_address_of) if IS_COMPILED else _no_address
"""address_of(array): where its elements begin, for a kernel that binds arrays."""
