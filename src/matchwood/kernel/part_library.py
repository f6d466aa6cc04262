"""How a part is compiled: as code for LLVM to inline, without machine code of its own.

Numba makes machine code of each function that it compiles.  A part is only ever called from
compiled code, which holds a copy of it: its own machine code would never run.

Not optimising parts either, because each kernel is optimised as a whole, compiles in half the time;
but LLVM then inlines otherwise, and matching takes 5 to 12 % longer.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _NoEnvironment:
    """Of a codegen, what is asked for after compiling: to set a pointer in the machine code."""

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: there is no machine code, and what never raises reads no environment."""


class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a part and of the parts it calls, to be linked into kernels."""

    @property
    def codegen(self) -> Any:
        return _NoEnvironment() if self._finalized else super().codegen

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # there is no machine code


class PartCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, with a library that makes no machine code."""

    def __init__(
        self,
        typingctx: Any,
        targetctx: Any,
        library: Any,
        args: Any,
        return_type: Any,
        flags: Any,
        locals: Any,  # noqa: A002 -- Numba's name
    ) -> None:
        library = PartLibrary(targetctx.codegen(), self.__class__.__name__)
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)
