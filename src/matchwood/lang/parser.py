"""Text to tree: AND, OR, XOR, XNOR, NOT and parentheses around predicates.

One loop with a stack of its own, so that nesting costs no Python frames:

    NOT > AND > XOR, XNOR (from the left) > OR

At every moment the open parenthesis holds a chain of AND, to its left at most one finished side of
an XOR, and to the left of that the finished operands of an OR:

    a AND b  OR  c XOR d AND e AND
    `--ors--'   `xor' `---ands---'

A chain of one connective is one node, also when its parts came in parentheses.
"""

from __future__ import annotations

from matchwood.errors import ParseError
from matchwood.lang.nodes import MAX_DEPTH, And, Expr, Not, Or, Xnor, Xor
from matchwood.lang.predicates import predicate
from matchwood.lang.source import Source
from matchwood.lang.tokens import END, spellings

_OPENERS = {"(": "(", "!": "NOT", **spellings("NOT")}
_CLOSERS = {")": ")", END: END, **spellings("AND", "OR", "XOR", "XNOR")}
_CONNECTIVE = "AND, OR, XOR, XNOR or the end of the text"


def parse(text: str) -> Expr:
    """The tree of an expression.

    >>> parse("price < 20 AND NOT sold")
    And(operands=(Comparison(name='price', op='<', value=20), Not(operand=Comparison(name='sold', op='=', value=True))))
    """
    source = Source(text)
    try:
        return _parse(source)
    except ParseError as error:
        if error.text is None:
            raise error.at(text) from None
        raise


class _Level:
    """What an open parenthesis holds so far; see the drawing above."""

    __slots__ = (
        "ands",
        "ands_at",
        "nots",
        "opened_at",
        "ors",
        "ors_at",
        "xor",
        "xor_at",
        "xor_kind",
    )

    def __init__(self, opened_at: int, start: int) -> None:
        self.opened_at = opened_at
        self.ands: list[Expr] = []
        self.ors: list[Expr] = []
        self.nots: list[int] = []
        self.xor: Expr | None = None
        self.xor_kind: type[Xor] | type[Xnor] = Xor
        self.ands_at = self.xor_at = self.ors_at = start

    def end_and(self) -> Expr:
        ands = self.ands
        node = ands[0] if len(ands) == 1 else And(tuple(ands), self.ands_at)
        self.ands = []
        if self.xor is not None:
            node = self.xor_kind(self.xor, node, self.xor_at)
            self.xor = None
        return node

    def end_or(self, node: Expr) -> None:
        if type(node) is Or:
            self.ors.extend(node.operands)
        else:
            self.ors.append(node)

    def end(self) -> Expr:
        node = self.end_and()
        if not self.ors:
            return node
        self.end_or(node)
        return Or(tuple(self.ors), self.ors_at)


def _parse(source: Source) -> Expr:
    tokens, places = source.tokens, source.places
    level = _Level(0, places[0])
    stack: list[_Level] = []
    i = 0
    while True:
        opener = _OPENERS.get(tokens[i])
        if opener is None:
            node, i = predicate(source, i)
        elif opener == "NOT":
            level.nots.append(places[i])
            i += 1
            continue
        else:
            if len(stack) >= MAX_DEPTH:
                source.fail(
                    i,
                    f"expected at most {MAX_DEPTH} open parentheses, found more: "
                    "split the expression into several subscriptions",
                )
            stack.append(level)
            level = _Level(places[i], places[i + 1])
            i += 1
            continue
        while True:  # node is a finished operand of level
            if level.nots:
                for at in reversed(level.nots):
                    node = Not(node, at)
                level.nots = []
            if type(node) is And:
                level.ands.extend(node.operands)
            else:
                level.ands.append(node)
            word = _CLOSERS.get(tokens[i])
            i += 1
            if word == "AND":
                break
            if word == "OR":
                level.end_or(level.end_and())
                level.ands_at = level.xor_at = places[i]
                break
            if word == "XOR" or word == "XNOR":
                level.xor = level.end_and()
                level.xor_kind = Xor if word == "XOR" else Xnor
                level.ands_at = places[i]
                break
            if word == END:
                if stack:
                    source.fail(
                        source.places.index(level.opened_at),
                        "expected ) to close this parenthesis, found the end of the text",
                    )
                return level.end()
            if word != ")":
                source.expected(
                    i - 1,
                    _CONNECTIVE if not stack else _CONNECTIVE.replace("the end of the text", ")"),
                )
            if not stack:
                source.fail(i - 1, "expected the end of the text, found ) without its (: remove it")
            node = level.end()
            level = stack.pop()
