"""Text to tokens: one compiled pattern, one pass in C.

Every match is a token with the blanks behind it, so the running sum of the lengths is the position
of every token; no object per token is made.  Whatever no rule knows becomes a token of one
character, which the parser then reports: the tokenizer itself refuses only what no rule of the
grammar could hold (text that is too long, NUL, lone surrogates, an open comment).

Runs of characters are possessive (`*+`) and an open quote takes the rest of the text with it, so
time grows with the length of the text alone, whatever the text is.  Groups are not: before Python
3.11.5 a possessive group whose last round fails keeps what that round had read.  A round of a group
begins with what no other rule there can read, so there is nothing to try again.
"""

from __future__ import annotations

import re
from itertools import accumulate, product

from matchwood.errors import ParseError

MAX_TEXT = 1_000_000
"""Longest text in characters; a longer list of values is better kept as an attribute."""

END = "\0"
"""The token after the last one.  NUL cannot occur in a text that came this far."""

# Spark's own set of white space: also the wide Unicode blanks, not the control characters.
_BLANKS = " \t\n\r\f\v\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
_BLANKS += "\u200a\u2028\u2029\u202f\u205f\u3000"
_TICKED = "`[^`]*+(?:``[^`]*+)*`(?!`)"
_SINGLE = r"'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*'(?!')"
_DOUBLE = r'"[^"\\]*+(?:(?:\\.|"")[^"\\]*+)*"(?!")'


def _pattern(name: str, blanks: str) -> re.Pattern[str]:
    """The rules in order of use; `name` is the pattern of a name without back-ticks."""
    dotted = rf"(?:[{blanks}]*+\.[{blanks}]*+(?:{name}|{_TICKED}))*"
    rules = (
        "[rR]'[^']*+'",
        '[rR]"[^"]*+"',
        name + dotted,
        "[(),]",
        r"'[^'\\]*+'(?!')",  # these three are short cuts to rules below
        "[=<>](?![=<>])",
        "[0-9]++(?![0-9A-Za-z_.])",
        _SINGLE,
        _DOUBLE,
        r"[-+]?\.?[0-9][0-9A-Za-z_.]*+(?:(?<=[eE])[-+][0-9A-Za-z_.]*+)?",
        r"<=>|[<>!=]=|<>|![<>]|\|\||&&|::",
        _TICKED + dotted,
        "['\"`\x1c-\x1f\x85].*+",  # an open quote, or what `rstrip` would take for a blank
        f"[^{blanks}]",
    )
    return re.compile(f"(?:{'|'.join(rules)})[{blanks}]*+", re.DOTALL)


_ASCII = _pattern("[A-Za-z_][A-Za-z0-9_]*+", _BLANKS[:6])  # a third quicker than the other one
_UNICODE = _pattern(r"[^\W\d]\w*+", _BLANKS)
STRING = re.compile(f"{_SINGLE}|{_DOUBLE}", re.DOTALL)
PART = re.compile(r"`([^`]*+(?:``[^`]*+)*)`(?!`)|([^\W\d]\w*+)")

_COMMENT = r"--[^\r\n\\]*+(?:\\\n?[^\r\n\\]*+)*"
_OUTSIDE = re.compile(rf"{_SINGLE}|{_DOUBLE}|{_TICKED}|['\"`].*+|{_COMMENT}|/\*", re.S)
_BRACKET = re.compile(r"/\*|\*/")
_VISIBLE = re.compile(r"[^\r\n]")


def spellings(*words: str) -> dict[str, str]:
    """Every mix of upper and lower case of each word, to the word in capitals.

    A table of a few hundred spellings spares a call of `upper` per token, and is plain ASCII:
    'LIKE' spelled with a Kelvin sign is a name.
    """
    return {
        "".join(mix): word for word in words for mix in product(*({c, c.lower()} for c in word))
    }


WORDS = spellings(
    "AND",
    "OR",
    "NOT",
    "XOR",
    "XNOR",
    "IN",
    "LIKE",
    "BETWEEN",
    "IS",
    "NULL",
    "TRUE",
    "FALSE",
    "ESCAPE",
)
"""The reserved words: as a name they need back-ticks."""

OPERATORS = {
    "=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", "!>": "<=",
    ">": ">", ">=": ">=", "!<": ">=",
}  # fmt: skip


def tokenize(text: str, limit: int = MAX_TEXT) -> tuple[list[str], list[int]]:
    """The tokens of a text of at most `limit` characters, closed by END, and their positions."""
    if not isinstance(text, str):
        raise ParseError(
            f"expected the expression as text (str), found {type(text).__name__}: "
            "decode bytes first, and leave out what is not there"
        )
    ascii_only = text.isascii()
    if len(text) > limit or END in text or not ascii_only:
        _refuse(text, limit)
    if "--" in text or "/*" in text:
        text = _blank_comments(text)
    pieces = (_ASCII if ascii_only else _UNICODE).findall(text + END)
    before = len(text) - len(text.lstrip(_BLANKS)) if text[:1] in _BLANKS else 0
    places = list(accumulate(map(len, pieces), initial=before))
    tokens = list(map(str.rstrip, pieces))
    tokens.append(END)  # once more: an open quote has taken the first one with it
    return tokens, places


def _refuse(text: str, limit: int) -> None:
    """Refuse what cannot be an expression, wherever it stands."""
    if len(text) > limit:
        raise ParseError(
            f"expected at most {limit:,} characters, found {len(text):,}: "
            "split the expression into several subscriptions",
            text,
            limit,
        )
    if END in text:
        raise ParseError(
            r"expected text, found a NUL character: write it as '\0' inside a string",
            text,
            text.index(END),
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParseError(
            f"expected Unicode text, found the lone surrogate U+{ord(text[error.start]):04X}: "
            "decode the text with its real encoding",
            text,
            error.start,
        ) from None


def _blank_comments(text: str) -> str:
    """The text with spaces for comments, so that all positions stay the same."""
    kept: list[str] = []
    done = 0
    while found := _OUTSIDE.search(text, done):
        start, end = found.span()
        kept.append(text[done:start])
        opener = text[start : start + 2]
        if opener == "/*":
            end = _comment_end(text, start)
        done = end
        if opener in ("--", "/*"):
            kept.append(_VISIBLE.sub(" ", text[start:end]))
        else:
            kept.append(text[start:end])
    kept.append(text[done:])
    return "".join(kept)


def _comment_end(text: str, start: int) -> int:
    """Where a bracketed comment ends; comments nest, as in Spark."""
    depth = 0
    for mark in _BRACKET.finditer(text, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    raise ParseError("expected */ to close this comment, found the end of the text", text, start)
