"""Python's own objects inside kernels: dicts, numbers and strings, read where they are.

A kernel cannot take a dict.  It can take the address of one (`id(event)`) and ask the interpreter
for what is in it, through the functions that C extensions call.  The rules:

- such a kernel is a `kernel_with_gil`: no other thread runs meanwhile, so nothing it looks at can
  change or go away; the caller keeps the object
- it calls nothing that runs Python code: dicts, lists, ints, floats and strings of exactly these
  types, never of a subclass
- what it does when it has read all may let others run meanwhile (`let_others_run`)
- references are borrowed, none is counted; an exception is cleared where it is raised

`IS_USABLE` says whether objects lie in memory as assumed here: the type behind the count of
references.  Otherwise (another interpreter, a debug build, one without the GIL) callers take their
other way.  Without a compiler the same functions are called through ctypes.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from matchwood.kernel.bound import IS_COMPILED
from matchwood.kernel.cache import keep_on_disk
from matchwood.kernel.part_code import WholeCompiler

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

TYPE_OFFSET = ctypes.sizeof(ctypes.c_ssize_t)
"""Where an object keeps the address of its type."""


def kernel_with_gil(function: Kernel) -> Kernel:
    """Compile at first call, cached on disk; no other thread runs while it does."""
    compiled: Kernel = numba.njit(
        nogil=False, _nrt=False, no_cfunc_wrapper=True, pipeline_class=WholeCompiler
    )(function)
    keep_on_disk(compiled)
    return compiled


def _is_usable() -> bool:
    has_gil: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    if sys.implementation.name != "cpython" or not has_gil():
        return False
    probes: list[Any] = [7, 0.5, "text", {}, [], None, True]
    if object.__basicsize__ != 2 * TYPE_OFFSET:
        return False
    return all(
        ctypes.c_ssize_t.from_address(id(each) + TYPE_OFFSET).value == id(type(each))
        for each in probes
    )


IS_USABLE = _is_usable()

_WORD = ir.IntType(64)
_POINTER = ir.IntType(8).as_pointer()


def _call(builder: Any, result: Any, name: str, *arguments: Any) -> Any:
    kind = ir.FunctionType(result, [each.type for each in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _object(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _POINTER)


def _words(n: int) -> Any:
    return types.UniTuple(types.int64, n)  # type: ignore[attr-defined]


def _pair(context: Any, builder: Any, kind: Any, *values: Any) -> Any:
    return context.make_tuple(builder, kind, values)


def _dict_next(typing_context: Any, address: Any, position: Any) -> Any:
    kind = _words(3)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = cgutils.alloca_once_value(builder, arguments[1])
        key = cgutils.alloca_once(builder, _POINTER)
        value = cgutils.alloca_once(builder, _POINTER)
        builder.store(ir.Constant(_POINTER, None), key)
        builder.store(ir.Constant(_POINTER, None), value)
        found = _call(
            builder, ir.IntType(32), "PyDict_Next", _object(builder, arguments[0]), pointer, key,
            value,
        )  # fmt: skip
        is_there = builder.icmp_signed("!=", found, ir.Constant(ir.IntType(32), 0))
        none = ir.Constant(_WORD, -1)
        return _pair(
            context, builder, kind,
            builder.select(is_there, builder.load(pointer), none),
            builder.ptrtoint(builder.load(key), _WORD),
            builder.ptrtoint(builder.load(value), _WORD),
        )  # fmt: skip

    return kind(types.int64, types.int64), generate


def _list_item(typing_context: Any, address: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = _call(
            builder, _POINTER, "PyList_GetItem", _object(builder, arguments[0]), arguments[1]
        )
        return builder.ptrtoint(found, _WORD)

    return types.int64(types.int64, types.int64), generate


def _type_of(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.add(arguments[0], ir.Constant(_WORD, TYPE_OFFSET))
        return builder.load(builder.inttoptr(pointer, _WORD.as_pointer()))

    return types.int64(types.int64), generate


def _whole_number(typing_context: Any, address: Any) -> Any:
    kind = _words(2)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        overflow = cgutils.alloca_once_value(builder, ir.Constant(ir.IntType(32), 0))
        value = _call(
            builder, _WORD, "PyLong_AsLongLongAndOverflow", _object(builder, arguments[0]),
            overflow,
        )  # fmt: skip
        return _pair(context, builder, kind, value, builder.sext(builder.load(overflow), _WORD))

    return kind(types.int64), generate


def _double(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(builder, ir.DoubleType(), "PyFloat_AsDouble", _object(builder, arguments[0]))

    return types.float64(types.int64), generate


def _text(typing_context: Any, address: Any) -> Any:
    kind = _words(2)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size = cgutils.alloca_once_value(builder, ir.Constant(_WORD, 0))
        found = _call(
            builder, _POINTER, "PyUnicode_AsUTF8AndSize", _object(builder, arguments[0]), size
        )
        begin = builder.ptrtoint(found, _WORD)
        with builder.if_then(builder.icmp_signed("==", begin, ir.Constant(_WORD, 0)), likely=False):
            _call(builder, ir.VoidType(), "PyErr_Clear")
        return _pair(context, builder, kind, begin, builder.load(size))

    return kind(types.int64), generate


def _text_hash(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(builder, _WORD, "PyObject_Hash", _object(builder, arguments[0]))

    return types.int64(types.int64), generate


def _same_text(typing_context: Any, first: Any, second: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        objects = [_object(builder, each) for each in arguments]
        order = _call(builder, ir.IntType(32), "PyUnicode_Compare", *objects)
        return builder.icmp_signed("==", order, ir.Constant(ir.IntType(32), 0))

    return types.boolean(types.int64, types.int64), generate


def _byte_at(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], _POINTER))

    return types.uint8(types.int64), generate


def _bytes_begin(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = _call(builder, _POINTER, "PyBytes_AsString", _object(builder, arguments[0]))
        return builder.ptrtoint(found, _WORD)

    return types.int64(types.int64), generate


def _let_others_run(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ptrtoint(_call(builder, _POINTER, "PyEval_SaveThread"), _WORD)

    return types.int64(), generate


def _run_alone(typing_context: Any, thread: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _call(builder, ir.VoidType(), "PyEval_RestoreThread", _object(builder, arguments[0]))
        return context.get_dummy_value()

    return types.void(types.int64), generate


# -- the same without a compiler ---------------------------------------------------------------


def _held(address: int) -> Any:
    return ctypes.cast(int(address), ctypes.py_object).value


def _plain_dict_next(address: int, position: int) -> tuple[int, int, int]:
    items = list(_held(address).items())
    if position >= len(items):
        return -1, 0, 0
    return position + 1, id(items[position][0]), id(items[position][1])


def _plain_whole_number(address: int) -> tuple[int, int]:
    value = _held(address)
    if -(2**63) <= value < 2**63:
        return value, 0
    return -1, 1 if value > 0 else -1


def _plain_text(address: int) -> tuple[int, int]:
    size = ctypes.c_ssize_t()
    read = ctypes.pythonapi.PyUnicode_AsUTF8AndSize
    read.restype, read.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_void_p]
    try:
        return read(_held(address), ctypes.byref(size)) or 0, size.value
    except UnicodeEncodeError:
        return 0, 0


def _plain_text_hash(address: int) -> int:
    return hash(_held(address))


def _plain_same_text(first: int, second: int) -> bool:
    return bool(_held(first) == _held(second))


def _plain_list_item(address: int, number: int) -> int:
    return id(_held(address)[number])


def _plain_type_of(address: int) -> int:
    return id(type(_held(address)))


def _plain_byte_at(address: int) -> int:
    return ctypes.c_uint8.from_address(int(address)).value


def _plain_bytes_begin(address: int) -> int:
    read = ctypes.pythonapi.PyBytes_AsString
    read.restype, read.argtypes = ctypes.c_void_p, [ctypes.py_object]
    begin: int = read(_held(address))
    return begin


def _plain_let_others_run() -> int:
    return 0


def _plain_run_alone(thread: int) -> None:
    pass


def _one(compiled: Callable[..., Any], plain: Callable[..., Any]) -> Any:
    return intrinsic(compiled) if IS_COMPILED else plain


dict_next: Any = _one(_dict_next, _plain_dict_next)
"""dict_next(dict, position) -> next position, key, value; from 0 on, -1 behind the last."""

list_item: Any = _one(_list_item, _plain_list_item)
"""list_item(list, number), which is below its length."""

type_of: Any = _one(_type_of, _plain_type_of)
"""type_of(object): the address of its type."""

whole_number: Any = _one(_whole_number, _plain_whole_number)
"""whole_number(int) -> value, 0; or -1 and the side on which it leaves 64 bits."""

double: Any = _one(_double, _held)
"""double(float)."""

text: Any = _one(_text, _plain_text)
"""text(str) -> address and length of its UTF-8; address 0 where it has none (a lone surrogate)."""

text_hash: Any = _one(_text_hash, _plain_text_hash)
"""text_hash(str): what `hash` gives; a str keeps it once it was asked for."""

same_text: Any = _one(_same_text, _plain_same_text)
"""same_text(str, str)."""

byte_at: Any = _one(_byte_at, _plain_byte_at)
"""byte_at(address)."""

bytes_begin: Any = _one(_bytes_begin, _plain_bytes_begin)
"""bytes_begin(bytes): the address of the first one."""

let_others_run: Any = _one(_let_others_run, _plain_let_others_run)
"""let_others_run() -> thread: give up the interpreter's lock.  No object is looked at until
`run_alone(thread)`, which every way out of the kernel has to pass."""

run_alone: Any = _one(_run_alone, _plain_run_alone)
"""run_alone(thread): take the interpreter's lock again."""
