"""LIKE patterns, sorted by what they cost.

    'abc'      equality                      one key
    'abc%'     a prefix                      one interval: 'abc' <= x < 'abd'
    '%'        any string                    present
    the rest   a pattern                     a derived attribute that the event encoder supplies

`%` stands for any run of characters, `_` for one; a backslash takes the next character as it is.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from matchwood.lang.patterns import compile_pattern, pieces

__all__ = ["LikeForm", "LikeKind", "classify", "compile_pattern", "successor"]

_LAST_CHARACTER = "\U0010ffff"


class LikeKind(Enum):
    EQUAL = "equal"
    PREFIX = "prefix"
    ANY = "any"
    PATTERN = "pattern"


class LikeForm(NamedTuple):
    kind: LikeKind
    text: str


def classify(pattern: str) -> LikeForm:
    """What a pattern asks for, and the text without escapes where that is all it needs.

    >>> classify("ab%").kind, classify("ab%").text
    (<LikeKind.PREFIX: 'prefix'>, 'ab')
    >>> classify("50" + chr(92) + "%").text
    '50%'
    """
    found = pieces(pattern)
    literal = "".join([text for text, wild in found if not wild])
    wild = [text for text, is_wild in found if is_wild]
    if not wild:
        return LikeForm(LikeKind.EQUAL, literal)
    ends_only = set(wild) == {"%"} and not any(w for _, w in found[: -len(wild)])
    if ends_only:
        return LikeForm(LikeKind.PREFIX if literal else LikeKind.ANY, literal)
    return LikeForm(LikeKind.PATTERN, pattern)


def successor(prefix: str) -> str | None:
    """The smallest string above every string that begins with `prefix`; None when there is none.

    >>> successor("ab"), successor("a\U0010ffff"), successor("\U0010ffff")
    ('ac', 'b', None)
    """
    stem = prefix.rstrip(_LAST_CHARACTER)
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    if 0xD800 <= following <= 0xDFFF:  # surrogates are no characters: UTF-8 cannot hold them
        following = 0xE000
    return stem[:-1] + chr(following)
