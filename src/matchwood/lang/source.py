"""The tokens of one text, and the errors that point into it."""

from __future__ import annotations

from matchwood.errors import ParseError
from matchwood.lang.hints import NOT_DETERMINISTIC
from matchwood.lang.intervals import HINT
from matchwood.lang.names import INSTANTS, problem
from matchwood.lang.tokens import END, MAX_TEXT, PART, WORDS, tokenize

_CHAINED = "compare one attribute with one literal, and join comparisons with AND"
_ARITHMETIC = "it needs a value on both sides, and the result a comparison"
_REGEX = "write an attribute before it and a pattern in quotes after it"
_HINTS = {
    "<=>": "write a value on both sides",
    "&&": "write AND",
    "||": "write OR; || joins strings",
    "&": "write AND",
    "|": "write OR",
    "^": "write XOR",
    "~": "write NOT for a negation, RLIKE for a regular expression",
    "::": "write cast(x AS type)",
    ";": "write one expression, without a semicolon",
    **dict.fromkeys(("RLIKE", "REGEXP", "ILIKE"), _REGEX),
    "!": "write NOT",
    **dict.fromkeys(
        ("CONTAINS", "STARTSWITH", "ENDSWITH"), "write contains(x, 'a'), startswith(x, 'a')"
    ),
    **dict.fromkeys(("MATCHES", "=~"), "write RLIKE for a regular expression"),
    "ISNULL": "write IS NULL",
    "NOTNULL": "write IS NOT NULL",
    **dict.fromkeys(("=", "==", "<>", "!=", "<", "<=", ">", ">=", "!<", "!>"), _CHAINED),
    **dict.fromkeys(("IN", "LIKE", "BETWEEN", "IS"), "start it with the name of an attribute"),
    **dict.fromkeys("+-*/%", _ARITHMETIC),
}


_BEFORE = {
    "SELECT": "a condition sees one event: it has no subqueries",
    "INTERVAL": HINT,
}
"""What is wrong with the word before a token that nothing fits."""


class Source:
    """One text, cut into tokens; `tokens` ends in END, `places` says where each token starts."""

    __slots__ = ("places", "text", "tokens")

    def __init__(self, text: str, limit: int = MAX_TEXT) -> None:
        self.text = text
        self.tokens, self.places = tokenize(text, limit)

    def error(self, i: int, message: str) -> ParseError:
        """The error at token i."""
        return ParseError(message, self.text, self.places[i])

    def expected(self, i: int, what: str, hint: str = "") -> ParseError:
        """The error 'expected .., found ..' at token i, with the best hint there is."""
        hint = hint or self.hint(i)
        return self.error(
            i, f"expected {what}, found {self.shown(i)}" + (f": {hint}" if hint else "")
        )

    def shown(self, i: int) -> str:
        """The token as an error names it."""
        token = self.tokens[i]
        if token == END:
            return "the end of the text"
        token = token.rstrip(END)
        if not token.isprintable() and len(token) == 1:
            return f"the character U+{ord(token):04X}"
        return token if len(token) <= 40 else token[:40] + "..."

    def hint(self, i: int) -> str:
        """What to write instead of token i."""
        token = self.tokens[i]
        word = WORDS.get(token) or token.upper()
        if word in _HINTS:
            return _HINTS[word]
        if token[0] in "+-" and len(token) > 1:
            return _ARITHMETIC
        if token[0] in "'\"" and i and self.tokens[i - 1][-1] in "'\"":
            return "write the two strings as one"
        if i and self.tokens[i - 1].upper() in _BEFORE:
            return _BEFORE[self.tokens[i - 1].upper()]
        if not token.isprintable() and token != END:
            return "remove it, or put it inside a string"
        return ""

    def name(self, i: int) -> str:
        """The attribute that token i names: its parts, without back-ticks, joined by dots."""
        token = self.tokens[i]
        name = token if token.isidentifier() else self._quoted_name(i, token)
        if token.lower() in INSTANTS:
            raise self.expected(i, "an attribute", NOT_DETERMINISTIC[token.upper()])
        trouble = problem(name)
        if trouble:
            raise self.expected(i, "an attribute", trouble)
        return name

    def _quoted_name(self, i: int, token: str) -> str:
        if token[0] == "`" and token.count("`") % 2:
            raise self.expected(i, "a closing back-tick for this name", "write one inside it twice")
        parts = [tick.replace("``", "`") or plain for tick, plain in PART.findall(token)]
        return "" if "" in parts else ".".join(parts)
