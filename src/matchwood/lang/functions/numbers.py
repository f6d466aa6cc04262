"""Arithmetic and functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal, localcontext
from typing import Any

from matchwood.lang.functions.casts import midnight
from matchwood.lang.functions.registry import Binding, define
from matchwood.lang.functions.types import (
    BOUNDS,
    WIDE,
    Dec,
    Failed,
    TypeProblem,
    as_decimal_type,
    bounded,
    check_ordered,
    checked,
    common,
    convert,
    fit,
    is_number,
)

_GROUP = "numbers"


def _operands(types: Sequence[Any]) -> tuple[Any, Any]:
    for each in types:
        if not is_number(each) and each != "void":
            raise TypeProblem(f"{each}, where it takes a number")
    left, right = types
    if left == "void" or right == "void":
        return (right, right) if left == "void" else (left, left)
    return left, right


def _arithmetic(
    integers: Callable[[int, int], int],
    doubles: Callable[[float, float], float],
    decimals: Callable[[Decimal, Decimal], Decimal],
    decimal_type: Callable[[Dec, Dec], Dec],
) -> Callable[[Sequence[Any]], Binding]:
    def bind(types: Sequence[Any]) -> Binding:
        left, right = _operands(types)
        if "double" in (left, right):
            return "double", lambda a, b: doubles(float(a), float(b))
        if isinstance(left, Dec) or isinstance(right, Dec):
            to = decimal_type(as_decimal_type(left), as_decimal_type(right))

            def exact(a: Any, b: Any) -> Decimal:
                with localcontext(WIDE):
                    return fit(decimals(Decimal(a), Decimal(b)), to)

            return to, exact
        kind = "int" if left == right == "int" else "bigint"
        return kind, lambda a, b: checked(integers(a, b), kind)

    return bind


def _sum_type(a: Dec, b: Dec) -> Dec:
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    return bounded(whole + scale + 1, scale)


def _product_type(a: Dec, b: Dec) -> Dec:
    return bounded(a.precision + b.precision + 1, a.scale + b.scale)


def _quotient_type(a: Dec, b: Dec) -> Dec:
    scale = max(6, a.scale + b.precision + 1)
    return bounded(a.precision - a.scale + b.scale + scale, scale)


def _rest_type(a: Dec, b: Dec) -> Dec:
    scale = max(a.scale, b.scale)
    return bounded(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def _not_zero(value: Any) -> None:
    if value == 0:
        raise Failed("division by zero")


def _integer_rest(a: int, b: int) -> int:
    _not_zero(b)
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def _double_rest(a: float, b: float) -> float:
    _not_zero(b)
    if a != a or b != b or math.isinf(a):
        return math.nan
    return math.fmod(a, b)


def _decimal_rest(a: Decimal, b: Decimal) -> Decimal:
    _not_zero(b)
    return a % b


def _divided(a: Any, b: Any) -> Any:
    _not_zero(b)
    return a / b


def _double_product(a: float, b: float) -> float:
    return a * b


_divide = _arithmetic(lambda a, b: 0, _divided, _divided, _quotient_type)


def _quotient(types: Sequence[Any]) -> Binding:
    left, right = _operands(types)
    if isinstance(left, Dec) or isinstance(right, Dec):
        return _divide((left, right))
    return "double", lambda a, b: _divided(float(a), float(b))


def _whole_quotient(types: Sequence[Any]) -> Binding:
    left, right = _operands(types)
    if not {left, right} <= {"int", "bigint"}:
        raise TypeProblem(f"{left} and {right}, where DIV takes integers")

    def divide(a: int, b: int) -> int:
        _not_zero(b)
        found = abs(a) // abs(b)
        return checked(found if (a < 0) == (b < 0) else -found, "bigint")

    return "bigint", divide


def _unary(integers: Callable[[int], int], others: Callable[[Any], Any]) -> Any:
    def bind(types: Sequence[Any]) -> Binding:
        (kind,) = types
        if kind == "void":
            return "int", lambda a: None
        if not is_number(kind):
            raise TypeProblem(f"{kind}, where it takes a number")
        if kind in BOUNDS:
            return kind, lambda a: checked(integers(a), kind)
        return kind, others

    return bind


def _whole(rounding: str, of_double: Callable[[float], int]) -> Any:
    def doubles(value: float) -> int:
        if value != value:  # as Java's conversion to a long, which Spark checks for its range alone
            return 0
        if math.isinf(value):
            raise Failed(f"{value} does not fit bigint")
        return checked(of_double(value), "bigint")

    def bind(types: Sequence[Any]) -> Binding:
        (kind,) = types
        if kind in ("int", "bigint", "void"):
            return "bigint", lambda a: a
        if kind == "double":
            return "bigint", doubles
        if isinstance(kind, Dec):
            to = bounded(kind.precision - kind.scale + 1, 0)
            return to, lambda a: fit(a.to_integral_value(rounding), to)
        raise TypeProblem(f"{kind}, where it takes a number")

    return bind


def round_bind(kind: Any, digits: int) -> Binding:
    """`round(x, digits)`; the digits are a constant."""
    step = Decimal(1).scaleb(-digits)

    def rounded(value: Any) -> Decimal:
        with localcontext(WIDE):
            return Decimal(value).quantize(step, ROUND_HALF_UP) if digits < 300 else Decimal(value)

    def of_double(value: float) -> float:
        if value != value or math.isinf(value):
            return value
        return float(rounded(Decimal(repr(value))))

    if kind == "void":
        return "int", lambda a: None
    if kind in BOUNDS:
        return kind, (lambda a: a) if digits >= 0 else lambda a: checked(int(rounded(a)), kind)
    if kind == "double":
        return kind, of_double
    if isinstance(kind, Dec):
        if digits >= kind.scale:
            return kind, lambda a: a
        whole = kind.precision - kind.scale + 1
        scale = max(digits, 0)
        to = bounded(max(whole, -digits + 1) + scale, scale)
        return to, lambda a: fit(rounded(a), to)
    raise TypeProblem(f"{kind}, where it takes a number")


def _sqrt(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _signum(value: float) -> float:
    return value if value != value or value == 0 else math.copysign(1.0, value)


def order_key(value: Any) -> Any:
    """A value in Spark's order: NaN above all numbers, a date as the timestamp of its start, arrays
    by their elements, NULL first.
    """
    if isinstance(value, list):
        return [(False, 0) if each is None else (True, order_key(each)) for each in value]
    if type(value) is date:
        return False, midnight(value)
    return (value != value, 0) if isinstance(value, float) and value != value else (False, value)


def _extreme(pick: Callable[..., Any]) -> Callable[[Sequence[Any]], Binding]:
    def bind(types: Sequence[Any]) -> Binding:
        kind: Any = "void"
        for each in types:
            kind = common(kind, each)
        check_ordered(kind)
        converters = [convert(each, kind) for each in types]

        def chosen(*values: Any) -> Any:
            known = [
                value if to is None else to(value)
                for value, to in zip(values, converters, strict=True)
                if value is not None
            ]
            return pick(known, key=order_key) if known else None

        return kind, chosen

    return bind


define("+", "number number", "number", group="operators", bind=_arithmetic(
    lambda a, b: a + b, lambda a, b: a + b, lambda a, b: a + b, _sum_type),
    total="double double")  # fmt: skip
define("-", "number number", "number", group="operators", bind=_arithmetic(
    lambda a, b: a - b, lambda a, b: a - b, lambda a, b: a - b, _sum_type),
    total="double double")  # fmt: skip
define("*", "number number", "number", group="operators", bind=_arithmetic(
    lambda a, b: a * b, _double_product, lambda a, b: a * b, _product_type),
    total="double double")  # fmt: skip
define("%", "number number", "number", group="operators", aliases="mod", bind=_arithmetic(
    _integer_rest, _double_rest, _decimal_rest, _rest_type))  # fmt: skip
define("/", "number number", "number", group="operators", bind=_quotient)
define("div", "number number", "number", group="operators", bind=_whole_quotient)
define(
    "negative",
    "number",
    "number",
    group=_GROUP,
    bind=_unary(lambda a: -a, lambda a: -a),
    total="double",
)
define("positive", "number", "number", group=_GROUP, bind=_unary(lambda a: a, lambda a: a))
define("abs", "number", "number", group=_GROUP, bind=_unary(abs, abs), total="double")
define("floor", "number", "number", group=_GROUP, bind=_whole(ROUND_FLOOR, math.floor))
define("ceil", "number", "number", group=_GROUP, aliases="ceiling",
       bind=_whole(ROUND_CEILING, math.ceil))  # fmt: skip
define("sqrt", "double", "double", _sqrt, group=_GROUP, total="double")
define("sign", "double", "double", _signum, group=_GROUP, aliases="signum", total="double")
define("isnan", "double", "boolean", lambda a: False if a is None else a != a, group=_GROUP,
       sees_null=True, total="double")  # fmt: skip
define(
    "greatest",
    "any any any*",
    None,
    group=_GROUP,
    sees_null=True,
    bind=_extreme(max),
    total="string string string*, double double double*, bigint bigint bigint*, date date date*",
)
define(
    "least",
    "any any any*",
    None,
    group=_GROUP,
    sees_null=True,
    bind=_extreme(min),
    total="string string string*, double double double*, bigint bigint bigint*, date date date*",
)
