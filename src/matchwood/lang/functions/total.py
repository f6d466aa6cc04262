"""Formulas that cannot fail, as Spark SQL.

A function states in the registry for which types of arguments it gives a value or NULL whatever the
event, and Spark the same one (`Function.total`).  A formula of such calls alone can be computed by
Spark for a whole DataFrame: no row makes the job fail.  What is in doubt is left out: decimals,
intervals, casts of strings, patterns, lists, integer arithmetic, and literals with quotes.

    sql_of(lower(brand) = 'b7', {'brand': Column('`brand`', 'string')})
    ->  (system.builtin.lower(`brand`) = 'b7')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

from matchwood.lang.functions.registry import FUNCTIONS
from matchwood.lang.functions.types import INT_MAX, literal_type
from matchwood.lang.scalars import Attr, Call, Cast, Lit, Scalar, parts

EXACT = 2**53
"""Integers up to here are doubles, too."""

INTEGERS = ("int", "bigint")
COMPARED = ("string", "double", "boolean", "date", "timestamp", *INTEGERS)
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_INFIX = ("+", "-", "*", "||", *_COMPARISONS)
_CASTS = {
    ("int", "bigint"), ("int", "double"), ("bigint", "double"), ("int", "string"),
    ("bigint", "string"), ("boolean", "string"), ("date", "string"), ("string", "string"),
}  # fmt: skip


class Column(NamedTuple):
    """A column of events: what names it in Spark SQL, as a value of the type that it has here."""

    sql: str
    type: str


class _Doubt(Exception):
    """It may fail, or may mean something else in Spark."""


_Typed = tuple[Any, str]
"""A type and the text of what has it."""


def sql_of(tree: Scalar, columns: Mapping[str, Column]) -> str | None:
    """The Spark SQL of a formula that cannot fail; None for any other.

    columns  those that it may read, by the names of attributes
    """
    try:
        return _typed(tree, columns)[1]
    except _Doubt:
        return None


def needs_ascii(tree: Scalar) -> bool:
    """Whether strings that it reads have to be ASCII: of other letters Python and Java know the
    cases of different versions of Unicode.
    """
    function = FUNCTIONS.get(tree.name) if isinstance(tree, Call) else None
    is_stated = function is not None and any("ascii" in each.split() for each in function.total)
    return is_stated or any(map(needs_ascii, parts(tree)))


def _typed(node: Scalar, columns: Mapping[str, Column]) -> _Typed:
    if isinstance(node, Attr):
        if node.name not in columns:
            raise _Doubt
        return columns[node.name].type, columns[node.name].sql
    if isinstance(node, Lit):
        return literal_type(node.value), _literal(node.value)
    if isinstance(node, Cast):
        kind, sql = _typed(node.value, columns)
        if node.is_try or (kind, node.type) not in _CASTS:
            raise _Doubt
        return node.type, f"CAST({sql} AS {node.type})"
    if not isinstance(node, Call):
        raise _Doubt
    args = [_typed(each, columns) for each in node.args]
    special = _SPECIAL.get(node.name)
    return special(node, args) if special is not None else _call(node, args)


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int) and abs(value) <= EXACT:
        return f"({value}{'' if abs(value) <= INT_MAX else 'L'})"
    if isinstance(value, float) and abs(value) < 1e300:
        return f"({value!r}D)"
    if isinstance(value, str) and value.isprintable() and not set(value) & {"'", "\\"}:
        return f"'{value}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(' ')}Z'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    raise _Doubt


def _call(node: Call, args: list[_Typed]) -> _Typed:
    """A call of a function that states these types."""
    function = FUNCTIONS.get(node.name)
    kinds = [kind for kind, _ in args]
    stated = [each.split() for each in function.total] if function is not None else []
    fitting = next((each for each in stated if _fits(each, node.args, kinds)), None)
    if function is None or fitting is None:
        raise _Doubt
    gives = fitting[0] if function.gives in (None, "number") else function.gives
    if node.name in _INFIX:
        return gives, f"({f' {node.name} '.join(sql for _, sql in args)})"
    return gives, f"system.builtin.{node.name}({', '.join(sql for _, sql in args)})"


def _fits(stated: list[str], args: Sequence[Scalar], kinds: list[Any]) -> bool:
    if stated[-1].endswith("*"):
        last = stated[-1][:-1]
        stated = [*stated[:-1], *[last] * (len(kinds) - len(stated) + 1)]
    return len(stated) == len(kinds) and all(map(_is, stated, args, kinds))


def _is(wanted: str, node: Scalar, kind: Any) -> bool:
    if kind == wanted or (wanted, kind) in (("bigint", "int"), ("ascii", "string")):
        return True
    return wanted == "double" and isinstance(node, Lit) and kind in INTEGERS


def _comparison(node: Call, args: list[_Typed]) -> _Typed:
    _comparable(node.args[0], args[0][0], node.args[1], args[1][0])
    return "boolean", f"({args[0][1]} {node.name} {args[1][1]})"


def _comparable(left: Scalar, kind: Any, right: Scalar, other: Any) -> None:
    if kind not in COMPARED or other not in COMPARED:
        raise _Doubt
    if kind != other and not _is(kind, right, other) and not _is(other, left, kind):
        raise _Doubt


def _in(node: Call, args: list[_Typed]) -> _Typed:
    for each, (kind, _) in zip(node.args[1:], args[1:], strict=True):
        if not isinstance(each, Lit):
            raise _Doubt
        _comparable(node.args[0], args[0][0], each, kind)
    return "boolean", f"({args[0][1]} IN ({', '.join(sql for _, sql in args[1:])}))"


def _logic(node: Call, args: list[_Typed]) -> _Typed:
    if any(kind != "boolean" for kind, _ in args):
        raise _Doubt
    if node.name == "not":
        return "boolean", f"(NOT {args[0][1]})"
    return "boolean", f"({f' {node.name.upper()} '.join(sql for _, sql in args)})"


def _is_null(node: Call, args: list[_Typed]) -> _Typed:
    return "boolean", f"({args[0][1]} IS NULL)"


def _common(kinds: Sequence[Any]) -> Any:
    """The one type of several values; integers are the wider one."""
    found = {kind for kind in kinds if kind != "void"}
    if found == set(INTEGERS):
        return "bigint"
    if len(found) != 1 or not found <= set(COMPARED):
        raise _Doubt
    return found.pop()


def _case(node: Call, args: list[_Typed]) -> _Typed:
    conditions, values = args[:-1:2], [*args[1:-1:2], args[-1]]
    if any(kind != "boolean" for kind, _ in conditions):
        raise _Doubt
    pairs = zip(conditions, values, strict=False)
    whens = " ".join(f"WHEN {when} THEN {then}" for (_, when), (_, then) in pairs)
    return _common([kind for kind, _ in values]), f"(CASE {whens} ELSE {args[-1][1]} END)"


def _coalesce(node: Call, args: list[_Typed]) -> _Typed:
    kind = _common([each for each, _ in args])
    return kind, f"system.builtin.coalesce({', '.join(sql for _, sql in args)})"


_SPECIAL: dict[str, Callable[[Call, list[_Typed]], _Typed]] = {
    "and": _logic, "or": _logic, "not": _logic, "isnull": _is_null, "in": _in, "case": _case,
    "if": _case, "coalesce": _coalesce, **dict.fromkeys(_COMPARISONS, _comparison),
}  # fmt: skip
