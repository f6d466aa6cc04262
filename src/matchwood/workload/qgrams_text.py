"""Strings as q-grams, and q-grams as expressions and events (BE-Tree, section 7.1).

    'string'   ->   str, tri, rin, ing   ->   st = 'r' AND tr = 'i' AND ri = 'n' AND `in` = 'g'

The first q - 1 letters of a q-gram are the attribute, the last one is the value.  With q = 3 there
are 26 * 26 attributes of 26 values.

Folding   Letters count without case and accents, and only a to z do.  All other signs part words,
          and q-grams stay inside words.  (The paper does not say; these choices give its numbers
          of attributes, and nearly its sizes of 8 for authors and 35 for titles.)
Repeats   An expression has an attribute once.  In 'banana', `an = 'a'` comes twice and counts once;
          in 'canal candy', `an` would have to be 'a' and 'd', which never holds: the first counts.
          Events are made alike, so a string matches itself.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import and_
from unicodedata import combining, normalize

from matchwood.lang.builder import attr
from matchwood.lang.nodes import TRUE, Expr

LETTERS = "abcdefghijklmnopqrstuvwxyz"

_WORD = re.compile("[a-z]+")
_WHOLE = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ħ": "h", "ı": "i"}
)
"""Letters that do not come apart into a letter and an accent."""


def folded(text: str) -> str:
    """Lower case without accents.

    >>> folded("Jürgen Groß, Łódź")
    'jurgen gross, lodz'
    """
    if text.isascii():
        return text.lower()
    apart = normalize("NFKD", text.casefold().translate(_WHOLE))
    return "".join(each for each in apart if not combining(each))


def string_grams(text: str, q: int = 3) -> dict[str, str]:
    """Attribute -> value: what an expression asks for, and an event offers.

    >>> string_grams("string")
    {'st': 'r', 'tr': 'i', 'ri': 'n', 'in': 'g'}
    >>> string_grams("canal candy")
    {'ca': 'n', 'an': 'a', 'na': 'l', 'nd': 'y'}
    """
    found: dict[str, str] = {}
    for word in _WORD.findall(folded(text)):
        for at in range(len(word) - q + 1):
            found.setdefault(word[at : at + q - 1], word[at + q - 1])
    return found


def string_expression(text: str, q: int = 3) -> Expr:
    """A conjunction of equalities; TRUE for a string without q-grams.

    >>> str(string_expression("string"))
    "st = 'r' AND tr = 'i' AND ri = 'n' AND `in` = 'g'"
    """
    grams = string_grams(text, q)
    return reduce(and_, [attr(name) == value for name, value in grams.items()]) if grams else TRUE
