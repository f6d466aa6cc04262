"""From a scalar tree to an expression: connectives above, predicates below.

Laws:

    5 < price               ->  price > 5
    x BETWEEN 1 AND 2       ->  x BETWEEN 1 AND 2, one predicate, when the bounds are constants
    x <=> 5                 ->  x = 5 AND x IS NOT NULL         NULL <=> x  ->  x IS NULL
    x IS TRUE               ->  x AND x IS NOT NULL
    x ILIKE 'A%'            ->  lower(x) LIKE 'a%'
    x LIKE ANY ('a', 'b')   ->  x LIKE 'a' OR x LIKE 'b'        ALL  ->  AND
    a < b + 3               ->  the computed attribute `a < b + 3` is TRUE
    f(constants)            ->  its value
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from matchwood.errors import ParseError
from matchwood.lang.functions.evaluate import Failed, TypeProblem, bind
from matchwood.lang.functions.regex import RegexProblem, regex
from matchwood.lang.functions.types import literal_type
from matchwood.lang.literals import LiteralError
from matchwood.lang.names import CONTEXT, is_context
from matchwood.lang.nodes import (
    FLIPPED_OP,
    NEGATED_OP,
    And,
    Between,
    Comparison,
    Const,
    Expr,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Relation,
    Xnor,
    Xor,
)
from matchwood.lang.patterns import canonical
from matchwood.lang.python_values import as_value
from matchwood.lang.scalars import Attr, Call, Cast, Lambda, Lit, Scalar, Var, named, parts, text_of
from matchwood.lang.source import Source

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_BOOLEANS = (
    *_COMPARISONS,
    "<=>",
    "and",
    "or",
    "not",
    "isnull",
    "in",
    "like",
    "ilike",
    "rlike",
    "between",
)
_CASES = ("lower", "upper")
_NO_REGEX = "write a pattern of characters, . \\d \\w \\s, classes, groups, |, * + ? {m,n}, ^ and $"


class Lowering:
    """Makes expressions of the scalar trees of one text."""

    def __init__(self, source: Source | None, place_of: Callable[[Scalar], int]) -> None:
        self._source = source
        self._place_of = place_of

    def _error(self, message: str, node: Scalar) -> ParseError:
        if self._source is None:
            return ParseError(message)
        return ParseError(message, self._source.text, max(self._place_of(node), 0))

    # ── connectives ─────────────────────────────────────────────────────────────────────────────

    def expression(self, node: Scalar) -> Expr:
        """The expression that a tree says."""
        at = self._place_of(node)
        if isinstance(node, Call):
            if node.name in ("and", "or"):
                return self._chain(node, at)
            if node.name == "not":
                return Not(self.expression(node.args[0]), at)
            if node.name == "isnot":
                return self._negation(node.args[0], at)
            if node.name in ("xor", "xnor"):
                kind = Xor if node.name == "xor" else Xnor
                return kind(self.expression(node.args[0]), self.expression(node.args[1]), at)
            if node.name in ("likeany", "likeall"):
                sides = tuple([self.expression(each) for each in node.args])
                return (Or if node.name == "likeany" else And)(sides, at)
            if node.name in _COMPARISONS:
                return self._comparison(node, at)
            if node.name in _TESTS:
                return _TESTS[node.name](self, node, at)
        return self._bare(node, at)

    def _chain(self, node: Call, at: int) -> Expr:
        kind = And if node.name == "and" else Or
        operands: list[Expr] = []
        for each in node.args:
            part = self.expression(each)
            operands += part.operands if isinstance(part, kind) else (part,)
        return kind(tuple(operands), at)

    def _negation(self, node: Scalar, at: int) -> Expr:
        inner = self.expression(node)
        if isinstance(node, Call) and node.name == "between" and isinstance(inner, And):
            sides = tuple([_opposite(each) for each in inner.operands])
            return Or(sides, at)
        if isinstance(node, Call) and node.name in ("likeany", "likeall"):
            assert isinstance(inner, (And, Or))  # NOT LIKE ANY: one of them does not fit
            return type(inner)(tuple([_negated(each, at) for each in inner.operands]), at)
        return _negated(inner, at)

    def _between(self, node: Call, at: int) -> Expr:
        subject, low, high = node.args
        is_known, bottom = self._constant(low)
        is_known_too, top = self._constant(high)
        are_known = is_known and is_known_too and bottom is not None and top is not None
        if are_known and not self._constant(subject)[0]:
            return Between(self._name(subject), bottom, top, False, at)
        sides = (Call(">=", (subject, low)), Call("<=", (subject, high)))
        return And(tuple([self._placed(each, at) for each in sides]), at)

    def _placed(self, node: Call, at: int) -> Expr:
        """An expression of a node that was made on the way, as if it stood at a place."""
        found = self.expression(node)
        return replace(found, position=at) if hasattr(found, "position") else found  # type: ignore[type-var]

    # ── predicates ──────────────────────────────────────────────────────────────────────────────

    def _bare(self, node: Scalar, at: int) -> Expr:
        is_known, value = self._constant(node)
        if is_known:
            if value is None or isinstance(value, bool):
                return Const(value, at)
            raise self._error(
                f"expected a condition, found {text_of(node)[:60]}: compare it with something", node
            )
        return Comparison(self._name(node), "=", True, at)

    def _comparison(self, node: Call, at: int) -> Expr:
        left, right = node.args
        self._check_chain(left, right)
        for one, other in ((left, right), (right, left)):
            if node.name == "=" and other == Lit(True) and _is_condition(one):
                return self.expression(one)
        left_known, low = self._constant(left)
        right_known, high = self._constant(right)
        if left_known and right_known:
            return self._bare(node, at)
        if right_known or left_known:
            value, other = (high, left) if right_known else (low, right)
            if value is None:
                return Const(None, at)
            op = node.name if right_known else FLIPPED_OP[node.name]
            return Comparison(self._name(other), op, value, at)
        related = self._relation(left, node.name, right, at)
        if related is None:
            related = self._relation(right, FLIPPED_OP[node.name], left, at)
        if related is not None:
            return related
        return Comparison(self._name(node), "=", True, at)

    def _check_chain(self, left: Scalar, right: Scalar) -> None:
        for one, other in ((left, right), (right, left)):
            if (
                isinstance(one, Call)
                and one.name in _BOOLEANS
                and isinstance(other, Lit)
                and not isinstance(other.value, (bool, type(None)))
            ):
                raise self._error(
                    "expected one comparison, found a chain: compare one attribute with one "
                    "literal, and join comparisons with AND",
                    other,
                )

    def _relation(self, left: Scalar, op: str, right: Scalar, at: int) -> Expr | None:
        """`left op ctx.y + 5`; None when the right side is no value of the context."""
        offset: Any = 0
        if isinstance(right, Call) and right.name in ("+", "-") and _is_reference(right.args[0]):
            is_known, offset = self._constant(right.args[1])
            if not is_known or isinstance(offset, bool) or not isinstance(offset, (int, float)):
                return None
            offset = -offset if right.name == "-" else offset
            right = right.args[0]
        if not _is_reference(right):
            return None
        assert isinstance(right, Attr)
        return Relation(self._name(left), op, right.name.removeprefix(CONTEXT), offset, at)

    def _safe_equal(self, node: Call, at: int) -> Expr:
        left, right = node.args
        for one, other in ((left, right), (right, left)):
            is_known, value = self._constant(other)
            if not is_known or self._constant(one)[0]:
                continue
            name = self._name(one)
            if value is None:
                return IsNull(name, False, at)
            there = IsNull(name, True, at)
            if value is True and _is_condition(one):
                return And((self.expression(one), there), at)
            return And((Comparison(name, "=", value, at), there), at)
        return self._bare(node, at)

    def _is_null(self, node: Call, at: int) -> Expr:
        is_known, value = self._constant(node.args[0])
        if is_known:
            return Const(value is None, at)
        return IsNull(self._name(node.args[0]), False, at)

    def _in(self, node: Call, at: int) -> Expr:
        subject, *items = node.args
        known = [self._constant(each) for each in items]
        if self._constant(subject)[0]:
            return self._bare(node, at)
        if all(is_known for is_known, _ in known):
            values = tuple([v for _, v in known])
            return In(self._name(subject), values, False, at)
        sides = [self.expression(Call("=", (subject, each))) for each in items]
        return Or(tuple(sides), at) if len(sides) > 1 else sides[0]

    def _like(self, node: Call, at: int) -> Expr:
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
            return Const(None, at)
        if not isinstance(escape, str):
            raise self._error("expected one character in quotes after ESCAPE", escape_node)
        if not isinstance(pattern, str):
            raise self._error("expected a pattern in quotes after LIKE", pattern_node)
        if node.name == "ilike":
            subject, pattern = Call("lower", (subject,)), pattern.lower()
        try:
            text = canonical(pattern, escape)
        except LiteralError as error:
            raise self._error(str(error), pattern_node) from None
        if self._constant(subject)[0]:
            return self._bare(Call("like", (subject, Lit(text))), at)
        return Like(self._name(subject), text, False, at)

    def _rlike(self, node: Call, at: int) -> Expr:
        subject, pattern_node = node.args
        is_known, pattern = self._constant(pattern_node)
        if is_known and pattern is None:
            return Const(None, at)
        if not is_known or not isinstance(pattern, str):
            raise self._error("expected a regular expression in quotes after RLIKE", pattern_node)
        self._check_regex(pattern, pattern_node)
        return self._bare(Call("rlike", (subject, Lit(pattern))), at)

    def _check_regex(self, pattern: str, node: Scalar) -> None:
        try:
            regex(pattern)
        except RegexProblem as problem:
            raise self._error(
                f"expected a regular expression of the kind that is taken, found one where "
                f"{problem}; {_NO_REGEX}",
                node,
            ) from None

    # ── scalars ─────────────────────────────────────────────────────────────────────────────────

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
        if isinstance(node, Cast):
            return Cast(self._settled(node.value), node.type, node.is_try)
        if isinstance(node, Lambda):
            return Lambda(node.names, self._settled(node.body))
        assert isinstance(node, Call)
        return self._settled_call(node)

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
        if name in ("like", "ilike") and len(args) == 3:
            leaf = self._like(node, -1)
            if isinstance(leaf, Const):
                return Lit(leaf.value)
            assert isinstance(leaf, Like)
            subject = Call("lower", args[:1]) if name == "ilike" else args[0]
            return Call("like", (self._settled(subject), Lit(leaf.pattern)))
        if name == "rlike":
            is_known, pattern = self._constant(args[1])
            if not is_known or not isinstance(pattern, str):
                raise self._error("expected a regular expression in quotes after RLIKE", args[1])
            self._check_regex(pattern, args[1])
        settled_args = tuple([self._settled(each) for each in args])
        if name in _CASES and isinstance(settled_args[0], Call) and settled_args[0].name in _CASES:
            return Call(name, settled_args[0].args)  # as Spark's optimiser: it differs for 'ß'
        return Call(name, settled_args)

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
        try:
            return None if value is None else as_value(value)
        except ParseError as error:
            raise self._error(str(error.args[0] if error.args else error), node) from None

    def _evaluated(self, node: Scalar) -> tuple[Any, Any]:
        try:
            kind, compute = bind(_plain(node), {})
            return kind, compute({})
        except (Failed, TypeProblem) as problem:
            word = "fails" if isinstance(problem, Failed) else "is not taken"
            raise self._error(
                f"expected a constant that has a value, found {text_of(node)[:60]}, which {word}: "
                f"{problem}",
                node,
            ) from None


def lowered(tree: Scalar) -> Expr:
    """The expression of a tree that was built in Python."""
    return Lowering(None, lambda node: -1).expression(tree)


def settled(tree: Scalar) -> Scalar:
    """The tree of a computed attribute that was built in Python, as names have it."""
    return Lowering(None, lambda node: -1)._settled(tree)


def _plain(node: Scalar) -> Scalar:
    """A constant tree without the forms that only texts have."""
    if isinstance(node, Call):
        args = tuple([_plain(each) for each in node.args])
        if node.name in ("likeany", "likeall"):
            return Call("or" if node.name == "likeany" else "and", args)
        if node.name == "isnot":
            return Call("not", args)
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
        return Call(node.name, args)
    if isinstance(node, Cast):
        return Cast(_plain(node.value), node.type, node.is_try)
    return Lambda(node.names, _plain(node.body)) if isinstance(node, Lambda) else node


def _reads(node: Scalar) -> bool:
    """Whether a tree reads an event, or a lambda's parameter from outside."""
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, Attr | Var | Lambda):
            return True
        pending += parts(each)
    return False


def _is_condition(node: Scalar) -> bool:
    return isinstance(node, Call) and node.name in (*_BOOLEANS, "isnot", "xor", "xnor")


def _is_reference(node: Scalar) -> bool:
    return isinstance(node, Attr) and is_context(node.name)


def _opposite(node: Expr) -> Expr:
    """NOT of one bound of BETWEEN, as the quick parser writes it."""
    if isinstance(node, (Comparison, Relation)) and not (node.op == "=" and node.name[:1] == "\0"):
        return replace(node, op=NEGATED_OP[node.op])
    return node if isinstance(node, Const) and node.value is None else Not(node)


def _negated(node: Expr, at: int) -> Expr:
    """NOT of one predicate, inside of it where its text says so: x NOT IN (1)."""
    if isinstance(node, In | Like | Between | IsNull) and not node.negated:
        return replace(node, negated=True)
    return Not(node, at)


_TESTS: dict[str, Callable[[Lowering, Call, int], Expr]] = {
    "<=>": Lowering._safe_equal,
    "isnull": Lowering._is_null,
    "in": Lowering._in,
    "between": Lowering._between,
    "like": Lowering._like,
    "ilike": Lowering._like,
    "rlike": Lowering._rlike,
}
