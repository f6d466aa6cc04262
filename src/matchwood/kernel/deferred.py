"""Deferred compiling: a search that holds a lock does not wait for the compiler.

While a call is deferred, a kernel that has to be compiled raises NotCompiledError instead.  The
caller releases its locks, compiles the kernel and calls again:

    while True:
        try:
            with lock:
                return deferred(search, view)
        except NotCompiledError as missing:
            missing.compile()

Only a call that changes nothing can be repeated in this way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar
from weakref import ref

import numba

from matchwood.kernel import store

Result = TypeVar("Result")


class _Call:
    """Lives as long as a call that is deferred: no interruption can leave its thread deferred."""

    __slots__ = ("__weakref__",)


class _Thread(threading.local):
    call: Callable[[], object] = staticmethod(lambda: None)
    """Gives the call that is deferred, or None."""


_thread = _Thread()


class NotCompiledError(BaseException):
    """A kernel is needed that is not compiled; not an Exception, so that no handler keeps it."""

    def __init__(self, dispatcher: Any, signature: Any) -> None:
        super().__init__(f"{dispatcher.py_func.__qualname__}{signature}")
        self._dispatcher = dispatcher
        self._signature = signature

    def compile(self) -> None:
        """Compile it now; raises itself if the caller's caller has deferred that, too."""
        if is_deferred():
            raise self
        self._dispatcher.compile(self._signature)


def deferred(call: Callable[..., Result], *args: Any) -> Result:
    """Call something that changes nothing; NotCompiledError if it needs the compiler."""
    mine, before = _Call(), _thread.call
    try:
        _thread.call = ref(mine)
        return call(*args)
    finally:
        _thread.call = before


def is_deferred() -> bool:
    """Whether the calling thread must not compile now."""
    return _thread.call() is not None


def defer(is_deferred: bool) -> None:
    """For a thread that works for another one: what `is_deferred` was there."""
    if is_deferred:
        _thread.call = lambda: True


@cache
def may_compile() -> bool:
    """Whether kernels compile at their first use: the package has not all of them, or none."""
    is_ready = any(shelf.is_whole for shelf in store.shelves())
    return not numba.config.DISABLE_JIT and not is_ready
