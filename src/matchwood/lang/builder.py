"""Expressions built in Python: `attr("price").between(20, 40) & ~attr("format").isin("paperback")`.

The result is the very tree that the text gives.  Wrong types are a TypeError; a value, a name or a
pattern that the language cannot hold is a ParseError, as it would be in text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from matchwood.errors import ParseError
from matchwood.lang import nodes
from matchwood.lang.literals import (
    LiteralError,
    as_offset,
)
from matchwood.lang.names import CONTEXT, is_context, problem, written
from matchwood.lang.patterns import canonical, starts_with
from matchwood.lang.python_values import as_text, as_value
from matchwood.lang.scalars import Call, Lit, Scalar, named, tree_of


def attr(name: str) -> Attribute:
    """An attribute to build expressions with.

    >>> str((attr("price") < 20) & attr("in_stock"))
    'price < 20 AND in_stock'
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the attribute's name as str, found {type(name).__name__}")
    trouble = problem(name)
    if is_context(name):
        trouble = f"write ctx({name.removeprefix(CONTEXT)!r}) for a value of the context"
    if trouble:
        raise ParseError(f"expected an attribute, found {name!r}: {trouble}")
    return Attribute(str(name))


def ctx(name: str) -> ContextValue:
    """A value of the subscription's context, to build expressions with.

    >>> str((ctx("unread") < 100) & attr("price").between(ctx("target") - 5, ctx("target") + 5))
    'ctx.unread < 100 AND price >= ctx.target - 5 AND price <= ctx.target + 5'
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the context value's name as str, found {type(name).__name__}")
    trouble = problem(CONTEXT + name)
    if trouble:
        raise ParseError(f"expected a value of the context, found {name!r}: {trouble}")
    return ContextValue(CONTEXT + name)


class Attribute(nodes.Boolean):
    """A named attribute; alone it is a boolean, compared it is a predicate."""

    __slots__ = ("name",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        self.name = name

    def expression(self) -> nodes.Expr:
        return nodes.Comparison(self.name, "=", True)

    def __eq__(self, value: object) -> nodes.Expr:  # type: ignore[override]
        return self._compared("=", value)

    def __ne__(self, value: object) -> nodes.Expr:  # type: ignore[override]
        return self._compared("<>", value)

    def __lt__(self, value: object) -> nodes.Expr:
        return self._compared("<", value)

    def __le__(self, value: object) -> nodes.Expr:
        return self._compared("<=", value)

    def __gt__(self, value: object) -> nodes.Expr:
        return self._compared(">", value)

    def __ge__(self, value: object) -> nodes.Expr:
        return self._compared(">=", value)

    # -- computed attributes ------------------------------------------------------------------

    def __add__(self, other: object) -> Attribute:
        return _computed("+", self, other)

    def __radd__(self, other: object) -> Attribute:
        return _computed("+", other, self)

    def __sub__(self, other: object) -> Attribute:
        return _computed("-", self, other)

    def __rsub__(self, other: object) -> Attribute:
        return _computed("-", other, self)

    def __mul__(self, other: object) -> Attribute:
        return _computed("*", self, other)

    def __rmul__(self, other: object) -> Attribute:
        return _computed("*", other, self)

    def __truediv__(self, other: object) -> Attribute:
        return _computed("/", self, other)

    def __rtruediv__(self, other: object) -> Attribute:
        return _computed("/", other, self)

    def __mod__(self, other: object) -> Attribute:
        return _computed("%", self, other)

    def __neg__(self) -> Attribute:
        return _computed("negative", self)

    def __getitem__(self, key: int | str) -> Attribute:
        """The element of an array, from 0, or the value of a map."""
        return _computed("[]", self, key)

    __iter__ = None

    def rlike(self, pattern: str) -> nodes.Expr:
        """Holds a part that fits the regular expression."""
        return _lowered(Call("rlike", (_scalar(self), Lit(as_text(pattern, "a pattern")))))

    def ilike(self, pattern: str) -> nodes.Expr:
        """As `like`, whatever the case."""
        escape = Lit("\\")
        return _lowered(Call("ilike", (_scalar(self), Lit(as_text(pattern, "a pattern")), escape)))

    def eq_null_safe(self, value: object) -> nodes.Expr:
        """Equal, where NULL equals NULL: `<=>`."""
        return _lowered(Call("<=>", (_scalar(self), _scalar(value))))

    def between(self, low: object, high: object) -> nodes.Expr:
        """From low to high, both included."""
        if type(low) is Attribute or type(high) is Attribute:
            return nodes.And((self._compared(">=", low), self._compared("<=", high)))
        if isinstance(low, ContextValue) or isinstance(high, ContextValue):
            return nodes.And((self._compared(">=", low), self._compared("<=", high)))
        return nodes.Between(self.name, as_value(low), as_value(high))

    def isin(self, *values: Any) -> nodes.Expr:
        """One of the values, given one by one or as one list; None stands for NULL."""
        if len(values) == 1 and isinstance(values[0], Iterable) and not isinstance(values[0], str):
            values = tuple(values[0])
        if not values:
            raise ParseError(
                f"expected at least one value, found none: {self.name} in no value at all is FALSE"
            )
        references = [self._compared("=", v) for v in values if isinstance(v, ContextValue)]
        if references:
            rest = [v for v in values if not isinstance(v, ContextValue)]
            sides = (*references, self.isin(*rest)) if rest else tuple(references)
            return nodes.Or(sides) if len(sides) > 1 else sides[0]
        return nodes.In(self.name, tuple(None if v is None else as_value(v) for v in values))

    def like(self, pattern: str) -> nodes.Expr:
        r"""Matches the pattern: % is any text, _ any character, a backslash makes them plain."""
        try:
            return nodes.Like(self.name, canonical(as_text(pattern, "a pattern")))
        except LiteralError as error:
            raise ParseError(str(error)) from None

    def startswith(self, prefix: str) -> nodes.Expr:
        """Starts with this very text."""
        return nodes.Like(self.name, starts_with(as_text(prefix, "a prefix")))

    def is_null(self) -> nodes.Expr:
        return nodes.IsNull(self.name)

    def is_not_null(self) -> nodes.Expr:
        return nodes.IsNull(self.name, negated=True)

    def _compared(self, op: str, value: object) -> nodes.Expr:
        if isinstance(value, ContextValue):
            return nodes.Relation(self.name, op, value.name.removeprefix(CONTEXT), value.offset)
        if isinstance(value, Attribute):
            return _lowered(Call(op, (_scalar(self), _scalar(value))))
        return nodes.Comparison(self.name, op, as_value(value))

    def __repr__(self) -> str:
        return f"attr({self.name!r})"

    def __str__(self) -> str:
        return written(self.name)


def _scalar(value: object) -> Scalar:
    """An attribute or a constant as a part of a computed attribute."""
    if isinstance(value, Attribute):
        return tree_of(value.name)
    if isinstance(value, Decimal):
        return Lit(value)
    if isinstance(value, (list, tuple)):
        return Call("array", tuple([_scalar(each) for each in value]))
    return Lit(None if value is None else as_value(value))


def _computed(name: str, *args: object) -> Attribute:
    from matchwood.lang.lower import settled

    return Attribute(named(settled(Call(name, tuple([_scalar(each) for each in args])))))


def _lowered(tree: Scalar) -> nodes.Expr:
    from matchwood.lang.lower import lowered

    return lowered(tree)


class Functions:
    """The functions of computed attributes: `fn.lower(attr("name")) == "x"`."""

    def __getattr__(self, name: str) -> Callable[..., Attribute]:
        from matchwood.lang.functions.evaluate import FUNCTIONS
        from matchwood.lang.functions.registry import find, nearest

        function = find(name) if FUNCTIONS else None
        if function is None or not name.isidentifier():
            near = nearest(name)
            hint = f"did you mean {near}?" if near else "docs/language.md lists them"
            raise AttributeError(f"expected a function that is on the list, found {name!r}: {hint}")
        canonical_name, fewest, most = function.name, function.fewest, function.most

        def call(*args: object) -> Attribute:
            if not fewest <= len(args) <= most:
                takes = " ".join(function.takes)
                raise TypeError(f"expected {canonical_name}({takes}), found {len(args)} arguments")
            return _computed(canonical_name, *args)

        return call


fn = Functions()


class ContextValue(Attribute):
    """A value of the context; `+` and `-` give it an offset, to compare with."""

    __slots__ = ("offset",)
    __hash__ = None

    def __init__(self, name: str, offset: int | float = 0) -> None:
        super().__init__(name)
        self.offset = offset

    def __add__(self, offset: object) -> ContextValue:
        return self._moved(as_value(offset))

    def __sub__(self, offset: object) -> ContextValue:
        value = as_value(offset)
        if isinstance(value, Decimal):
            value = as_offset(value)
        return self._moved(-value if isinstance(value, (int, float)) else value)

    def _moved(self, offset: nodes.Value) -> ContextValue:
        if isinstance(offset, Decimal):
            offset = as_offset(offset)
        if isinstance(offset, bool) or not isinstance(offset, (int, float)):
            raise TypeError(f"expected a number to add, found {type(offset).__name__}")
        if type(self.offset) is not int or self.offset != 0:
            raise TypeError("expected one offset, found two: add them up first")
        return ContextValue(self.name, offset)

    def expression(self) -> nodes.Expr:
        self._plain()
        return super().expression()

    def between(self, low: object, high: object) -> nodes.Expr:
        self._plain()
        return super().between(low, high)

    def isin(self, *values: Any) -> nodes.Expr:
        self._plain()
        return super().isin(*values)

    def like(self, pattern: str) -> nodes.Expr:
        self._plain()
        return super().like(pattern)

    def startswith(self, prefix: str) -> nodes.Expr:
        self._plain()
        return super().startswith(prefix)

    def is_null(self) -> nodes.Expr:
        self._plain()
        return super().is_null()

    def is_not_null(self) -> nodes.Expr:
        self._plain()
        return super().is_not_null()

    def _compared(self, op: str, value: object) -> nodes.Expr:
        if type(self.offset) is int and self.offset == 0:
            if type(value) is Attribute:
                return value._compared(nodes.FLIPPED_OP[op], self)
            return super()._compared(op, value)
        if isinstance(value, Attribute):  # the offset goes to the other side
            value_is_plain = not isinstance(value, ContextValue) or value.offset == 0
            if value_is_plain:
                return value._compared(nodes.FLIPPED_OP[op], self)
        self._plain()
        raise AssertionError

    def _plain(self) -> None:
        if type(self.offset) is not int or self.offset != 0:
            raise TypeError(
                f"expected an attribute beside {self.name} with an offset: compare an attribute "
                "with it, or move the offset to the constant"
            )

    def __repr__(self) -> str:
        moved = f" + {self.offset!r}" if self.offset else ""
        return f"ctx({self.name.removeprefix(CONTEXT)!r}){moved}"
