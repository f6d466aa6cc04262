"""How parts are compiled: to code that is linked into kernels, and never to machine code.

Numba makes machine code of every function it compiles.  That of a part never runs, since a kernel
carries the code of its parts in its own.  Leaving it out takes a fifteenth of the time to compile,
and kernels stay the same to the bit.

Parts are optimised one by one, as Numba does it, though kernels are optimised with them once more:
left to the kernels alone, LLVM inlines otherwise, and an A-Tree's search took 1.03 to 1.14 of its
time.  But one light pass is enough for them, without vectors
(docs/decisions/0021-kernels-compiled-ahead.md).
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary

from matchwood.kernel.compiler import KernelCompiler


class _Nowhere:
    """What stands for the running code of a part, of which there is none."""

    def set_env(self, name: str, environment: Any) -> None:
        """Numba tells running code where its Python objects are; parts have none."""


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a part: can be linked, and cannot be run."""

    @property
    def codegen(self) -> Any:
        return _Nowhere()

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # Numba's word for a function without an entry

    def _optimize_functions(self, module: Any) -> None:
        """Nothing: the pass over the whole module does the same."""
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager(
            opt=1, loop_vectorize=False, slp_vectorize=False
        )
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class PartCompiler(KernelCompiler):
    """The compiler of kernels, with a library of the kind above."""

    def compile_extra(self, func: Any) -> Any:
        library = _PartLibrary(self.state.targetctx.codegen(), func.__qualname__)
        library.enable_object_caching()
        self.state.library = library
        return super().compile_extra(func)
