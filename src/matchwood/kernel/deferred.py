"""Deferred compiling: a search that holds a lock does not wait for the compiler.

While a call is deferred, a kernel that has to be compiled raises NotCompiledError instead.  Who
called gives its locks back, has the kernel compiled and calls again:

    while True:
        try:
            with lock:
                return deferred(search, view)
        except NotCompiledError as missing:
            missing.compile()

Only a call that changes nothing can be repeated so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numba

from matchwood.kernel import store

Result = TypeVar("Result")


class _Thread(threading.local):
    is_deferred = False


_thread = _Thread()


class NotCompiledError(BaseException):
    """A kernel is needed that is not compiled; not an Exception, so that no handler keeps it."""

    def __init__(self, dispatcher: Any, signature: Any) -> None:
        super().__init__(f"{dispatcher.py_func.__qualname__}{signature}")
        self._dispatcher = dispatcher
        self._signature = signature

    def compile(self) -> None:
        """Compile it now; raises itself if the caller's caller has deferred that, too."""
        if _thread.is_deferred:
            raise self
        self._dispatcher.compile(self._signature)


def deferred(call: Callable[..., Result], *args: Any) -> Result:
    """Call something that changes nothing; NotCompiledError if it needs the compiler."""
    before = _thread.is_deferred
    _thread.is_deferred = True
    try:
        return call(*args)
    finally:
        _thread.is_deferred = before


def is_deferred() -> bool:
    """Whether the calling thread must not compile now."""
    return _thread.is_deferred


def defer(is_deferred: bool) -> None:
    """For a thread that works for another one: what `is_deferred` was there."""
    _thread.is_deferred = is_deferred


@cache
def may_compile() -> bool:
    """Whether kernels compile at their first use: the package has none that fit."""
    return not numba.config.DISABLE_JIT and not store.shelves()
