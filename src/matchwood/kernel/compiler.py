"""How Numba compiles kernels and parts: few passes, types remembered, one variant of each part.

A third of the time goes to Numba's own Python (docs/decisions/0021-kernels-compiled-ahead.md):

    passes    Numba looks for closures, list comprehensions, `with` blocks, `literal_unroll`,
              calls of `f(*args)` and functions to inline in every function.  Kernels have none:
              these passes are left out,
              and with them the checks of the whole function that Numba makes after each pass, the
              lifetimes of variables, which count references, and types written for people
    types     the type of `a + b` is found by trying a dozen templates in turn.  It depends on the
              types of the operands alone, so it is remembered
    variants  Numba compiles a part once more for a constant, or for an int32 where other callers
              have an int64.  Here kernels pass constants and signed integers as int64, the
              constants True and False as booleans, and arrays as ones that can be written
    code      fewer instructions for LLVM (lower.py)
"""

from __future__ import annotations

import operator
from dis import opmap
from functools import cache
from typing import Any

from numba.core import types as numba_types
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.event import trigger_event
from numba.core.interpreter import Interpreter
from numba.core.ir_utils import build_definitions
from numba.core.rewrites import rewrite_registry
from numba.core.ssa import reconstruct_ssa
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import (
    NoPythonBackend,
    NoPythonSupportedFeatureValidation,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    RewriteSemanticConstants,
    TranslateByteCode,
)

from matchwood.kernel.lower import KernelLowering, kernel_context

types: Any = numba_types  # its stubs lack some names


# -- passes --------------------------------------------------------------------------------------


_REWRITTEN = {
    opmap[name]
    for name in ("BUILD_LIST", "LIST_EXTEND", "LIST_TO_TUPLE", "CALL_INTRINSIC_1", "BUILD_MAP",
                 "DICT_UPDATE", "DICT_MERGE", "CALL_FUNCTION_EX", "BEFORE_WITH", "LOAD_SPECIAL")
    if name in opmap
}  # fmt: skip
"""Python's instructions that Numba rewrites after translation: lists, dicts, `*args`, `with`."""


class _Interpreter(Interpreter):  # type: ignore[misc]
    def post_process(self, peepholes: Any, func_ir: Any) -> Any:
        """Look for what has to be rewritten only in functions that may have it."""
        code = self.func_id.code
        if not code.co_exceptiontable and _REWRITTEN.isdisjoint(code.co_code[::2]):
            return func_ir
        return super().post_process(peepholes, func_ir)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Translation(TranslateByteCode):  # type: ignore[misc]
    _name = "translation of kernels"

    def run_pass(self, state: Any) -> bool:
        state.func_ir = _Interpreter(state.func_id).interpret(state.bc)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Blocks(IRProcessing):  # type: ignore[misc]
    """Blocks without gaps, in which each has a way in."""

    _name = "blocks of kernels"

    def run_pass(self, state: Any) -> bool:
        state.func_ir.blocks = canonicalize_cfg(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Rewrites(GenericRewrites):  # type: ignore[misc]
    """Numba's rewrites before types are known: indexes that are constants."""

    _name = "rewrites of kernels"

    def run_pass(self, state: Any) -> bool:
        blocks = state.func_ir.blocks
        for kind in rewrite_registry.rewrites["before-inference"]:
            rewrite = kind(state)
            waiting = list(blocks.items())
            while waiting:
                label, block = waiting.pop()
                if rewrite.match(state.func_ir, block, state.typemap, state.calltypes):
                    blocks[label] = rewrite.apply()
                    waiting.append((label, blocks[label]))
        state.func_ir.blocks = canonicalize_cfg(blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _SingleAssignment(ReconstructSSA):  # type: ignore[misc]
    _name = "single assignment of kernels"

    def run_pass(self, state: Any) -> bool:
        state.func_ir = reconstruct_ssa(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _StripPhis(PreLowerStripPhis):  # type: ignore[misc]
    _name = "strip_phis of kernels"

    def run_pass(self, state: Any) -> bool:
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


PASSES = (
    (_Translation, "bytecode to Numba's form"),
    (FixupArgs, "types of arguments"),
    (_Blocks, "variables and blocks"),
    (RewriteSemanticConstants, "lengths of tuples"),
    (DeadBranchPrune, "branches that constants decide"),
    (_Rewrites, "indexes that are constants"),
    (_SingleAssignment, "one assignment for each variable"),
    (NopythonTypeInference, "types"),
    (_StripPhis, "variables for lowering"),
    (NoPythonSupportedFeatureValidation, "check"),
    (KernelLowering, "LLVM's code"),
    (NoPythonBackend, "result"),
)


class _Pipeline(PassManager):  # type: ignore[misc]
    """Runs passes; of its events only those that compile_times.py listens to."""

    def _runPass(self, index: int, pss: Any, internal_state: Any) -> None:  # noqa: N802 -- Numba's
        pss.analysis = self._analysis
        if isinstance(pss, KernelLowering):
            with trigger_event("numba:run_pass", data={"name": pss.name()}):
                pss.run_pass(internal_state)
        else:
            pss.run_pass(internal_state)


class KernelCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's compiler with the passes and the memory above."""

    def compile_extra(self, func: Any) -> Any:
        self.state.typingctx = _Typing(self.state.typingctx)
        self.state.targetctx = kernel_context(self.state.targetctx)
        return super().compile_extra(func)

    def define_pipelines(self) -> list[Any]:
        return [_pipeline()]


@cache
def _pipeline() -> Any:
    """The same object for all functions: ordering the passes takes time, too."""
    pipeline = _Pipeline("matchwood")
    for each, purpose in PASSES:
        pipeline.add_pass(each, purpose)
    pipeline.finalize()
    return pipeline


# -- types ---------------------------------------------------------------------------------------

_PLAIN = (types.Number, types.Boolean, types.Array, types.BaseTuple, types.Literal)
_MODULES = {"_operator", "builtins", "numpy"}
_known: dict[tuple[Any, tuple[Any, ...]], Any] = {}
"""By function and types of its arguments: the signature that Numba has found."""


class _Typing:
    """A typing context of Numba that remembers signatures of operators over plain values."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """The signature of a call."""
        if isinstance(func, types.Dispatcher) and _is_ours(func.dispatcher):
            wide = tuple(map(_widened, args))
            if self._context.callstack.match(func.dispatcher.py_func, wide) is None:
                args = wide  # else a function that calls itself: it has the types of its first call
            return self._context.resolve_function_type(func, args, kws)
        if kws or not _is_operator(func):
            return self._context.resolve_function_type(func, args, kws)
        key = func, tuple(args)
        found = _known.get(key)
        if found is None:
            found = self._context.resolve_function_type(func, args, kws)
            if found is not None and all(isinstance(each, _PLAIN) for each in key[1]):
                _known[key] = found
        return found

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """The signature of an assignment to an element."""
        return self.resolve_function_type(operator.setitem, (target, index, value), {})


def _is_ours(dispatcher: Any) -> bool:
    return issubclass(dispatcher._compiler.pipeline_class, KernelCompiler)


def _widened(kind: Any) -> Any:
    """The type that an argument of a part is passed as."""
    plain = types.unliteral(kind)
    if isinstance(plain, types.Integer) and plain.signed:
        return types.int64
    if isinstance(plain, types.Array) and not plain.mutable:
        return plain.copy(readonly=False)
    return plain


def _is_operator(func: Any) -> bool:
    """Whether a call means the same in every function: an operator, or one of NumPy's functions."""
    called = func.key[0] if isinstance(func, types.Function) else func
    return getattr(called, "__module__", None) in _MODULES
