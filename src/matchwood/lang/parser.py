"""Text to tree: AND, OR, XOR, XNOR, NOT and parentheses around predicates.

This is the quick parser, for texts that compare attributes with constants.  What it does not take
is read again by `general`, which takes the whole language; both give the same trees.

One loop with a stack of its own, so that nesting costs no Python frames:

    NOT > AND > XOR, XNOR (from the left) > OR

At any time the open parenthesis holds a chain of AND, to its left at most one finished side of
an XOR, and to the left of that the finished operands of an OR:

    a AND b  OR  c XOR d AND e AND
    `--ors--'   `xor' `---ands---'

A chain of one connective is one node, also when its parts came in parentheses.
"""

from __future__ import annotations

from matchwood.errors import ParseError
from matchwood.lang.nodes import MAX_DEPTH, TOO_NESTED, And, Expr, Not, Or, Xnor, Xor
from matchwood.lang.predicates import predicate
from matchwood.lang.source import Source
from matchwood.lang.tokens import END, MAX_TEXT, spellings

_OPENERS = {"(": "(", "!": "NOT", **spellings("NOT")}
_CONNECTIVES = spellings("AND", "OR", "XOR", "XNOR")
_TOO_DEEP = (
    f"expected at most {MAX_DEPTH} open parentheses, found more: "
    "split the expression into several subscriptions"
)


def parse(text: str, limit: int = MAX_TEXT) -> Expr:
    """The tree of an expression of at most `limit` characters.

    >>> parse("NOT price < 20")
    Not(operand=Comparison(name='price', op='<', value=20))
    """
    source = Source(text, limit)
    try:
        return _parse(source)
    except ParseError as error:
        problem = _at(error, text)
    return _parse_again(text, limit, problem)


def _at(error: ParseError, text: str) -> ParseError:
    """The error with its text."""
    return ParseError(error.message, text if error.text is None else error.text, error.position)


def _parse_again(text: str, limit: int, problem: ParseError) -> Expr:
    """The tree of a text that this parser does not take; of two errors the one that says more."""
    from matchwood.lang.general import REFUSED, Unread, parse_general

    if problem.message in (_TOO_DEEP, TOO_NESTED):
        raise problem
    try:
        return parse_general(Source(text, limit))
    except Unread as unread:
        error = _at(unread.error, text)
        is_query = text.lstrip()[:6].upper().startswith(("SELECT", "WHERE"))
        # where a value of the context is used in another way, this parser's hints are the better
        is_refused = unread.weight == REFUSED and "ctx" not in text
        is_further = error.position > problem.position - (unread.weight > 0)
        raise (error if is_further or is_query or is_refused else problem) from None


class _Level:
    """What an open parenthesis holds so far; see the drawing above."""

    __slots__ = ("ands", "ands_at", "nots", "opened", "ors", "ors_at", "xor", "xor_at", "xor_kind")

    def __init__(self, opened: int, start: int) -> None:
        self.opened = opened
        self.ands: list[Expr] = []
        self.ors: list[Expr] = []
        self.nots: list[int] = []
        self.xor: Expr | None = None
        self.xor_kind: type[Xor] | type[Xnor] = Xor
        self.ands_at = self.xor_at = self.ors_at = start

    def operand(self, node: Expr) -> None:
        """Add an operand to the current AND, inside of the NOTs that were read before it."""
        if self.nots:
            for at in reversed(self.nots):
                node = Not(node, at)
            self.nots = []
        if type(node) is And:
            self.ands.extend(node.operands)
        else:
            self.ands.append(node)

    def connect(self, word: str, start: int) -> None:
        """Make room for what follows AND, OR, XOR or XNOR, which starts at a position."""
        if word == "AND":
            return
        if word == "OR":
            self._end_or()
            self.xor_at = start
        else:
            self.xor = self._end_xor()
            self.xor_kind = Xor if word == "XOR" else Xnor
        self.ands_at = start

    def end(self) -> Expr:
        """The finished expression."""
        if not self.ors:
            return self._end_xor()
        self._end_or()
        return Or(tuple(self.ors), self.ors_at)

    def _end_xor(self) -> Expr:
        ands = self.ands
        node = ands[0] if len(ands) == 1 else And(tuple(ands), self.ands_at)
        self.ands = []
        if self.xor is not None:
            node = self.xor_kind(self.xor, node, self.xor_at)
            self.xor = None
        return node

    def _end_or(self) -> None:
        node = self._end_xor()
        if type(node) is Or:
            self.ors.extend(node.operands)
        else:
            self.ors.append(node)


def _parse(source: Source) -> Expr:
    tokens, places = source.tokens, source.places
    level = _Level(0, places[0])
    stack: list[_Level] = []
    i = 0
    while True:
        opener = _OPENERS.get(tokens[i])
        if opener == "NOT":
            level.nots.append(places[i])
            i += 1
            continue
        if opener == "(":
            if len(stack) >= MAX_DEPTH:
                raise source.error(i, _TOO_DEEP)
            stack.append(level)
            i += 1
            level = _Level(i - 1, places[i])
            continue
        node, i = predicate(source, i)
        level.operand(node)
        while tokens[i] == ")" and stack:
            node = level.end()
            level = stack.pop()
            level.operand(node)
            i += 1
        word = _CONNECTIVES.get(tokens[i])
        i += 1
        if word is None:
            if tokens[i - 1] == END and not stack:
                return level.end()
            raise _unfinished(source, i - 1, level if stack else None)
        level.connect(word, places[i])


def _unfinished(source: Source, i: int, level: _Level | None) -> ParseError:
    """Token i neither connects nor ends; level is the open parenthesis, if there is one."""
    if level is None:
        if source.tokens[i] == ")":
            return source.expected(i, "the end of the text", "remove it, or open it with (")
        return source.expected(i, "AND, OR, XOR, XNOR or the end of the text")
    if source.tokens[i] == END:
        return source.error(
            level.opened, "expected a ) for this (, found the end of the text: close it"
        )
    return source.expected(i, "AND, OR, XOR, XNOR or )")
