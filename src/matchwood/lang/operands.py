"""What operators stand between: literals, names, functions, CASE, casts, lambdas."""

from __future__ import annotations

from abc import abstractmethod
from decimal import Decimal
from typing import Any

from matchwood.errors import ParseError
from matchwood.lang.functions import evaluate  # noqa: F401 - which puts all functions on the list
from matchwood.lang.functions.casts import TYPE_NAMES
from matchwood.lang.functions.registry import find, nearest
from matchwood.lang.hints import AGGREGATES, NOT_DETERMINISTIC
from matchwood.lang.intervals import HINT, UNITS, read_range, read_units
from matchwood.lang.literals import LiteralError, number
from matchwood.lang.reading import QUOTES, TokenReader
from matchwood.lang.scalars import Attr, Cast, Lambda, Lit, Scalar, Var
from matchwood.lang.tokens import END, WORDS
from matchwood.lang.values import CONSTANTS, is_name, is_typed, literal

DIGITS = "0123456789"


class OperandReader(TokenReader):
    """Reads one operand."""

    @abstractmethod
    def _expression(self, least: int) -> Scalar:
        """A whole expression whose operators bind at least so tightly."""

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
        if token[0] in QUOTES or (token[0] in "rR" and token[-1] in QUOTES):
            return self._literal()
        if word == "CASE":
            return self._case()
        if word in ("CAST", "TRY_CAST") and self._tokens[first + 1] == "(":
            return self._cast(word == "TRY_CAST")
        if word == "INTERVAL" and self._is_interval():
            return self._interval()
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
        return self._made(Attr(self._source.name(first)), first)

    def _literal(self) -> Scalar:
        first = self._at
        value, self._at = literal(self._source, first)
        return self._made(Lit(value), first)

    def _is_interval(self) -> bool:
        """Whether the word INTERVAL begins a literal; else it names an attribute."""
        at = self._at + 1
        if self._tokens[at][0] in QUOTES or self._tokens[at][0] in DIGITS:
            return True
        at += self._tokens[at] in ("+", "-")  # interval - 1: an attribute, without a unit behind
        token = self._tokens[at]
        is_amount = token[-1] in DIGITS + QUOTES and token[0] in DIGITS + QUOTES + "+-"
        return is_amount and self._tokens[at + 1].upper() in UNITS

    def _interval(self) -> Scalar:
        """`INTERVAL 1 day 2 hours`, `INTERVAL '1 02:03' DAY TO MINUTE`, `INTERVAL '1 day'`."""
        first = self._at
        self._at += 1
        pairs: list[tuple[str, str]] = []
        try:
            while (text := self._amount()) is not None:
                word = self._word()
                if self._word(1) == "TO" and not pairs:
                    value = read_range(text, word, self._word(2))
                    self._at += 3
                    return self._made(Lit(value), first)
                if word not in UNITS and not pairs:  # the units are in the text
                    words = text.split()
                    if len(words) < 2:
                        raise self._source.expected(self._at, "a unit such as DAY", HINT)
                    pairs = list(zip(words[::2], [*words[1::2], ""], strict=False))
                    break
                pairs.append((text, word))
                self._at += 1
            return self._made(Lit(read_units(pairs)), first)
        except LiteralError as error:
            raise self._source.error(first, str(error)) from None

    def _amount(self) -> str | None:
        """A number or a string with its sign, which a unit follows unless it is the first."""
        at = self._at
        token = self._tokens[at]
        sign = token if token in ("+", "-") else ""
        at += len(sign)
        token = self._tokens[at]
        is_first = self._tokens[at - 1 - len(sign)].upper() == "INTERVAL"
        is_amount = token[-1] in DIGITS + QUOTES and token[0] in DIGITS + QUOTES + "+-rR"
        if not is_amount or not (is_first or self._tokens[at + 1].upper() in UNITS):
            return None
        if token[-1] in QUOTES:
            token, at = str(literal(self._source, at)[0]), at + 1
        else:
            at += 1
        self._at = at
        if sign != "-":
            return token
        return token[1:] if token.startswith("-") else f"-{token}"

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
            hint = "aggregates and windows look at many events, a condition at one"
            return self._source.expected(i, "a function of one event", hint)
        near = nearest(name)
        hint = f"did you mean {near}?" if near else "docs/language.md lists the functions"
        return self._source.expected(i, "a function that is on the list", hint)
