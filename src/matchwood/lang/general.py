"""Text to tree for all of the language: what the quick parser (`parser`) does not take.

Operators by how tightly they bind, as in Spark's grammar:

    OR   XOR XNOR   AND   NOT   IN BETWEEN LIKE RLIKE IS   = <> < <= > >= <=>   + - ||   * / % DIV
    unary -   [ ]

The text becomes one scalar tree.  `lower` then takes its AND, OR and NOT apart: what is left
between them are predicates on attributes or on computed attributes.
"""

from __future__ import annotations

from typing import Any

from matchwood.errors import ParseError
from matchwood.lang.nodes import Expr
from matchwood.lang.operands import OperandReader
from matchwood.lang.reading import MAX_NESTING, TOO_DEEP
from matchwood.lang.scalars import Lit, Scalar
from matchwood.lang.source import Source
from matchwood.lang.tokens import END, OPERATORS

_OR, _XOR, _AND, _NOT, _TEST, _COMPARE, _SUM, _PRODUCT, _UNARY = range(10, 100, 10)
_JOINTS = {"OR": _OR, "XOR": _XOR, "XNOR": _XOR, "AND": _AND}
_TESTS = ("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "IS")
_SUMS = {"+": "+", "-": "-", "||": "||"}
_PRODUCTS = {"*": "*", "/": "/", "%": "%"}


def parse_general(source: Source) -> Expr:
    """The expression of a whole text."""
    from matchwood.lang.lower import Lowering

    reader = _Reader(source)
    try:
        tree = reader.whole()
    except ParseError as error:
        raise Unread(error, REFUSED if reader.is_deep else not reader.is_vague) from None
    try:
        return Lowering(source, reader.position_of).expression(tree)
    except ParseError as error:
        raise Unread(error, REFUSED) from None


REFUSED = 2


class Unread(Exception):
    """Why a text was refused, and how much that says.

    weight  REFUSED: the text reads well, and says what is not supported; 1: something particular is
            wrong at a position; 0: something else was expected there
    """

    def __init__(self, error: ParseError, weight: int) -> None:
        super().__init__(error)
        self.error, self.weight = error, weight


def read_scalar(text: str) -> Scalar:
    """The tree of a computed attribute's canonical text."""
    reader = _Reader(Source(text, len(text)))
    return reader.whole()


class _Reader(OperandReader):
    """Reads operators and what stands between them."""

    def whole(self) -> Scalar:
        word = self._tokens[0].upper()
        if word in ("SELECT", "WHERE") and self._tokens[1] != END:
            hint = "leave the word out" if word == "WHERE" else "write what follows its WHERE"
            raise self._source.expected(0, "a condition", f"{hint}: only the condition is written")
        tree = self._expression(0)
        if self._tokens[self._at] != END:
            raise self._unexpected("an operator or the end of the text")
        return tree

    def _expression(self, least: int) -> Scalar:
        self._open += 1
        if self._open > MAX_NESTING:
            self.is_deep = True
            raise self._source.error(self._at, TOO_DEEP)
        first = self._at
        left = self._prefix(least)
        most = 1000
        while True:
            found = self._operator(left, first, least, most)
            if found is None:
                self._open -= 1
                return left
            left, most = found

    def _operator(self, left: Scalar, first: int, least: int, most: int) -> Any:
        """The tree with one more operator on its right, and what may follow; None: nothing fits."""
        token = self._tokens[self._at]
        word = self._word()
        binds = _JOINTS.get(word, 0)
        if binds:
            if binds < least:
                return None
            self._at += 1
            right = self._expression(binds + 1)
            if word in ("XOR", "XNOR"):
                return self._call(word.lower(), first, left, right), binds + 1
            return self._call(word.lower(), first, left, right), binds + 1
        is_negated = word == "NOT"
        test = self._word(1) if is_negated else word
        if test in _TESTS and (not is_negated or test != "IS"):
            if least > _TEST or most <= _TEST:
                return None
            self._at += 1 + is_negated
            node = self._test(test, left, first)
            if is_negated:
                node = self._call("isnot", first, node)
            return node, _TEST
        op = "<=>" if token == "<=>" else OPERATORS.get(token)
        if op is not None:
            if least > _COMPARE or most <= _TEST:
                return None
            self._at += 1
            return self._call(op, first, left, self._expression(_COMPARE + 1)), _COMPARE + 1
        return self._arithmetic(left, first, least, most)

    def _arithmetic(self, left: Scalar, first: int, least: int, most: int) -> Any:
        token = self._tokens[self._at]
        if most <= _TEST:
            return None
        if token in _PRODUCTS or self._word() == "DIV":
            if least > _PRODUCT:
                return None
            self._at += 1
            name = _PRODUCTS.get(token, "div")
            return self._call(name, first, left, self._expression(_PRODUCT + 1)), 1000
        is_arrow = token == "-" and self._tokens[self._at + 1] == ">"
        if token in _SUMS and not is_arrow:
            if least > _SUM:
                return None
            self._at += 1
            return self._call(_SUMS[token], first, left, self._expression(_SUM + 1)), 1000
        if token[0] in "+-" and len(token) > 1:  # a -5: an operator and a number in one token
            if least > _SUM:
                return None
            self._tokens[self._at] = token[1:]
            return self._call(token[0], first, left, self._expression(_SUM + 1)), 1000
        return None

    def _test(self, word: str, left: Scalar, first: int) -> Scalar:
        if word == "IN":
            return self._in(left, first)
        if word == "BETWEEN":
            low = self._expression(_TEST + 1)
            self._need("AND", "AND and an upper bound")
            high = self._expression(_TEST + 1)
            return self._call("between", first, left, low, high)
        if word == "IS":
            return self._is(left, first)
        if word in ("LIKE", "ILIKE"):
            return self._like(word, left, first)
        return self._call("rlike", first, left, self._expression(_SUM))

    def _in(self, left: Scalar, first: int) -> Scalar:
        self._need("(", "( after IN")
        items = [self._expression(_NOT)]
        while self._tokens[self._at] == ",":
            self._at += 1
            items.append(self._expression(_NOT))
        self._need(")", ", or ) in IN (...)")
        return self._call("in", first, left, *items)

    def _is(self, left: Scalar, first: int) -> Scalar:
        is_negated = self._take("NOT")
        word = self._word()
        self._at += 1
        if word in ("NULL", "UNKNOWN"):
            node = self._call("isnull" if word == "NULL" else "isunknown", first, left)
        elif word in ("TRUE", "FALSE"):
            value = self._made(Lit(word == "TRUE"), self._at - 1)
            node = self._call("<=>", first, left, value)
        elif word == "DISTINCT":
            self._need("FROM", "FROM after IS DISTINCT")
            is_negated = not is_negated
            node = self._call("<=>", first, left, self._expression(_TEST + 1))
        else:
            self._at -= 1
            raise self._unexpected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS")
        return self._call("isnot", first, node) if is_negated else node

    def _like(self, word: str, left: Scalar, first: int) -> Scalar:
        quantifier = self._word()
        name = word.lower()
        if quantifier in ("ANY", "SOME", "ALL") and self._tokens[self._at + 1] == "(":
            self._at += 2
            sides = [self._pattern(name, left, first)]
            while self._tokens[self._at] == ",":
                self._at += 1
                sides.append(self._pattern(name, left, first))
            self._need(")", ", or ) after the patterns")
            if len(sides) == 1:
                return sides[0]
            return self._call("likeall" if quantifier == "ALL" else "likeany", first, *sides)
        return self._pattern(name, left, first)

    def _pattern(self, name: str, left: Scalar, first: int) -> Scalar:
        pattern = self._expression(_SUM)
        escape: Scalar = self._made(Lit("\\"), first)
        if self._take("ESCAPE"):
            escape = self._expression(_SUM)
        return self._call(name, first, left, pattern, escape)

    def _prefix(self, least: int) -> Scalar:
        first = self._at
        token, word = self._tokens[first], self._word()
        if (word == "NOT" or token == "!") and least <= _NOT:
            self._at += 1
            return self._call("not", first, self._expression(_NOT))
        if token in ("-", "+"):
            self._at += 1
            node = self._expression(_UNARY)
            return self._call("positive" if token == "+" else "negative", first, node)
        node = self._primary()
        while self._tokens[self._at] == "[":
            self._at += 1
            node = self._call("[]", first, node, self._expression(0))
            self._need("]")
        return node
