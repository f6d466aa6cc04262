"""Scalar expressions computed for one event.

What an expression means depends on the types of the values that it reads, as in Spark on those of
the columns.  So a `Formula` is bound once for every combination of types that events bring, and the
bound one, a nest of plain functions, is kept.

    formula.inputs    the names that it reads
    formula(values)   the value for one event, given the values of the inputs in that order

`TypeProblem` is raised for types that it does not take, `Failed` where Spark raises an error: both
leave the computed attribute unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from matchwood.lang.cells import CELL, Cell
from matchwood.lang.functions import (
    choices,
    collections,
    conditions,
    intervals,
    strings,
    times,
)
from matchwood.lang.functions.binding import Get, Row, Types, bind
from matchwood.lang.functions.casts import midnight
from matchwood.lang.functions.cell_reading import CellReading
from matchwood.lang.functions.registry import FUNCTIONS
from matchwood.lang.functions.types import (
    LONG_MAX,
    LONG_MIN,
    Failed,
    TypeProblem,
    is_mixed,
    type_of,
)
from matchwood.lang.scalars import (
    Attr,
    Call,
    Lit,
    Scalar,
    attributes_of,
    parts,
    text_of,
    with_parts,
)

__all__ = [
    "FUNCTIONS", "Failed", "Formula", "TypeProblem", "Types", "bind", "choices", "collections",
    "conditions", "intervals", "strings", "times",
]  # fmt: skip

MAX_PLANS = 64


class Formula:
    """A scalar expression, ready to be computed."""

    def __init__(self, tree: Scalar) -> None:
        self.tree = _with_paths(tree)
        self._written = tree
        self.inputs: list[str] = attributes_of(self.tree)
        self.is_flat = not any("." in name or PATH in name for name in self.inputs)
        self._plans: dict[tuple[Any, ...], _Plan] = {}

    @property
    def text(self) -> str:
        """The canonical text."""
        return text_of(self._written)

    def __call__(self, values: Sequence[Any]) -> Any:
        return self.evaluate(values)[0]

    def evaluate(self, values: Sequence[Any]) -> tuple[Any, bool]:
        """The value, and whether some comparison inside met values of another kind."""
        row = dict(zip(self.inputs, map(plain_input, values), strict=True))
        return self.with_types(tuple(map(type_of, row.values())), row)

    def with_types(self, types: tuple[Any, ...], row: Row) -> tuple[Any, bool]:
        """As `evaluate`, given plain values by name, perhaps with others, and the inputs' types."""
        plan = self._plans.get(types) or self._plan(types)
        if isinstance(plan, str):
            raise TypeProblem(plan)
        get, is_partial = plan
        try:
            if is_partial is None:
                found: tuple[Any, bool] = get(row)
                return found
            return get(row), is_partial
        except (ArithmeticError, ValueError) as error:  # what no function has foreseen
            raise Failed(f"{type(error).__name__}: {error}") from None

    def plain(self, types: tuple[Any, ...]) -> Get | None:
        """What computes the value of a row by its plain values of these types.

        None where values of another kind leave something unknown, or where it would be refused.
        """
        plan = self._plans.get(types) or self._plan(types)
        return None if isinstance(plan, str) or plan[1] is not False else plan[0]

    def _plan(self, types: tuple[Any, ...]) -> _Plan:
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        plan = self._plans[types] = self._new_plan(types)
        return plan

    def _new_plan(self, types: tuple[Any, ...]) -> _Plan:
        if CELL in types:
            cells = [name for name, kind in zip(self.inputs, types, strict=True) if kind == CELL]
            return _CellFormula(self.tree, cells).evaluate_row, None
        named = Types(zip(self.inputs, types, strict=True))
        try:
            get = bind(self.tree, named)[1]
        except TypeProblem as problem:
            return str(problem)
        is_partial = _compares_elements(self.tree) and any(map(is_mixed, types))
        return get, is_partial or named.n_unknown > 0


_Plan = tuple[Get, bool | None] | str
"""What computes a value, and whether it is partial (None: it tells both); or what is wrong."""


class _CellFormula(Formula):
    """A formula some of whose inputs are cells, which it reads as their places say."""

    def __init__(self, tree: Scalar, cells: list[str]) -> None:
        self._reading = CellReading(tree, cells)
        super().__init__(self._reading.tree)

    def evaluate_row(self, given: Row) -> tuple[Any, bool]:
        """As `evaluate`, given the values of the inputs by name."""
        row = self._reading.row(given)
        values = [row[name] for name in self.inputs]
        types = ["string" if type(value) is Cell else type_of(value) for value in values]
        return self.with_types(tuple(types), row)


PATH = "\1"
"""Joins the name of an attribute and the keys of its map that an expression reads."""


def _with_paths(node: Scalar) -> Scalar:
    """`m['a']` as one input: only the event tells the type of a map's value."""
    node = with_parts(node, _with_paths)
    if isinstance(node, Call) and node.name in ("[]", "element_at"):
        source, key = node.args[:2]
        if isinstance(source, Attr) and isinstance(key, Lit) and isinstance(key.value, str):
            return Attr(f"{source.name}{PATH}{key.value}")
    return node


def _compares_elements(node: Scalar) -> bool:
    if isinstance(node, Call) and node.name in ("array_contains", "arrays_overlap"):
        return True
    return any(map(_compares_elements, parts(node)))


_ITEMS = frozenset({str, int, float, bool, type(None), dict, Decimal, date})
"""Classes of a list's elements that are as they have to be, but for ints that are too large."""


def plain_input(value: Any) -> Any:
    """A value of an event as one of Python's own: a timestamp in UTC, an int beyond 64 bits as a
    decimal, as in Spark; in lists, too.
    """
    kind = type(value)
    if kind is int:
        return value if LONG_MIN <= value <= LONG_MAX else Decimal(value)
    if kind is list:
        if any(
            type(each) not in _ITEMS or (type(each) is int and not LONG_MIN <= each <= LONG_MAX)
            for each in value
        ):
            return _plain_items(value)
        return value
    if value is None or kind in (float, str, bool):
        return value
    if isinstance(value, datetime):
        from matchwood.lang.python_values import as_value

        return as_value(value)
    if isinstance(value, tuple):
        return plain_input(list(value))
    if type(value).__module__ == "numpy":
        from matchwood.lang.python_values import as_value

        try:
            return value.tolist() if getattr(value, "ndim", 0) else as_value(value)
        except TypeError:
            raise TypeProblem(f"a value of type {type(value).__name__}") from None
    return value


def _plain_items(values: list[Any]) -> list[Any]:
    """The elements of a list as `plain_input` has them; dates beside timestamps are such, too."""
    found = [plain_input(each) for each in values]
    if any(isinstance(each, datetime) for each in found):
        return [midnight(each) if type(each) is date else each for each in found]
    return found
