"""What texts of no type of their own (`lang.cells`) mean inside of a computed attribute.

Each place where a computed attribute reads a cell tells its kind:

    price * qty            numbers               lower(name), cast(x AS int)    texts
    coalesce(x, 0), x = 7  as the constants      NOT sold_out                   a boolean
    a < b, greatest(a, b)  numbers if all of them read as numbers, else texts
    coalesce(a, b)         a cell still: the predicate on it tells

A text that does not read as the kind of its place stays a text, so that the computed attribute is
unknown, as with any value of another kind.  Dates and timestamps stay texts: functions and
comparisons that take them read texts themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

from matchwood.lang.cells import CELL, read_cell
from matchwood.lang.functions.registry import FUNCTIONS, spread
from matchwood.lang.intervals import Interval
from matchwood.lang.scalars import CONDITIONS, Attr, Call, Cast, Lambda, Lit, Scalar

NUMBER, BOOL, TEXT = "number", "bool", "string"
_TYPES = {
    **dict.fromkeys(("int", "bigint", "double", "number"), NUMBER),
    "boolean": BOOL,
    **dict.fromkeys(("string", "date", "timestamp"), TEXT),
}
_COMPARED = ("=", "<>", "<", "<=", ">", ">=", "<=>", "in", "nullif", "greatest", "least", "array")
_CHOSEN = ("case", "if", "nvl2", "coalesce")
_NAME = "\2"
"""Joins the name of an input and the number of its reading."""


class CellReading:
    """A formula over cells of a text file: what each use of a cell reads its text as.

    tree  the formula; for each type that a cell is read as, it has a name of its own, made of the
          cell's name and a number
    """

    def __init__(self, tree: Scalar, cells: Collection[str]) -> None:
        self._cells = cells
        self._n_groups = 0
        self._read: dict[tuple[str, str], str] = {}
        self.tree = self._placed(tree, CELL)

    def row(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values that the tree reads, given those of the event by name."""
        row = {name: value for name, value in values.items() if name not in self._cells}
        together: dict[str, bool] = {}
        for name, kind in self._read:
            if kind.isdigit() and values[name] is not None:
                is_number = not isinstance(read_cell(NUMBER, values[name]), str)
                together[kind] = together.get(kind, True) and is_number
        for (name, kind), new in self._read.items():
            if kind.isdigit():
                kind = NUMBER if together.get(kind) else TEXT
            value = values[name]
            if value is None or kind == CELL:
                row[new] = value
            else:
                row[new] = str(value) if kind == TEXT else read_cell(kind, value)
        return row

    def _placed(self, node: Scalar, kind: str) -> Scalar:
        """A tree in a place of some kind."""
        if isinstance(node, Attr) and node.name in self._cells:
            new = self._read.setdefault((node.name, kind), f"{node.name}{_NAME}{len(self._read)}")
            return Attr(new)
        if isinstance(node, Cast):
            return Cast(self._placed(node.value, TEXT), node.type, node.is_try)
        if isinstance(node, Lambda):
            return Lambda(node.names, self._placed(node.body, BOOL))
        if not isinstance(node, Call):
            return node
        kinds = self._kinds(node, kind)
        args = [self._placed(each, k) for each, k in zip(node.args, kinds, strict=True)]
        return Call(node.name, tuple(args))

    def _kinds(self, node: Call, kind: str) -> list[str]:
        """The kinds of a call's arguments; `kind` is that of the call's own place."""
        name, args = node.name, node.args
        if name in _CHOSEN:
            first = {"case": 0, "if": 1, "nvl2": 1, "coalesce": 0}[name]
            is_condition = [
                (name == "case" and i % 2 == 0 and i < len(args) - 1) or i < first
                for i in range(len(args))
            ]
            chosen = [each for each, is_one in zip(args, is_condition, strict=True) if not is_one]
            common = _common(chosen) or kind
            condition = CELL if name == "nvl2" else BOOL
            return [condition if is_one else common for is_one in is_condition]
        if name in _COMPARED:
            found = _common(args)
            if found is None:
                self._n_groups += 1
                found = kind if kind.isdigit() else str(self._n_groups)
            return [found] * len(args)
        if name in ("and", "or", "not"):
            return [BOOL] * len(args)
        if name in ("+", "-") and _has_interval(args):
            return [TEXT] * len(args)
        if name == "isnull" or name not in FUNCTIONS:
            return [CELL] * len(args)
        if name in ("concat", "||", "reverse"):
            return [TEXT] * len(args)
        if name == "array_contains":
            return [CELL, _common(args[1:]) or CELL]
        return [_TYPES.get(each, CELL) for each in spread(FUNCTIONS[name].takes, len(args))]


def _has_interval(nodes: Collection[Scalar]) -> bool:
    """Whether one of some trees is an interval: what it is added to is a date or a timestamp."""
    return any(
        (isinstance(each, Lit) and isinstance(each.value, Interval))
        or (isinstance(each, Call) and each.name in ("*", "negative") and _has_interval(each.args))
        for each in nodes
    )


def _common(nodes: Collection[Scalar]) -> str | None:
    """The kind of the first of some trees that has one whatever its cells are."""
    return next(filter(None, map(_kind, nodes)), None)


def _kind(node: Scalar) -> str | None:
    """The kind of a tree's value; None where cells decide."""
    if isinstance(node, Lit):
        if isinstance(node.value, bool):
            return BOOL
        if node.value is None:
            return None
        return NUMBER if isinstance(node.value, (int, float, Decimal)) else TEXT
    if isinstance(node, Cast):
        return _TYPES.get(node.type, NUMBER)
    if not isinstance(node, Call):
        return None
    if node.name in CONDITIONS:
        return BOOL
    if node.name in _CHOSEN:
        return _common(node.args[1:-1:2] + node.args[-1:] if node.name == "case" else node.args[1:])
    if node.name in _COMPARED:
        return _common(node.args)
    if node.name in ("+", "-") and _has_interval(node.args):
        return TEXT
    function = FUNCTIONS.get(node.name)
    return None if function is None else _TYPES.get(function.gives or "")
