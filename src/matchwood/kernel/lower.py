"""How kernels and parts become LLVM's code: the same as Numba's, with fewer instructions.

Most of the time to compile is proportional to the number of instructions that Numba writes before
LLVM removes them again.  Here fewer are written:

    elements    `a[i]` of an array in one piece: Numba first copies the array's description to the
                stack, here the address is taken from it.  Indexes count from 0 alone: `a[-1]` is
                an error, and a negative number reads outside the array (MATCHWOOD_CHECKED=1)
    variables   one that is assigned once, before all its uses, has no place on the stack; Numba
                keeps only variables of one block from the stack
    deletions   nothing: no references are counted (jit.py)
    arguments   an array in one piece is passed as its address and its shape; Numba also passes its
                strides, its number of elements, the size of one and two objects, which are known
                or not used

The last is a calling convention of its own.  So only kernels and parts call kernels and parts; and
of Numba's own functions they call those that take no arrays (`KernelContext.declare_function`
refuses others).
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir as llvm
from numba.core import cgutils, ir
from numba.core import types as numba_types
from numba.core.analysis import (
    compute_cfg_from_blocks,
    compute_use_defs,
    must_use_alloca,
)
from numba.core.compiler_machinery import register_pass
from numba.core.cpu import CPUContext
from numba.core.datamodel import default_manager
from numba.core.datamodel.models import ArrayModel
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering
from numba.np.arrayobj import load_item, store_item
from numba.np.numpy_support import as_dtype

from matchwood.kernel.store import IS_CHECKED
from matchwood.kernel.unboxing import KernelAPI, has_arrays

types: Any = numba_types  # its stubs lack some names

_NUMBERS = (types.Number, types.Boolean)
_WITH_CONSTANTS = (operator.pow, operator.ipow)
"""Operators for which Numba has another form if an operand is a constant."""

_operators: dict[tuple[Any, tuple[Any, ...]], tuple[Any, Any]] = {}
"""By operator and types of its operands: Numba's function and its signature."""

_DATA, _SHAPE = 4, 5
"""Where the description of an array has its address and its shape; see Numba's ArrayModel."""


def _axes(index: Any) -> tuple[Any, ...]:
    """The types of the numbers that an index has; none if something else is among them."""
    kind = types.unliteral(index)
    found = tuple(map(types.unliteral, kind)) if isinstance(kind, types.BaseTuple) else (kind,)
    return found if all(isinstance(each, types.Integer) for each in found) else ()


def _refuse_from_the_end(index: Any) -> None:
    """IndexError for a constant that is negative: elements are counted from 0 alone."""
    for each in index if isinstance(index, tuple) else (index,):
        if each < 0:
            raise IndexError(f"expected an index from 0 on, found {each}")


# -- arguments -----------------------------------------------------------------------------------


class _ArrayArgument(ArrayModel):  # type: ignore[misc]
    """An array that is passed as its address and its shape, if its elements are in one piece."""

    def __init__(self, models: Any, kind: Any) -> None:
        super().__init__(models, kind)
        self._is_short = kind.layout == "C"
        self._item_size = as_dtype(kind.dtype).itemsize if self._is_short else 0

    def get_argument_type(self) -> Any:
        whole = super().get_argument_type()
        return (whole[_DATA], whole[_SHAPE]) if self._is_short else whole

    def as_argument(self, builder: Any, value: Any) -> Any:
        if not self._is_short:
            return super().as_argument(builder, value)
        return tuple(
            self._models[at].as_argument(builder, builder.extract_value(value, at))
            for at in (_DATA, _SHAPE)
        )

    def from_argument(self, builder: Any, value: Any) -> Any:
        if not self._is_short:
            return super().from_argument(builder, value)
        data, shape = (
            self._models[at].from_argument(builder, each)
            for at, each in zip((_DATA, _SHAPE), value, strict=True)
        )
        n_axes = self._fe_type.ndim
        word = llvm.IntType(64)
        size = llvm.Constant(word, self._item_size)
        sizes = [builder.extract_value(shape, axis) for axis in range(n_axes)]
        n_items = llvm.Constant(word, 1) if not sizes else sizes[0]
        strides = [size] * n_axes
        for axis in range(n_axes - 1, 0, -1):
            strides[axis - 1] = builder.mul(strides[axis], sizes[axis])
        for each in sizes[1:]:
            n_items = builder.mul(n_items, each)
        kind = self.get_value_type()
        null = [llvm.Constant(each, None) for each in kind.elements[:2]]
        known = [*null, llvm.Constant(word, 0), size, llvm.Constant(kind.elements[_DATA], None)]
        known += [llvm.Constant(kind.elements[_SHAPE], [0] * n_axes)]
        known += [llvm.Constant(kind.elements[_SHAPE + 1], [self._item_size] * n_axes)]
        array: Any = llvm.Constant(kind, known)
        array = builder.insert_value(array, n_items, 2)
        array = builder.insert_value(array, data, _DATA)
        array = builder.insert_value(array, shape, _SHAPE)
        for axis in range(n_axes - 1):
            array = builder.insert_value(array, strides[axis], [_SHAPE + 1, axis])
        return array


_models = default_manager.copy()
_models.register(types.Array, _ArrayArgument)
_internal: dict[Any, Any] = {}
"""Numba's own functions that were compiled for kernels: their arguments are passed as here."""


class KernelContext(CPUContext):  # type: ignore[misc]
    """Numba's target with the arguments above."""

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        """Numba's implementation of a function; NotImplementedError if it has none.

        Whatever describes an array, Numba first looks whether its type has a function that turns it
        into one, in all of its registries and twice.  Kernels have plain arrays alone.
        """
        if fn == "__array__":
            raise NotImplementedError(fn)
        return super().get_function(fn, sig, _firstcall)

    def get_python_api(self, builder: Any) -> Any:
        return KernelAPI(self, builder)

    def declare_function(self, module: Any, fndesc: Any) -> Any:
        """A function that is called; TypeError if it takes arrays as Numba passes them."""
        is_internal = fndesc.modname is not None and fndesc.modname.partition(".")[0] == "numba"
        if is_internal and any(map(has_arrays, fndesc.argtypes)):
            raise TypeError(
                f"expected kernels to call functions of Matchwood with arrays, found "
                f"{fndesc.modname}.{fndesc.qualname}; write a part that does the same"
            )
        return super().declare_function(module, fndesc)


def kernel_context(context: Any) -> Any:
    """The target of a function that is compiled, with the arguments above."""
    mine = KernelContext.__new__(KernelContext)
    mine.__dict__.update(vars(context))
    mine.data_model_manager = _models
    mine.cached_internal_func = _internal
    return mine


# -- the body ------------------------------------------------------------------------------------


class KernelLower(Lower):  # type: ignore[misc]
    """Numba's step from typed variables to LLVM's code, with fewer instructions."""

    def _find_singly_assigned_variable(self) -> None:
        """Variables that are values of LLVM: assigned once, in a block that all uses follow."""
        blocks = self.func_ir.blocks
        used = compute_use_defs(blocks)
        on_stack = must_use_alloca(blocks)
        assigned: dict[str, list[int]] = {}
        for label, block in blocks.items():
            for each in block.body:
                if isinstance(each, ir.Assign):
                    assigned.setdefault(each.target.name, []).append(label)
        uses: dict[str, list[int]] = {}
        for label, names in used.usemap.items():
            for name in names:
                uses.setdefault(name, []).append(label)
        before = compute_cfg_from_blocks(blocks).dominators()
        self._singly_assigned_vars = {
            name
            for name, labels in assigned.items()
            if len(labels) == 1
            and name not in on_stack
            and all(labels[0] < use and labels[0] in before[use] for use in uses.get(name, ()))
        }
        self._blk_local_varmap: dict[str, Any] = {}

    def lower_block(self, block: Any) -> None:
        self.pre_block(block)
        try:
            for each in block.body:
                self.loc = each.loc
                self.lower_inst(each)
        except Exception as error:
            error.add_note(f"in {self.func_ir.func_id.func_qualname}, {self.loc}")
            raise
        self.post_block(block)

    def lower_inst(self, inst: Any) -> None:
        if isinstance(inst, ir.Assign):
            value = self.lower_assign(self.typeof(inst.target.name), inst)
            self.storevar(value, inst.target.name)
        elif isinstance(inst, ir.Jump):
            self.builder.branch(self.blkmap[inst.target])
        elif isinstance(inst, ir.StaticSetItem) and self._is_plain(inst.target, inst.index_var):
            _refuse_from_the_end(inst.index)
            signature = self.fndesc.calltypes[inst]
            self.lower_setitem(inst.target, inst.index_var, inst.value, signature)
        elif not isinstance(inst, ir.Del):
            super().lower_inst(inst)

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
            return
        self._alloca_var(name, self.typeof(name))
        self.builder.store(value, self.getvar(name))

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        if expr.op == "getattr":
            kind = self.typeof(expr.value.name)
            if isinstance(kind, types.BaseNamedTuple) and expr.attr in kind.fields:
                at = kind.fields.index(expr.attr)
                value = self.builder.extract_value(self.loadvar(expr.value.name), at)
                return self.context.cast(self.builder, value, kind[at], resty)
        elif expr.op == "static_getitem" and self._is_plain(expr.value, expr.index_var):
            _refuse_from_the_end(expr.index)
            signature = self.fndesc.calltypes[expr]
            return self.lower_getitem(resty, expr, expr.value, expr.index_var, signature)
        return super().lower_expr(resty, expr)

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """An operator between numbers; Numba looks for its signature again, here it is kept."""
        signature = self.fndesc.calltypes[expr]
        if op in _WITH_CONSTANTS or not all(isinstance(each, _NUMBERS) for each in signature.args):
            return super().lower_binop(resty, expr, op)
        key = op, signature.args
        found = _operators.get(key)
        if found is None:
            typing = self.context.typing_context
            function = typing.resolve_value_type(op)
            found = function, function.get_call_type(typing, signature.args, {})
            _operators[key] = found
        values = [
            self.context.cast(self.builder, self.loadvar(each.name), self.typeof(each.name), wanted)
            for each, wanted in zip((expr.lhs, expr.rhs), signature.args, strict=True)
        ]
        value = self.context.get_function(*found)(self.builder, values)
        return self.context.cast(self.builder, value, signature.return_type, resty)

    # -- elements of arrays ----------------------------------------------------------------------

    def _is_plain(self, array: Any, index: Any) -> bool:
        """Whether an element is taken by one number for each dimension of an array in one piece."""
        if index is None:
            return False
        kind = self.typeof(array.name)
        return (
            isinstance(kind, types.Array)
            and kind.layout == "C"
            and isinstance(kind.dtype, _NUMBERS)
            and 0 < kind.ndim == len(_axes(self.typeof(index.name)))
        )

    def _pointer(self, array: Any, index: Any) -> Any:
        """The address of an element."""
        value, numbers = self.loadvar(array.name), self._numbers(index)
        at = numbers[0]
        for axis, number in enumerate(numbers[1:], 1):
            size = self.builder.extract_value(value, [_SHAPE, axis])
            at = self.builder.add(self.builder.mul(at, size), number)
        return self.builder.gep(self.builder.extract_value(value, _DATA), [at])

    def _numbers(self, index: Any) -> list[Any]:
        """An index as 64-bit numbers, one for each dimension."""
        kinds = _axes(self.typeof(index.name))
        value = self.loadvar(index.name)
        is_one = len(kinds) == 1 and not isinstance(self.typeof(index.name), types.BaseTuple)
        given = [value] if is_one else cgutils.unpack_tuple(self.builder, value, len(kinds))
        found = []
        for each, kind in zip(given, kinds, strict=True):
            word = types.intp if kind.signed else types.uintp
            found.append(self.context.cast(self.builder, each, kind, word))
        return found

    def _check(self, array: Any, index: Any) -> None:
        """With IS_CHECKED: IndexError for an index outside the array, with function and line."""
        kind = self.typeof(array.name)
        if not IS_CHECKED or index is None or not isinstance(kind, types.Array):
            return
        numbers = self._numbers(index) if _axes(self.typeof(index.name)) else []
        function = self.func_ir.func_id
        name = f"{function.modname}.{function.func_qualname}, line {self.loc.line}"
        message = f"index outside the array in {name}"
        for axis, number in enumerate(numbers):
            size = self.builder.extract_value(self.loadvar(array.name), [_SHAPE, axis])
            is_outside = self.builder.icmp_unsigned(">=", number, size)
            with self.builder.if_then(is_outside, likely=False):
                self.context.call_conv.return_user_exc(self.builder, IndexError, (message,))

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        self._check(value, index)
        if not self._is_plain(value, index):
            return super().lower_getitem(resty, expr, value, index, signature)
        pointer = self._pointer(value, index)
        kind = self.typeof(value.name)
        found = load_item(self.context, self.builder, kind, pointer)
        return self.context.cast(self.builder, found, kind.dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        self._check(target_var, index_var)
        if not self._is_plain(target_var, index_var) or not isinstance(
            types.unliteral(self.typeof(value_var.name)), _NUMBERS
        ):
            return super().lower_setitem(target_var, index_var, value_var, signature)
        kind = self.typeof(target_var.name)
        value, given = self.loadvar(value_var.name), self.typeof(value_var.name)
        value = self.context.cast(self.builder, value, given, signature.args[2])
        value = self.context.cast(self.builder, value, signature.args[2], kind.dtype)
        pointer = self._pointer(target_var, index_var)
        store_item(self.context, self.builder, kind, value, pointer)
        return None


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(BaseNativeLowering):  # type: ignore[misc]
    """Numba's pass with the class above."""

    _name = "native_lowering of kernels"

    @property
    def lowering_class(self) -> Any:
        return KernelLower
