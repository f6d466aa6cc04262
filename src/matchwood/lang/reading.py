"""Reads the tokens of a text from left to right, and notes where each node of its tree begins."""

from __future__ import annotations

from matchwood.errors import ParseError
from matchwood.lang.hints import SECOND_LOOK
from matchwood.lang.scalars import Call, Scalar
from matchwood.lang.source import Source
from matchwood.lang.tokens import END

MAX_NESTING = 100
"""Deepest nesting of computed attributes, parentheses included."""

QUOTES = "'\""
TOO_DEEP = (
    f"expected nesting of at most {MAX_NESTING} levels in a computed attribute, found more: "
    "split the expression, or compute the value before the event is matched"
)


class TokenReader:
    """The tokens of one text; `_at` is the next one."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._tokens = source.tokens
        self._at = 0
        self._open = 0
        self.is_vague = False
        self.is_deep = False
        self._depth: dict[int, tuple[Scalar, int, int]] = {}
        self._parameters: list[str] = []

    def position_of(self, node: Scalar) -> int:
        """Where a node begins in the text; -1 when it was made on the way."""
        found = self._depth.get(id(node))
        return -1 if found is None else found[2]

    def _made(self, node: Scalar, first: int, *below: Scalar) -> Scalar:
        """Note where a node begins and how deep it is."""
        depth = 1 + max([self._depth[id(each)][1] for each in below], default=0)
        if depth > MAX_NESTING:
            self.is_deep = True
            raise self._source.error(first, TOO_DEEP)
        position = self._source.places[first]
        if below and id(below[0]) in self._depth:
            position = min(position, self._depth[id(below[0])][2])
        self._depth[id(node)] = node, depth, position
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
        if i and self._tokens[i - 1][-1] in QUOTES and self._tokens[i] != END:
            end = source.places[i - 1] + len(self._tokens[i - 1])
            if end == source.places[i] and self._tokens[i][0].isalnum():
                return source.expected(i, what, "a quote inside a string is written twice: 'it''s'")
        self.is_vague = True
        return source.expected(i, what, SECOND_LOOK.get(self._tokens[i], ""))
