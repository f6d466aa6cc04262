"""From a scalar tree to an expression: connectives above, predicates below.

Laws:

    5 < price               ->  price > 5
    x BETWEEN 1 AND 2       ->  x BETWEEN 1 AND 2, one predicate, when the bounds are constants
    x <=> 5                 ->  x = 5 AND (x = 0) IS NOT NULL   NULL <=> x  ->  x IS NULL
    x IS TRUE               ->  x AND (x = TRUE) IS NOT NULL    see `truth`
    x ILIKE 'A%'            ->  lower(x) LIKE 'a%'
    x LIKE ANY ('a', 'b')   ->  x LIKE 'a' OR x LIKE 'b'        ALL  ->  AND
    a < b + 3               ->  the computed attribute `a < b + 3` is TRUE
    b - a > INTERVAL '1' DAY  ->  likewise: intervals are compared, and are no keys of an index
    f(constants)            ->  its value
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from matchwood.lang import nodes
from matchwood.lang.intervals import Interval
from matchwood.lang.names import CONTEXT, is_context
from matchwood.lang.scalars import Attr, Call, Lit, Scalar, is_condition, text_of
from matchwood.lang.settle import Settling
from matchwood.lang.truth import is_false, is_simple, is_true, is_unknown

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


class Lowering(Settling):
    """Makes expressions of the scalar trees of one text."""

    # ── connectives ─────────────────────────────────────────────────────────────────────────────

    def expression(self, node: Scalar) -> nodes.Expr:
        """The expression that a tree says."""
        at = self._place_of(node)
        if isinstance(node, Call):
            if node.name in ("and", "or"):
                return self._chain(node, at)
            if node.name == "not":
                return nodes.Not(self.expression(node.args[0]), at)
            if node.name == "isnot":
                return self._negation(node.args[0], at)
            if node.name in ("xor", "xnor"):
                kind = nodes.Xor if node.name == "xor" else nodes.Xnor
                return kind(self.expression(node.args[0]), self.expression(node.args[1]), at)
            if node.name in ("likeany", "likeall"):
                sides = tuple([self.expression(each) for each in node.args])
                return (nodes.Or if node.name == "likeany" else nodes.And)(sides, at)
            if node.name in _COMPARISONS:
                return self._comparison(node, at)
            if node.name in _TESTS:
                return _TESTS[node.name](self, node, at)
        return self._bare(node, at)

    def _chain(self, node: Call, at: int) -> nodes.Expr:
        kind = nodes.And if node.name == "and" else nodes.Or
        operands: list[nodes.Expr] = []
        for each in node.args:
            part = self.expression(each)
            operands += part.operands if isinstance(part, kind) else (part,)
        return kind(tuple(operands), at)

    def _negation(self, node: Scalar, at: int) -> nodes.Expr:
        inner = self.expression(node)
        if isinstance(node, Call) and node.name == "between" and isinstance(inner, nodes.And):
            sides = tuple([_opposite(each) for each in inner.operands])
            return nodes.Or(sides, at)
        if isinstance(node, Call) and node.name in ("likeany", "likeall"):
            assert isinstance(
                inner, (nodes.And, nodes.Or)
            )  # NOT LIKE ANY: one of them does not fit
            return type(inner)(tuple([_negated(each, at) for each in inner.operands]), at)
        return _negated(inner, at)

    def _between(self, node: Call, at: int) -> nodes.Expr:
        subject, low, high = node.args
        is_known, bottom = self._constant(low)
        is_known_too, top = self._constant(high)
        are_known = is_known and is_known_too and bottom is not None and top is not None
        are_known = are_known and not isinstance(bottom, Interval)
        if are_known and not self._constant(subject)[0]:
            return nodes.Between(self._name(subject), bottom, top, False, at)
        sides = (Call(">=", (subject, low)), Call("<=", (subject, high)))
        return nodes.And(tuple([self._placed(each, at) for each in sides]), at)

    def _placed(self, node: Call, at: int) -> nodes.Expr:
        """An expression of a node that was made on the way, as if it stood at `at`."""
        found = self.expression(node)
        return replace(found, position=at) if hasattr(found, "position") else found  # type: ignore[type-var]

    # ── predicates ──────────────────────────────────────────────────────────────────────────────

    def _bare(self, node: Scalar, at: int) -> nodes.Expr:
        is_known, value = self._constant(node)
        if is_known:
            if value is None or isinstance(value, bool):
                return nodes.Const(value, at)
            raise self._error(
                f"expected a condition, found {text_of(node)[:60]}: compare it with something", node
            )
        return nodes.Comparison(self._name(node), "=", True, at)

    def _comparison(self, node: Call, at: int) -> nodes.Expr:
        left, right = node.args
        self._check_chain(left, right)
        for one, other in ((left, right), (right, left)):
            if node.name == "=" and other == Lit(True) and is_condition(one):
                return self.expression(one)
        left_known, low = self._constant(left)
        right_known, high = self._constant(right)
        if left_known and right_known:
            return self._bare(node, at)
        if right_known or left_known:
            value, other = (high, left) if right_known else (low, right)
            if value is None:
                return nodes.Const(None, at)
            if isinstance(value, Interval):
                return nodes.Comparison(self._name(node), "=", True, at)
            op = node.name if right_known else nodes.FLIPPED_OP[node.name]
            return nodes.Comparison(self._name(other), op, value, at)
        related = self._relation(left, node.name, right, at)
        if related is None:
            related = self._relation(right, nodes.FLIPPED_OP[node.name], left, at)
        if related is not None:
            return related
        return nodes.Comparison(self._name(node), "=", True, at)

    def _check_chain(self, left: Scalar, right: Scalar) -> None:
        for one, other in ((left, right), (right, left)):
            if (
                is_condition(one)
                and isinstance(other, Lit)
                and not isinstance(other.value, (bool, type(None)))
            ):
                raise self._error(
                    "expected one comparison, found a chain: compare one attribute with one "
                    "literal, and join comparisons with AND",
                    other,
                )

    def _relation(self, left: Scalar, op: str, right: Scalar, at: int) -> nodes.Expr | None:
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
        return nodes.Relation(self._name(left), op, right.name.removeprefix(CONTEXT), offset, at)

    def _safe_equal(self, node: Call, at: int) -> nodes.Expr:
        left, right = node.args
        for one, other in ((left, right), (right, left)):
            is_known, value = self._constant(other)
            if not is_known or self._constant(one)[0]:
                continue
            if value is None:
                return self._is_null(Call("isnull", (one,)), at)
            if isinstance(value, Interval):
                break
            if not isinstance(value, bool):
                return is_true(nodes.Comparison(self._name(one), "=", value, at))
            inner = self._truth(one)
            if inner is not None:
                return is_true(inner) if value else is_false(inner)
        return self._bare(node, at)

    def _truth(self, node: Scalar) -> nodes.Expr | None:
        """The expression behind a test such as IS TRUE; None if it has to be computed."""
        inner = self.expression(node)
        return inner if is_simple(inner) else None

    def _is_null(self, node: Call, at: int) -> nodes.Expr:
        subject = node.args[0]
        is_known, value = self._constant(subject)
        if is_known:
            return nodes.Const(value is None, at)
        if node.name == "isunknown" or is_condition(subject):
            inner = self._truth(subject)
            if inner is not None:
                return is_unknown(inner, at)
        return nodes.IsNull(self._name(subject), False, at)

    def _in(self, node: Call, at: int) -> nodes.Expr:
        subject, *items = node.args
        known = [self._constant(each) for each in items]
        is_computed = any(isinstance(value, Interval) for _, value in known)
        if is_computed or self._constant(subject)[0]:
            return self._bare(node, at)
        if all(is_known for is_known, _ in known):
            values = tuple([v for _, v in known])
            return nodes.In(self._name(subject), values, False, at)
        sides = [self.expression(Call("=", (subject, each))) for each in items]
        return nodes.Or(tuple(sides), at) if len(sides) > 1 else sides[0]

    def _like(self, node: Call, at: int) -> nodes.Expr:
        found = self._pattern(node)
        if found is None:
            return nodes.Const(None, at)
        subject, pattern = found
        if self._constant(subject)[0]:
            return self._bare(Call("like", (subject, Lit(pattern))), at)
        return nodes.Like(self._name(subject), pattern, False, at)

    def _rlike(self, node: Call, at: int) -> nodes.Expr:
        pattern = self._regex(node.args[1])
        if pattern is None:
            return nodes.Const(None, at)
        return self._bare(Call("rlike", (node.args[0], Lit(pattern))), at)


def lowered(tree: Scalar) -> nodes.Expr:
    """The expression of a tree that was built in Python."""
    return Lowering(None, lambda node: -1).expression(tree)


def settled(tree: Scalar) -> Scalar:
    """A tree that was built in Python, rewritten to the form in which its text would be read."""
    return Lowering(None, lambda node: -1)._settled(tree)


def _is_reference(node: Scalar) -> bool:
    return isinstance(node, Attr) and is_context(node.name)


def _opposite(node: nodes.Expr) -> nodes.Expr:
    """NOT of one bound of BETWEEN, as the quick parser writes it."""
    if isinstance(node, (nodes.Comparison, nodes.Relation)) and not (
        node.op == "=" and node.name[:1] == "\0"
    ):
        return replace(node, op=nodes.NEGATED_OP[node.op])
    return node if isinstance(node, nodes.Const) and node.value is None else nodes.Not(node)


def _negated(node: nodes.Expr, at: int) -> nodes.Expr:
    """NOT of one predicate, inside of it where its text says so: x NOT IN (1)."""
    if isinstance(node, nodes.In | nodes.Like | nodes.Between | nodes.IsNull) and not node.negated:
        return replace(node, negated=True)
    return nodes.Not(node, at)


_TESTS: dict[str, Callable[[Lowering, Call, int], nodes.Expr]] = {
    "<=>": Lowering._safe_equal,
    "isnull": Lowering._is_null,
    "isunknown": Lowering._is_null,
    "in": Lowering._in,
    "between": Lowering._between,
    "like": Lowering._like,
    "ilike": Lowering._like,
    "rlike": Lowering._rlike,
}
