"""How kernels and parts are optimised: parts lightly and alone, kernels with all their parts, once.

Numba links every function with all that it calls, optimises the whole, and makes machine code of
it.  So the code of a part is optimised again in every part and kernel above it, and its machine
code never runs, since a kernel carries the code of its parts in its own.  Here

    a part      is made smaller, function by function, and kept; it is linked with nothing
    a kernel    is linked with its parts and the parts of these, and optimised with them
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary

from matchwood.kernel.compiler import KernelCompiler


class _Nowhere:
    """What stands for the running code of a part, of which there is none."""

    def set_env(self, name: str, environment: Any) -> None:
        """Numba tells running code where its Python objects are; parts have none."""


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked with parts and with what these are to be linked with."""

    def add_linking_library(self, library: Any) -> None:
        """Link a library into this one when it is finished; of a part also those it needs."""
        if library in self._linking_libraries:
            return
        super().add_linking_library(library)
        if isinstance(library, _PartLibrary):
            for each in library._linking_libraries:
                self.add_linking_library(each)

    def _optimize_functions(self, module: Any) -> None:
        """Make functions smaller, so that LLVM sees what they cost when it decides to inline."""
        module.data_layout = self._codegen._data_layout
        builder = self._codegen._pass_builder(opt=1, loop_vectorize=False, slp_vectorize=False)
        passes = builder.getFunctionPassManager()
        for each in module.functions:
            if not each.is_declaration:
                passes.run(each, builder)

    def _optimize_final_module(self) -> None:
        """LLVM's optimisations; Numba's passes before them serve counted references.

        Without vectors of unlike operations (SLP): they made kernels larger, and none faster.
        """
        builder = self._codegen._pass_builder(slp_vectorize=False)
        builder.getModulePassManager().run(self._final_module, builder)


class _PartLibrary(_Library):
    """The code of a part: can be linked, and cannot be run."""

    @property
    def codegen(self) -> Any:
        return _Nowhere()

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # Numba's word for a function without an entry

    def finalize(self) -> None:
        """Keep the code as it is: kernels link and optimise it."""
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True


class PartCompiler(KernelCompiler):
    """The compiler of kernels, with a library of the kind above."""

    def compile_extra(self, func: Any) -> Any:
        library = _PartLibrary(self.state.targetctx.codegen(), func.__qualname__)
        library.enable_object_caching()
        self.state.library = library
        return super().compile_extra(func)


class WholeCompiler(KernelCompiler):
    """The compiler of kernels, with a library that parts are linked into."""

    def compile_extra(self, func: Any) -> Any:
        library = _Library(self.state.targetctx.codegen(), func.__qualname__)
        library.enable_object_caching()
        self.state.library = library
        return super().compile_extra(func)
