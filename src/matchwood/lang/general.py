"""Text to tree for all of the language: what the quick parser (`parser`) does not take.

Operators by how tightly they bind, as in Spark's grammar:

    OR   XOR XNOR   AND   NOT   IN BETWEEN LIKE RLIKE IS   = <> < <= > >= <=>   + - ||   * / % DIV
    unary -   [ ]

The text becomes one scalar tree.  `lower` then takes its AND, OR and NOT apart: what is left
between them are predicates on attributes or on computed attributes.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from matchwood.errors import ParseError
from matchwood.lang.functions import evaluate  # noqa: F401 - which puts all functions on the list
from matchwood.lang.functions.casts import TYPE_NAMES
from matchwood.lang.functions.registry import find, nearest
from matchwood.lang.hints import AGGREGATES, NOT_DETERMINISTIC, SECOND_LOOK
from matchwood.lang.literals import LiteralError, number
from matchwood.lang.nodes import Expr
from matchwood.lang.scalars import Attr, Call, Cast, Lambda, Lit, Scalar, Var
from matchwood.lang.source import Source
from matchwood.lang.tokens import END, OPERATORS, WORDS
from matchwood.lang.values import CONSTANTS, is_name, is_typed, literal

MAX_NESTING = 100
"""Deepest nesting of computed attributes, parentheses included."""

_OR, _XOR, _AND, _NOT, _TEST, _COMPARE, _SUM, _PRODUCT, _UNARY = range(10, 100, 10)
_JOINTS = {"OR": _OR, "XOR": _XOR, "XNOR": _XOR, "AND": _AND}
_TESTS = ("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "IS")
_SUMS = {"+": "+", "-": "-", "||": "||"}
_PRODUCTS = {"*": "*", "/": "/", "%": "%"}
_QUOTES = "'\""


def parse_general(source: Source) -> Expr:
    """The expression of a whole text."""
    from matchwood.lang.lower import Lowering

    reader = _Reader(source)
    try:
        tree = reader.whole()
    except ParseError as error:
        raise Unread(error, REFUSED if reader.is_deep else not reader.is_vague) from None
    try:
        return Lowering(source, reader.place_of).expression(tree)
    except ParseError as error:
        raise Unread(error, REFUSED) from None


REFUSED = 2


class Unread(Exception):
    """Why a text was not taken, and how much that says.

    weight  REFUSED: the text reads well, and says what is not taken; 1: something particular is
            wrong at a place; 0: something else was expected there
    """

    def __init__(self, error: ParseError, weight: int) -> None:
        super().__init__(error)
        self.error, self.weight = error, weight


def read_scalar(text: str) -> Scalar:
    """The tree of a computed attribute's canonical text."""
    reader = _Reader(Source(text, len(text)))
    return reader.whole()


class _Reader:
    """Reads tokens from left to right; `at` is the next one."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._tokens = source.tokens
        self._at = 0
        self._open = 0
        self.is_vague = False
        self.is_deep = False
        self._depth: dict[int, tuple[Scalar, int, int]] = {}
        self._parameters: list[str] = []

    def whole(self) -> Scalar:
        word = self._tokens[0].upper()
        if word in ("SELECT", "WHERE") and self._tokens[1] != END:
            hint = "leave the word out" if word == "WHERE" else "write what follows its WHERE"
            raise self._source.expected(0, "a condition", f"{hint}: only the condition is written")
        tree = self._expression(0)
        if self._tokens[self._at] != END:
            raise self._unexpected("an operator or the end of the text")
        return tree

    def place_of(self, node: Scalar) -> int:
        """Where a node begins in the text; -1 when it was made on the way."""
        found = self._depth.get(id(node))
        return -1 if found is None else found[2]

    # ── nodes ───────────────────────────────────────────────────────────────────────────────────

    def _made(self, node: Scalar, first: int, *below: Scalar) -> Scalar:
        """Note where a node begins and how deep it is."""
        depth = 1 + max([self._depth[id(each)][1] for each in below], default=0)
        if depth > MAX_NESTING:
            self.is_deep = True
            raise self._source.error(first, _TOO_DEEP)
        place = self._source.places[first]
        if below and id(below[0]) in self._depth:
            place = min(place, self._depth[id(below[0])][2])
        self._depth[id(node)] = node, depth, place
        return node

    def _call(self, name: str, first: int, *args: Scalar) -> Scalar:
        if name in ("and", "or"):
            flat: list[Scalar] = []
            for each in args:
                flat += each.args if isinstance(each, Call) and each.name == name else (each,)
            return self._made(Call(name, tuple(flat)), first, *flat)
        return self._made(Call(name, args), first, *args)

    def _word(self, ahead: int = 0) -> str:
        token = self._tokens[self._at + ahead]
        return token.upper() if token.isascii() and token.isidentifier() else ""

    def _take(self, *words: str) -> bool:
        if self._word() in words:
            self._at += 1
            return True
        return False

    def _need(self, token: str, what: str = "") -> None:
        found = self._tokens[self._at]
        if found != token and self._word() != token:
            raise self._unexpected(what or token)
        self._at += 1

    def _unexpected(self, what: str) -> ParseError:
        i = self._at
        source = self._source
        word = self._word()
        if word == "OVER":
            return source.expected(i, what, "windows look at other events, a condition at one")
        if i and self._tokens[i - 1][-1] in _QUOTES and self._tokens[i] != END:
            end = source.places[i - 1] + len(self._tokens[i - 1])
            if end == source.places[i] and self._tokens[i][0].isalnum():
                return source.expected(i, what, "a quote inside a string is written twice: 'it''s'")
        self.is_vague = True
        return source.expected(i, what, SECOND_LOOK.get(self._tokens[i], ""))

    # ── operators ───────────────────────────────────────────────────────────────────────────────

    def _expression(self, least: int) -> Scalar:
        self._open += 1
        if self._open > MAX_NESTING:
            self.is_deep = True
            raise self._source.error(self._at, _TOO_DEEP)
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

    # ── what operators stand between ────────────────────────────────────────────────────────────

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

    def _primary(self) -> Scalar:
        first = self._at
        token, word = self._tokens[first], self._word()
        if token == "(":
            self._at += 1
            node = self._expression(0)
            if self._tokens[self._at] == END:
                raise self._source.error(
                    first, "expected a ) for this (, found the end of the text: close it"
                )
            self._need(")")
            return node
        if token[0] in "0123456789." or (token[0] in "+-" and len(token) > 1):
            return self._number()
        if token[0] in _QUOTES or (token[0] in "rR" and token[-1] in _QUOTES):
            return self._literal()
        if word == "CASE":
            return self._case()
        if word in ("CAST", "TRY_CAST") and self._tokens[first + 1] == "(":
            return self._cast(word == "TRY_CAST")
        if word == "INTERVAL" and self._tokens[first + 1] not in OPERATORS:
            hint = "intervals are not part of the language: use date_add, or compare with a literal"
            raise self._source.expected(first, "a value", hint)
        if WORDS.get(token) in CONSTANTS:
            self._at += 1
            return self._made(Lit(CONSTANTS[WORDS[token]]), first)
        if not is_name(token):
            raise self._unexpected("an attribute, a constant or a function")
        if is_typed(self._source, first):
            return self._literal()
        if self._tokens[first + 1] == "(":
            return self._function()
        self._at += 1
        if token in self._parameters:
            return self._made(Var(token), first)
        name = self._source.name(first)
        if token.upper() in NOT_DETERMINISTIC:
            raise self._source.expected(first, "an attribute", NOT_DETERMINISTIC[token.upper()])
        return self._made(Attr(name), first)

    def _literal(self) -> Scalar:
        first = self._at
        value, self._at = literal(self._source, first)
        return self._made(Lit(value), first)

    def _number(self) -> Scalar:
        first = self._at
        text = self._tokens[first]
        self._at += 1
        try:
            value: Any = number(text)
        except LiteralError as error:
            raise self._source.error(first, str(error)) from None
        bare = text.lstrip("+-").upper()
        if bare.endswith("BD"):
            value = Decimal(text[:-2])
        elif ("." in bare and bare[-1] not in "DF" and "E" not in bare) or (
            bare.isdigit() and not isinstance(value, int)
        ):
            value = Decimal(text)
        return self._made(Lit(value), first)

    def _case(self) -> Scalar:
        first = self._at
        self._at += 1
        subject = None if self._word() == "WHEN" else self._expression(0)
        args: list[Scalar] = []
        while self._take("WHEN"):
            condition = self._expression(0)
            if subject is not None:
                condition = self._call("=", first, subject, condition)
            self._need("THEN", "THEN after WHEN ...")
            args += [condition, self._expression(0)]
        if not args:
            raise self._unexpected("WHEN after CASE")
        args.append(self._expression(0) if self._take("ELSE") else self._made(Lit(None), first))
        self._need("END", "END of CASE")
        return self._call("case", first, *args)

    def _cast(self, is_try: bool) -> Scalar:
        first = self._at
        self._at += 2
        value = self._expression(0)
        self._need("AS", "AS and a type")
        kind = self._type()
        self._need(")")
        return self._made(Cast(value, kind, is_try), first, value)

    def _type(self) -> str:
        name = self._tokens[self._at].lower()
        if name not in TYPE_NAMES:
            known = ", ".join(sorted(set(TYPE_NAMES)))
            raise self._source.expected(self._at, "a type", f"casts go to {known}")
        self._at += 1
        if not TYPE_NAMES[name].startswith("decimal") or self._tokens[self._at] != "(":
            return TYPE_NAMES[name]
        sizes = []
        while self._tokens[self._at] in ("(", ","):
            self._at += 1
            size = self._tokens[self._at]
            if not (size.isascii() and size.isdigit()):
                raise self._unexpected("a number of digits")
            sizes.append(int(size))
            self._at += 1
        self._need(")")
        precision, scale = (*sizes, 0)[:2]
        if not 1 <= precision <= 38 or scale > precision:
            raise self._source.error(self._at - 1, "expected 1 to 38 digits, found another number")
        return f"decimal({precision},{scale})"

    def _function(self) -> Scalar:
        first = self._at
        name = self._tokens[first].lower()
        function = find(name)
        if name in TYPE_NAMES and function is None:
            self._at += 2
            value = self._expression(0)
            self._need(")")
            return self._made(Cast(value, TYPE_NAMES[name]), first, value)
        if function is None or not name.isidentifier():
            raise self._unknown(first, name)
        self._at += 2
        args: list[Scalar] = []
        while self._tokens[self._at] != ")":
            args.append(self._argument())
            if self._tokens[self._at] != ",":
                break
            self._at += 1
        self._need(")", f", or ) after the arguments of {name}")
        if not function.fewest <= len(args) <= function.most:
            takes = " ".join(function.takes)
            raise self._source.error(
                first, f"expected {function.name}({takes}), found {len(args)} arguments"
            )
        if function.name == "locate" and name == "instr":
            args.reverse()
        if function.name in ("like", "rlike") and function.name == "like":
            args.append(self._made(Lit("\\"), first))
        return self._call(function.name, first, *args)

    def _argument(self) -> Scalar:
        """An argument, or a lambda: `t -> t > 3`, `(t) -> t > 3`."""
        tokens, i = self._tokens, self._at
        is_lambda = tokens[i].isidentifier() and tokens[i + 1 : i + 3] == ["-", ">"]
        if not is_lambda:
            return self._expression(0)
        first = i
        self._at += 3
        self._parameters.append(tokens[i])
        body = self._expression(0)
        self._parameters.pop()
        return self._made(Lambda((tokens[i],), body), first, body)

    def _unknown(self, i: int, name: str) -> ParseError:
        if name.upper() in NOT_DETERMINISTIC:
            return self._source.expected(i, "a function", NOT_DETERMINISTIC[name.upper()])
        if name.upper() in AGGREGATES:
            hint = "aggregates look at many events, a condition at one"
            return self._source.expected(i, "a function of one event", hint)
        near = nearest(name)
        hint = f"did you mean {near}?" if near else "docs/language.md lists the functions"
        return self._source.expected(i, "a function that is on the list", hint)


_TOO_DEEP = (
    f"expected nesting of at most {MAX_NESTING} levels in a computed attribute, found more: "
    "split the expression, or compute the value before the event is matched"
)
