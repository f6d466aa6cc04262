"""Scalar trees inside of predicates: constants folded, computed attributes named.

    settled(2 * 3)            ->  6
    settled(x BETWEEN 1 AND y)  ->  x >= 1 AND x <= y
    settled(x ILIKE 'A%')     ->  lower(x) LIKE 'a%'

Equal trees get equal texts, so that each distinct one is computed once per event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matchwood.errors import ParseError
from matchwood.lang.functions.evaluate import Failed, TypeProblem, Types, bind
from matchwood.lang.functions.regex import RegexProblem, regex
from matchwood.lang.functions.types import literal_type
from matchwood.lang.intervals import Interval
from matchwood.lang.literals import LiteralError
from matchwood.lang.names import is_context
from matchwood.lang.patterns import canonical
from matchwood.lang.python_values import as_value
from matchwood.lang.scalars import (
    Attr,
    Call,
    Cast,
    Lambda,
    Lit,
    Scalar,
    Var,
    is_condition,
    named,
    parts,
    text_of,
    with_parts,
)
from matchwood.lang.source import Source

_CASES = ("lower", "upper")
_NULL_GIVES_NULL = ("=", "<>", "<", "<=", ">", ">=", "not")
_NO_REGEX = "write a pattern of characters, . \\d \\w \\s, classes, groups, |, * + ? {m,n}, ^ and $"


class Settling:
    """Constants and computed attributes of the trees of one text."""

    def __init__(self, source: Source | None, position_of: Callable[[Scalar], int]) -> None:
        self._source = source
        self._place_of = position_of

    def _error(self, message: str, node: Scalar) -> ParseError:
        if self._source is None:
            return ParseError(message)
        return ParseError(message, self._source.text, max(self._place_of(node), 0))

    def _name(self, node: Scalar) -> str:
        """The name of an attribute, or of the computed one that a tree is."""
        if isinstance(node, Attr):
            return node.name
        return named(self._settled(node))

    def _settled(self, node: Scalar) -> Scalar:
        """A tree as computed attributes keep it: constants folded, patterns canonical, no ctx."""
        if isinstance(node, Attr):
            if is_context(node.name):
                raise self._error(
                    f"expected values of the event in a computed attribute, found {node.name}: "
                    "compare a value of the context with an attribute, perhaps with an offset",
                    node,
                )
            return node
        if isinstance(node, (Lit, Var)):
            return node
        folded = self._folded(node)
        if folded is not None:
            return folded
        if isinstance(node, Call):
            return self._settled_call(node)
        return with_parts(node, self._settled)

    def _settled_call(self, node: Call) -> Scalar:
        name, args = node.name, node.args
        if name in ("xor", "xnor"):
            return self._settled(Call("<>" if name == "xor" else "=", args))
        if name in ("likeany", "likeall"):
            return self._settled(Call("or" if name == "likeany" else "and", args))
        if name == "between":
            subject, low, high = (self._settled(each) for each in args)
            return Call("and", (Call(">=", (subject, low)), Call("<=", (subject, high))))
        if name == "isnot":
            inner = args[0]
            if isinstance(inner, Call) and inner.name in ("likeany", "likeall"):
                sides = tuple([Call("not", (each,)) for each in inner.args])
                return self._settled(Call("or" if inner.name == "likeany" else "and", sides))
            return Call("not", (self._settled(inner),))
        if name == "isunknown":
            tested = args[0] if is_condition(args[0]) else Call("=", (args[0], Lit(True)))
            return Call("isnull", (self._settled(tested),))
        if name in ("like", "ilike") and len(args) == 3:
            found = self._pattern(node)
            if found is None:
                return Lit(None)
            return Call("like", (self._settled(found[0]), Lit(found[1])))
        if name == "rlike" and self._regex(args[1]) is None:
            return Lit(None)
        settled_args = tuple([self._settled(each) for each in args])
        if name in ("and", "or"):
            return _decided(name, settled_args)
        if name in _NULL_GIVES_NULL and any(map(_is_null, settled_args)):
            return Lit(None)
        if name in _CASES and isinstance(settled_args[0], Call) and settled_args[0].name in _CASES:
            return Call(name, settled_args[0].args)  # as Spark's optimiser: it differs for 'ß'
        return Call(name, settled_args)

    def _pattern(self, node: Call) -> tuple[Scalar, str] | None:
        """What LIKE or ILIKE looks at, and its pattern in canonical form; None: NULL."""
        subject, pattern_node, escape_node = node.args
        is_known, pattern = self._constant(pattern_node)
        _, escape = self._constant(escape_node)
        if not is_known:
            raise self._error(
                "expected a pattern in quotes after LIKE, found a value of the event: use "
                "contains(), startswith() or endswith()",
                pattern_node,
            )
        if pattern is None:
            return None
        if not isinstance(escape, str):
            raise self._error("expected one character in quotes after ESCAPE", escape_node)
        if not isinstance(pattern, str):
            raise self._error("expected a pattern in quotes after LIKE", pattern_node)
        if node.name == "ilike":
            subject, pattern = Call("lower", (subject,)), pattern.lower()
        try:
            return subject, canonical(pattern, escape)
        except LiteralError as error:
            raise self._error(str(error), pattern_node) from None

    def _regex(self, node: Scalar) -> str | None:
        """The pattern of RLIKE, which must be a supported one; None: NULL."""
        is_known, pattern = self._constant(node)
        if is_known and pattern is None:
            return None
        if not is_known or not isinstance(pattern, str):
            raise self._error("expected a regular expression in quotes after RLIKE", node)
        try:
            regex(pattern)
        except RegexProblem as problem:
            raise self._error(
                f"expected a regular expression in the supported subset, found one where "
                f"{problem}; {_NO_REGEX}",
                node,
            ) from None
        return pattern

    def _folded(self, node: Scalar) -> Lit | None:
        """The literal that a constant tree is, if a literal has the very same type."""
        if _reads(node):
            return None
        kind, value = self._evaluated(node)
        if value is None or isinstance(value, (list, dict)):
            return None
        return Lit(value) if literal_type(value) == kind else None

    def _constant(self, node: Scalar) -> tuple[bool, Any]:
        """Whether a tree is a constant, and the value as predicates have it."""
        if isinstance(node, Lit):
            return True, self._value(node.value, node)
        if isinstance(node, Attr) or _reads(node):
            return False, None
        _, value = self._evaluated(node)
        if isinstance(value, (list, dict)):
            return False, None
        return True, self._value(value, node)

    def _value(self, value: Any, node: Scalar) -> Any:
        if value is None or isinstance(value, Interval):
            return value
        try:
            return as_value(value)
        except ParseError as error:
            raise self._error(str(error.args[0] if error.args else error), node) from None

    def _evaluated(self, node: Scalar) -> tuple[Any, Any]:
        try:
            kind, compute = bind(_plain(node), Types())
            return kind, compute({})
        except (Failed, TypeProblem) as problem:
            word = "fails" if isinstance(problem, Failed) else "is not supported"
            raise self._error(
                f"expected a constant that has a value, found {text_of(node)[:60]}, which {word}: "
                f"{problem}",
                node,
            ) from None


def _decided(name: str, args: tuple[Scalar, ...]) -> Scalar:
    """AND and OR without constants, as Spark's optimiser: what cannot decide is not computed.

    a AND FALSE  ->  FALSE      a AND TRUE  ->  a, where a is a condition by its form
    """
    stops = name == "or"
    if any(isinstance(each, Lit) and each.value is stops for each in args):
        return Lit(stops)
    neutral = not stops
    others = [each for each in args if not (isinstance(each, Lit) and each.value is neutral)]
    if len(others) == len(args) or not all(map(is_condition, others)):
        return Call(name, args)  # of other types it would be refused, and has to be
    if not others:
        return Lit(not stops)
    return others[0] if len(others) == 1 else Call(name, tuple(others))


def _is_null(node: Scalar) -> bool:
    """Whether a tree is NULL whatever the event."""
    while isinstance(node, Cast):
        node = node.value
    return isinstance(node, Lit) and node.value is None


def _plain(node: Scalar) -> Scalar:
    """A constant tree without the forms that only texts have."""
    node = with_parts(node, _plain)
    if isinstance(node, Call):
        args = node.args
        if node.name in ("likeany", "likeall"):
            return Call("or" if node.name == "likeany" else "and", args)
        if node.name in ("isnot", "isunknown"):
            return Call("not" if node.name == "isnot" else "isnull", args)
        if node.name == "between":
            return Call("and", (Call(">=", args[:2]), Call("<=", (args[0], args[2]))))
        if node.name in ("xor", "xnor"):
            return Call("<>" if node.name == "xor" else "=", args)
        if node.name in ("like", "ilike") and len(args) == 3:
            subject, pattern = args[0], args[1]
            if not (isinstance(pattern, Lit) and isinstance(args[2], Lit)):
                raise TypeProblem("a pattern that is no literal")
            if pattern.value is None:
                return Lit(None)
            text = str(pattern.value)
            if node.name == "ilike":
                subject, text = Call("lower", (subject,)), text.lower()
            try:
                return Call("like", (subject, Lit(canonical(text, str(args[2].value)))))
            except LiteralError as error:
                raise TypeProblem(str(error)) from None
    return node


def _reads(node: Scalar) -> bool:
    """Whether a tree reads an event, or a lambda's parameter from outside."""
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, Attr | Var | Lambda):
            return True
        pending += parts(each)
    return False
